#include "hub/stores.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "files/gguf_name.h"
#include "files/small_file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMaxJsonBytes = 1 << 20;
constexpr int kRepoDepth = 2;  // OWNER/REPO keeps quantisations in folders at times

// 0 for what is no regular file, links followed.
uint64_t file_bytes(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return 0;
  const auto bytes = fs::file_size(path, failed);
  return failed ? 0 : bytes;
}

bool is_folder(const fs::path& path) {
  std::error_code failed;
  return fs::is_directory(path, failed);
}

// An object, or empty when the file is missing, too large or no JSON object.
Json read_json(const fs::path& path) {
  auto text = read_small_file(path.string(), kMaxJsonBytes);
  if (!text.ok()) return Json::object();
  Json json = Json::parse(*text, nullptr, false);
  return json.is_object() ? json : Json::object();
}

std::string string_at(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

std::string type_text(const std::string& format, const std::string& detail) {
  return printable(detail.empty() ? format : format + " " + detail, 40);
}

// The bytes of all parts; 0 when one is missing.
uint64_t model_bytes(const fs::path& first, int n_parts) {
  uint64_t sum = 0;
  for (int part = 1; part <= n_parts; ++part) {
    const uint64_t bytes =
        file_bytes(n_parts == 1 ? first : fs::path(part_path(first.string(), part)));
    if (bytes == 0) return 0;
    sum += bytes;
  }
  return sum;
}

void add_gguf(const fs::path& path, const std::string& base, std::vector<CatalogEntry>& out) {
  const auto name = parse_gguf_name(path.filename().string());
  if (!name || name->part != 1) return;
  const uint64_t bytes = model_bytes(path, name->n_parts);
  if (bytes == 0) return;
  CatalogEntry entry{"", "", path.string(), type_text("gguf", name->quant), bytes};
  const auto is_taken = [&](const CatalogEntry& other) { return other.name == entry.name; };
  entry.name = base + ":" + name->quant;
  if (base.empty()) entry.name = name->stem;
  if (!base.empty() && (name->quant.empty() || std::any_of(out.begin(), out.end(), is_taken)))
    entry.name = base + ":" + name->stem;
  out.push_back(std::move(entry));
}

// A folder as Hugging Face lays a model out, from what it lists.
void add_safetensors(const fs::path& folder, const std::vector<fs::path>& files,
                     const std::string& base, std::vector<CatalogEntry>& out) {
  uint64_t bytes = 0;
  for (const fs::path& file : files)
    if (file.extension() == ".safetensors") bytes += file_bytes(file);
  if (bytes == 0 || file_bytes(folder / "config.json") == 0) return;
  const Json config = read_json(folder / "config.json");
  std::string dtype = string_at(config, "dtype");
  if (dtype.empty()) dtype = string_at(config, "torch_dtype");
  out.push_back({base.empty() ? folder.filename().string() : base, "", folder.string(),
                 type_text("safetensors", dtype), bytes});
}

void add_ggufs(const std::vector<fs::path>& files, const std::string& base, int depth, Walk& walk,
               std::vector<CatalogEntry>& out) {
  for (const fs::path& file : files)
    if (!is_folder(file))
      add_gguf(file, base, out);
    else if (depth > 0)
      add_ggufs(walk.list(file), base, depth - 1, walk, out);
}

void add(std::vector<CatalogEntry> models, const std::string& store, Catalog& catalog) {
  for (CatalogEntry& model : models) {
    model.store = store;
    model.name = printable(model.name);
  }
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::move(models.begin(), models.end(), std::back_inserter(catalog.entries));
}

std::string name_of(const fs::path& path) {
  return path.filename().string();
}

// Hidden entries are what a pull has under way.
bool is_hidden(const fs::path& path) {
  return name_of(path).starts_with(".");
}

// ROOT/OWNER/REPO/...
void add_repositories(const fs::path& root, const std::string& store, Walk& walk,
                      Catalog& catalog) {
  for (const fs::path& owner : walk.list(root)) {
    if (is_hidden(owner) || !is_folder(owner)) continue;
    for (const fs::path& repo : walk.list(owner)) {
      if (is_hidden(repo) || !is_folder(repo)) continue;
      add(models_below(repo, name_of(owner) + "/" + name_of(repo), kRepoDepth, walk), store,
          catalog);
    }
  }
}

// The revision that refs/main names, else the newest there is.
fs::path hub_snapshot(const fs::path& repo, Walk& walk) {
  auto main = read_small_file((repo / "refs" / "main").string(), 128);
  if (main.ok()) {
    const std::string revision = main->substr(0, main->find_first_of("\r\n"));
    const bool is_plain = revision.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_plain && !revision.empty() && is_folder(repo / "snapshots" / revision))
      return repo / "snapshots" / revision;
  }
  fs::path newest;
  fs::file_time_type when = fs::file_time_type::min();
  for (const fs::path& snapshot : walk.list(repo / "snapshots")) {
    std::error_code failed;
    const auto written = fs::last_write_time(snapshot, failed);
    if (failed || !is_folder(snapshot) || written <= when) continue;
    newest = snapshot;
    when = written;
  }
  return newest;
}

