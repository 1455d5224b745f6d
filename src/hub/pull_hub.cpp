#include "hub/pull_hub.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "files/gguf_name.h"
#include "hub/catalog.h"
#include "hub/download.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMaxListingBytes = 32 << 20;
constexpr size_t kMaxFiles = 100'000;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 42;
constexpr std::string_view kDefaultQuant = "Q4_K_M";
constexpr size_t kMaxListed = 40;

bool is_word(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
  return !text.empty() && text.size() <= 128 && text.front() != '.' &&
         text.find("..") == std::string_view::npos &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

// A relative path of plain words: nothing hidden, nothing that leads elsewhere.
bool is_safe(std::string_view path) {
  for (int depth = 0; depth < 4; ++depth) {
    const size_t cut = path.find('/');
    const std::string_view word = path.substr(0, cut);
    if (word.empty() || word.size() > 200 || word.front() == '.' || printable(word) != word ||
        word.find('\\') != std::string_view::npos)
      return false;
    if (cut == std::string_view::npos) return true;
    path.remove_prefix(cut + 1);
  }
  return false;
}

std::string string_at(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

// A file whose size or name makes no sense is left out: it can be no part of a model.
void add_file(const Json& json, std::vector<HubFile>& files) {
  if (!json.is_object()) return;
  HubFile file{string_at(json, "rfilename"), 0, {DigestKind::git_blob, string_at(json, "blobId")}};
  const auto bytes = json.find("size");
  if (bytes == json.end() || !bytes->is_number_unsigned()) return;
  file.bytes = bytes->get<uint64_t>();
  if (const auto lfs = json.find("lfs"); lfs != json.end() && lfs->is_object())
    file.checksum = {DigestKind::sha256, string_at(*lfs, "sha256")};
  if (!is_checksum(file.checksum.kind, file.checksum.hex)) file.checksum.hex.clear();
  if (is_safe(file.path) && file.bytes <= kMaxFileBytes) files.push_back(std::move(file));
}

// First parts of split models and whole files, by quantisation.
using ByQuant = std::multimap<std::string, const HubFile*>;

ByQuant ggufs_of(const HubListing& listing) {
  ByQuant out;
  for (const HubFile& file : listing.files)
    if (const auto name = parse_gguf_name(file.path); name && name->part == 1)
      out.emplace(name->quant.empty() ? name->stem : name->quant, &file);
  return out;
}

Status no_choice(const ByQuant& ggufs, const HubName& name, std::string_view why) {
  std::string list;
  size_t n = 0;
  for (const auto& [quant, file] : ggufs)
    if (++n <= kMaxListed)
      list += fmt::format("\n  hf:{}:{}  ({:.0f} MB, {})", name.repo, quant,
                          static_cast<double>(file->bytes) / 1e6, file->path);
  return error(Code::not_found, "{} {}; it has:{}", name.repo, why, list);
}

Result<const HubFile*> choose_gguf(const ByQuant& ggufs, const HubName& name) {
  const std::string wanted = to_lower(name.quant.empty() ? kDefaultQuant : name.quant);
  std::vector<const HubFile*> found;
  for (const auto& [quant, file] : ggufs)
    if (to_lower(quant) == wanted || to_lower(file->path) == wanted ||
        to_lower(parse_gguf_name(file->path)->stem) == wanted)
      found.push_back(file);
  if (found.size() == 1) return found[0];
  if (found.size() > 1) return no_choice(ggufs, name, "has several such files; give a file name");
  if (name.quant.empty() && ggufs.size() == 1) return ggufs.begin()->second;
  return no_choice(ggufs, name,
                   fmt::format("has no {}", name.quant.empty() ? kDefaultQuant : name.quant));
}

const HubFile* find_file(const HubListing& listing, std::string_view path) {
  const auto at = std::find_if(listing.files.begin(), listing.files.end(),
                               [&](const HubFile& file) { return file.path == path; });
  return at == listing.files.end() ? nullptr : &*at;
}

Result<std::vector<HubFile>> all_parts(const HubListing& listing, const HubFile& first) {
  const int n_parts = parse_gguf_name(first.path)->n_parts;
  std::vector<HubFile> out = {first};
  for (int part = 2; part <= n_parts; ++part) {
    const std::string path = part_path(first.path, part);
    const HubFile* file = find_file(listing, path);
    if (file == nullptr)
      return error(Code::corrupt, "the repository has {} but not its part {}", first.path, path);
    out.push_back(*file);
  }
  return out;
}

Result<std::vector<HubFile>> safetensors_files(const HubListing& listing, const HubName& name) {
  std::vector<HubFile> out;
  const bool has_model = std::any_of(listing.files.begin(), listing.files.end(), [](const auto& f) {
    return f.path.starts_with("model") && f.path.ends_with(".safetensors");
  });
  for (const HubFile& file : listing.files)
    if (file.path.ends_with(".safetensors") && file.path.find('/') == std::string::npos &&
        (!has_model || file.path.starts_with("model")))
      out.push_back(file);
  if (out.empty())
    return error(Code::not_found, "{} has neither GGUF files nor safetensors", name.repo);
  for (const char* beside :
       {"model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "generation_config.json", "chat_template.jinja", "config.json"})
    if (const HubFile* file = find_file(listing, beside)) out.push_back(*file);
  if (out.back().path != "config.json")
    return error(Code::not_found, "{} has safetensors but no config.json", name.repo);
  return out;
}

HttpOptions http_options(const Environment& environment, const PullWatch& watch) {
  return {environment.hub_token, environment.certificates, watch.n_tries, watch.stopped};
}

uint64_t sum_of(const std::vector<HubFile>& files) {
  uint64_t bytes = 0;
  for (const HubFile& file : files) bytes += file.bytes;
  return bytes;
}

bool is_there(const fs::path& path, uint64_t bytes) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) && fs::file_size(path, failed) == bytes && !failed;
}

// Bytes still to come for one file.
uint64_t missing_bytes(const fs::path& path, uint64_t bytes) {
  if (is_there(path, bytes)) return 0;
  std::error_code failed;
  const uint64_t part = fs::file_size(path.string() + ".part", failed);
  return failed || part > bytes ? bytes : bytes - part;
}

// Gets what is missing; the files' total so far goes to the watch.
Status get_files(const std::vector<HubFile>& files, const fs::path& folder, const std::string& url,
                 const HttpOptions& options, const PullWatch& watch) {
  const uint64_t total = sum_of(files);
  uint64_t before = 0;
  for (const HubFile& file : files) {
    const fs::path path = folder / file.path;
    const auto progress = [&](uint64_t n) { watch.progress(file.path, before + n, total); };
    if (!is_there(path, file.bytes))
      MILLRACE_TRY(
          download({url + "/" + url_path(file.path), path.string(), file.bytes, file.checksum},
                   options, progress));
    before += file.bytes;
  }
  return {};
}

Result<Pulled> already_here(const HubName& name, const Environment& environment) {
  const std::string full = name.repo + (name.quant.empty() ? "" : ":" + name.quant);
  const Catalog catalog = find_models(environment);
  auto path = resolve_model(full, catalog);
  if (!path.ok())
    return error(Code::unavailable, "HF_HUB_OFFLINE is set, and {} is not on this machine", full);
  for (const CatalogEntry& entry : catalog.entries)
    if (entry.path == *path) return Pulled{entry.name, entry.path, entry.bytes, true};
  return error(Code::unavailable, "HF_HUB_OFFLINE is set, and {} is not in the catalog", full);
}

}  // namespace

Result<HubName> parse_hub_name(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view repo = text.substr(0, colon);
  const size_t slash = std::min(repo.find('/'), repo.size());
  HubName name{std::string(repo), std::string(text.substr(std::min(colon + 1, text.size())))};
  const bool is_good = slash < repo.size() && is_word(repo.substr(0, slash)) &&
                       is_word(repo.substr(slash + 1)) &&
                       (colon == text.size() || is_safe(name.quant));
  if (is_good) return name;
  return error(Code::invalid_argument,
               "'hf:{}' is not a repository; write hf:OWNER/REPO or hf:OWNER/REPO:QUANT",
               printable(text, 200));
}

Result<HubListing> parse_listing(const std::string& json) {
  const Json document = Json::parse(json, nullptr, false);
  const auto siblings = document.is_object() ? document.find("siblings") : document.end();
  if (siblings == document.end() || !siblings->is_array() || siblings->size() > kMaxFiles)
    return error(Code::corrupt, "the server's answer is not a list of files");
  HubListing listing{string_at(document, "sha"), {}};
  if (!is_checksum(DigestKind::git_blob, listing.revision)) listing.revision = "main";
  for (const Json& file : *siblings) add_file(file, listing.files);
  return listing;
}

Result<std::vector<HubFile>> choose_files(const HubListing& listing, const HubName& name) {
  const ByQuant ggufs = ggufs_of(listing);
  if (ggufs.empty() && !name.quant.empty())
    return error(Code::not_found,
                 "{} has no GGUF files, so '{}' selects nothing; hf:{} downloads its "
                 "safetensors, if it has any",
                 name.repo, name.quant, name.repo);
  if (ggufs.empty()) return safetensors_files(listing, name);
  MILLRACE_ASSIGN(const HubFile* first, choose_gguf(ggufs, name));
  return all_parts(listing, *first);
}

Result<Pulled> pull_hub(const HubName& name, const Environment& environment,
                        const PullWatch& watch) {
  if (environment.hub_offline) return already_here(name, environment);
  const HttpOptions options = http_options(environment, watch);
  const std::string api = environment.hub_endpoint + "/api/models/" + name.repo;
  watch.progress("listing the files of " + name.repo, 0, 0);
  MILLRACE_ASSIGN(const std::string json,
                  http_get_text(api + "/revision/main?blobs=true", kMaxListingBytes, options));
  MILLRACE_ASSIGN(const HubListing listing, parse_listing(json));
  MILLRACE_ASSIGN(const std::vector<HubFile> files, choose_files(listing, name));
  const fs::path folder = fs::path(own_models(environment)) / "hf" / name.repo;
  const bool is_gguf = parse_gguf_name(files[0].path).has_value();
  const fs::path path = is_gguf ? folder / files[0].path : folder;
  std::string quant = is_gguf ? parse_gguf_name(files[0].path)->quant : "";
  if (is_gguf && quant.empty()) quant = parse_gguf_name(files[0].path)->stem;
  Pulled pulled{name.repo + (is_gguf ? ":" + quant : ""), path.string(), sum_of(files), true};
  uint64_t missing = 0;
  for (const HubFile& file : files) {
    pulled.was_there &= is_there(folder / file.path, file.bytes);
    missing += missing_bytes(folder / file.path, file.bytes);
  }
  MILLRACE_TRY(make_folder(folder.string()));
  MILLRACE_TRY(need_room(folder.string(), missing));
  MILLRACE_TRY(get_files(
      files, folder, environment.hub_endpoint + "/" + name.repo + "/resolve/" + listing.revision,
      options, watch));
  return pulled;
}

}  // namespace millrace
