#include "files/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "base/utf8.h"
#include "files/hf_names.h"
#include "files/json.h"
#include "tensor/format.h"

namespace millrace {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr size_t kMaxTextBytes = 64 << 20;
constexpr size_t kMaxFiles = 1000;

// A name that stays in the directory.
bool is_plain_name(std::string_view name) {
  return name.ends_with(".safetensors") &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

using NamesByFile = std::map<std::string, std::set<std::string>>;

Result<NamesByFile> parse_index(std::string_view text, const std::string& path) {
  MILLRACE_ASSIGN(const nlohmann::json json, parse_json(text, path));
  const JsonFields fields(json, path);
  const nlohmann::json* map = fields.find("weight_map");
  if (map == nullptr || !map->is_object()) return fields.bad("weight_map", "is not an object");
  NamesByFile files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return fields.bad(tensor, "is not in a .safetensors file of this directory");
    files[file.get_ref<const std::string&>()].insert(tensor);
  }
  if (files.empty() || files.size() > kMaxFiles)
    return fields.bad("weight_map", fmt::format("names {} files", files.size()));
  return files;
}

}  // namespace

namespace {

// model_type of config.json; empty where it says none.
std::string model_type_of(const SafetensorsDir& dir) {
  const auto text = dir.text("config.json");
  if (!text.ok()) return "";
  const auto json = parse_json(text.value(), "config.json");
  if (!json.ok()) return "";
  const auto type = JsonFields(json.value(), "config.json").string_or("model_type", "");
  return type.ok() ? type.value() : "";
}

}  // namespace

Result<SafetensorsDir> SafetensorsDir::open(const std::string& directory, HfNamesOf names_of) {
  SafetensorsDir dir;
  dir.directory_ = directory;
  if (names_of != nullptr) dir.own_names_ = names_of(model_type_of(dir));
  MILLRACE_TRY(dir.open_files());
  return dir;
}

std::string SafetensorsDir::path_of(std::string_view name) const {
  return std::filesystem::path(directory_) / name;
}

bool SafetensorsDir::has(std::string_view name) const {
  std::error_code ignored;
  return std::filesystem::exists(path_of(name), ignored);
}

Result<std::string> SafetensorsDir::text(std::string_view name) const {
  return read_text_file(path_of(name), kMaxTextBytes);
}

Status SafetensorsDir::open_files() {
  if (!has("config.json"))
    return error(Code::not_found,
                 "{}: no config.json; a model is a .gguf file or a directory with "
                 "config.json and *.safetensors",
                 directory_);
  if (!has(kSingle) && has(kIndex)) return open_sharded();
  if (!has(kSingle))
    return error(Code::not_found, "{}: neither {} nor {}; weights in other formats are not read",
                 directory_, kSingle, kIndex);
  MILLRACE_ASSIGN(const auto entries, open_file(std::string(kSingle)));
  for (const SafetensorsEntry& entry : entries)
    MILLRACE_TRY(add(entry, files_.back().bytes().data()));
  return {};
}

Status SafetensorsDir::open_sharded() {
  const std::string path = path_of(kIndex);
  MILLRACE_ASSIGN(const std::string json, text(kIndex));
  MILLRACE_ASSIGN(NamesByFile files, parse_index(json, path));
  for (auto& [file, names] : files) {
    MILLRACE_ASSIGN(const auto entries, open_file(file));
    for (const SafetensorsEntry& entry : entries)
      if (names.erase(entry.name) != 0) MILLRACE_TRY(add(entry, files_.back().bytes().data()));
    if (!names.empty())
      return error(Code::corrupt, "{}: tensor '{}' is not in {}, where {} says it is", directory_,
                   printable(*names.begin(), 200), printable(file), kIndex);
  }
  return {};
}

Result<std::vector<SafetensorsEntry>> SafetensorsDir::open_file(const std::string& name) {
  const std::string path = path_of(name);
  MILLRACE_ASSIGN(MappedFile file, MappedFile::open(path));
  files_.push_back(std::move(file));
  auto entries = parse_safetensors(files_.back().bytes(), path);
  MILLRACE_TRY(files_.back().check());
  return entries;
}

Status SafetensorsDir::add(const SafetensorsEntry& entry, const std::byte* data) {
  if (!entry.type) {
    if (strange_tensor_.empty())
      strange_tensor_ = fmt::format("tensor '{}' is {}", printable(entry.name, 200),
                                    printable(entry.type_name, 80));
    return {};
  }
  if (fused_experts(entry.name)) return add_experts(entry, data + entry.begin);
  add_view(gguf_name_of(entry.name, own_names_).value_or(entry.name), entry, entry.shape,
           data + entry.begin);
  return {};
}

void SafetensorsDir::add_view(std::string name, const SafetensorsEntry& entry,
                              std::vector<int64_t> shape, const std::byte* data) {
  const int64_t elems =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  names_.push_back(std::move(name));
  tensors_.push_back(
      {names_.back(), *entry.type, std::move(shape), data, bytes_of(*entry.type, elems)});
}

Status SafetensorsDir::add_experts(const SafetensorsEntry& entry, const std::byte* data) {
  const FusedExperts experts = *fused_experts(entry.name);
  const std::vector<int64_t>& s = entry.shape;
  if (s.size() != 3 || s[0] < 1 || s[0] > 4096 || (experts.gate_up && s[1] % 2 != 0))
    return error(Code::corrupt, "{}: tensor '{}' is no stack of experts", directory_, entry.name);
  const size_t each = entry.bytes / static_cast<size_t>(s[0]);
  for (int64_t e = 0; e < s[0]; ++e, data += each) {
    if (!experts.gate_up) {
      add_view(expert_name(experts.layer, "down", e), entry, {s[1], s[2]}, data);
      continue;
    }
    add_view(expert_name(experts.layer, "gate", e), entry, {s[1] / 2, s[2]}, data);
    add_view(expert_name(experts.layer, "up", e), entry, {s[1] / 2, s[2]}, data + each / 2);
  }
  return {};
}

size_t SafetensorsDir::file_bytes() const {
  return std::accumulate(
      files_.begin(), files_.end(), size_t{0},
      [](size_t sum, const MappedFile& file) { return sum + file.bytes().size(); });
}

void SafetensorsDir::drop(std::span<const std::byte> bytes) const {
  for (const MappedFile& file : files_) file.drop(bytes);
}

bool SafetensorsDir::is_damaged() const {
  return std::any_of(files_.begin(), files_.end(),
                     [](const MappedFile& file) { return file.is_damaged(); });
}

Status SafetensorsDir::check() const {
  for (const MappedFile& file : files_) MILLRACE_TRY(file.check());
  return {};
}

std::optional<bool> ties_embeddings(const SafetensorsDir& dir) {
  const auto text = dir.text("config.json");
  if (!text.ok()) return std::nullopt;
  const auto json = parse_json(text.value(), "config.json");
  if (!json.ok()) return std::nullopt;
  const JsonFields fields(json.value(), "config.json");
  const auto tied = fields.boolean_or("tie_word_embeddings", false);
  if (!tied.ok() || fields.find("tie_word_embeddings") == nullptr) return std::nullopt;
  return tied.value();
}

}  // namespace millrace