bool is_digest(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  return text.size() == kAlgorithm.size() + 64 && text.starts_with(kAlgorithm) &&
         text.find_first_not_of("0123456789abcdef", kAlgorithm.size()) == std::string_view::npos;
}

// The file of a digest, which is checked here to be one and nothing else; empty when it is not.
fs::path blob_path(const fs::path& root, const Json& layer) {
  std::string digest = string_at(layer, "digest");
  if (!is_digest(digest)) return {};
  digest[6] = '-';
  return root / "blobs" / digest;
}

void add_manifest(const fs::path& root, const fs::path& manifest, const std::string& name,
                  std::vector<CatalogEntry>& out) {
  const Json json = read_json(manifest);
  const auto layers = json.find("layers");
  if (layers == json.end() || !layers->is_array()) return;
  for (const Json& layer : *layers) {
    if (!layer.is_object() || string_at(layer, "mediaType") != "application/vnd.ollama.image.model")
      continue;
    const fs::path blob = blob_path(root, layer);
    const uint64_t bytes = blob.empty() ? 0 : file_bytes(blob);
    if (bytes == 0) return;
    const auto config = json.find("config");
    const fs::path about =
        config == json.end() || !config->is_object() ? fs::path() : blob_path(root, *config);
    const std::string quant = about.empty() ? "" : string_at(read_json(about), "file_type");
    out.push_back({name, "", blob.string(), type_text("gguf", quant), bytes});
    return;
  }
}

// As ollama shows it: without its own registry and the namespace of its own models.
std::string ollama_name(const fs::path& model) {
  const std::string host = name_of(model.parent_path().parent_path());
  const std::string space = name_of(model.parent_path());
  std::string name = name_of(model);
  if (host != "registry.ollama.ai") return host + "/" + space + "/" + name;
  return space == "library" ? name : space + "/" + name;
}

}  // namespace

std::vector<fs::path> Walk::list(const fs::path& folder) {
  struct stat info {};
  std::vector<fs::path> out;
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return out;
  if (!seen_.insert({info.st_dev, info.st_ino}).second) return out;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end && left_ > 0;
       at.increment(failed), --left_)
    out.push_back(at->path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<CatalogEntry> models_below(const fs::path& folder, const std::string& base, int depth,
                                       Walk& walk) {
  std::vector<CatalogEntry> out;
  const auto files = walk.list(folder);
  add_safetensors(folder, files, base, out);
  add_ggufs(files, base, depth, walk, out);
  return out;
}

void add_shipped(const std::string& root, Walk& walk, Catalog& catalog) {
  constexpr std::string_view kPrefix = "millrace-";
  std::vector<CatalogEntry> models;
  for (const fs::path& path : walk.list(root)) {
    const uint64_t bytes = file_bytes(path);
    if (bytes > 0 && name_of(path).starts_with(kPrefix) && path.extension() == ".gguf")
      models.push_back(
          {path.stem().string().substr(kPrefix.size()), "", path.string(), "gguf", bytes});
  }
  add(std::move(models), "shipped", catalog);
}

void add_own(const std::string& root, Walk& walk, Catalog& catalog) {
  std::vector<CatalogEntry> models;
  for (const fs::path& path : walk.list(root)) {
    if (is_hidden(path) || name_of(path) == "hf") continue;
    if (!is_folder(path)) {
      add_gguf(path, "", models);
      continue;
    }
    auto inside = models_below(path, name_of(path), 0, walk);
    if (inside.size() == 1) inside[0].name = name_of(path);
    std::move(inside.begin(), inside.end(), std::back_inserter(models));
  }
  add(std::move(models), "millrace", catalog);
  add_repositories(fs::path(root) / "hf", "millrace", walk, catalog);
}

void add_hub(const std::string& root, const std::string& store, Walk& walk, Catalog& catalog) {
  constexpr std::string_view kPrefix = "models--";
  for (const fs::path& repo : walk.list(root)) {
    std::string name = name_of(repo);
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    if (const size_t cut = name.find("--"); cut != std::string::npos) name.replace(cut, 2, "/");
    const fs::path snapshot = hub_snapshot(repo, walk);
    if (!snapshot.empty()) add(models_below(snapshot, name, kRepoDepth, walk), store, catalog);
  }
}

void add_llama_cpp(const std::string& root, Walk& walk, Catalog& catalog) {
  Walk again = walk;  // one folder holds loose files and, since 2026, the hub's layout
  add(models_below(root, "", 0, walk), "llama.cpp", catalog);
  add_hub(root, "llama.cpp", again, catalog);
}

void add_ollama(const std::string& root, Walk& walk, Catalog& catalog) {
  std::vector<CatalogEntry> models;
  for (const fs::path& host : walk.list(fs::path(root) / "manifests"))
    for (const fs::path& space : walk.list(host))
      for (const fs::path& model : walk.list(space))
        for (const fs::path& tag : walk.list(model))
          add_manifest(root, tag, ollama_name(model) + ":" + name_of(tag), models);
  add(std::move(models), "ollama", catalog);
}

void add_lm_studio(const std::string& root, Walk& walk, Catalog& catalog) {
  add_repositories(root, "lm-studio", walk, catalog);
}

}  // namespace millrace
