#include "model/inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/utf8.h"
#include "files/gguf.h"
#include "files/json.h"
#include "files/safetensors.h"
#include "model/architecture.h"
#include "tensor/format.h"

namespace millrace {
namespace {

constexpr size_t kShownElems = 8;
constexpr size_t kShownBytes = 160;

int64_t n_elems(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string files_text(size_t n) {
  return n == 1 ? "1 file" : fmt::format("{} files", n);
}

class Tally {
 public:
  explicit Tally(Inspection& out) : out_(out) {}
  void add(const std::string& type, const std::vector<int64_t>& shape, size_t bytes) {
    TypeShare& share = shares_.try_emplace(type, TypeShare{type}).first->second;
    ++share.n_tensors;
    share.bytes += bytes;
    out_.tensor_bytes += bytes;
    out_.n_parameters += n_elems(shape);
  }
  void finish() {
    for (auto& [type, share] : shares_) out_.types.push_back(std::move(share));
    std::stable_sort(out_.types.begin(), out_.types.end(),
                     [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
  }

 private:
  Inspection& out_;
  std::map<std::string, TypeShare> shares_;
};

void describe(const Gguf& gguf, Inspection& out) {
  const auto text = [&](std::string_view key) {
    const auto value = gguf.string(key);
    return value.ok() ? printable(value.value(), 200) : std::string();
  };
  out.format = fmt::format("GGUF {}, {}", gguf.version(), files_text(gguf.n_parts()));
  out.architecture = text("general.architecture");
  out.name = text("general.name");
  Tally tally(out);
  for (const GgufTensor& t : gguf.tensors())
    tally.add(gguf_tensor_type_name(t.type_id), t.shape, t.bytes);
  tally.finish();
}

void describe(const SafetensorsDir& dir, Inspection& out) {
  out.format = fmt::format("safetensors, {}", files_text(dir.n_files()));
  out.name = printable(std::filesystem::absolute(dir.directory()).filename().string(), 200);
  const auto text = dir.text("config.json");
  if (text.ok()) {
    const auto json = parse_json(text.value(), "config.json");
    if (json.ok()) {
      const auto type = JsonFields(json.value(), "config.json").string_or("model_type", "");
      if (type.ok()) out.architecture = printable(type.value(), 80);
    }
  }
  Tally tally(out);
  for (const TensorView& t : dir.tensors())
    tally.add(std::string(name_of(t.type)), t.shape, t.bytes);
  tally.finish();
}

nlohmann::ordered_json element_json(const GgufValue& value, size_t i) {
  if (value.type == GgufType::boolean) return *value.integer(i) != 0;
  if (value.type == GgufType::f32 || value.type == GgufType::f64) return *value.real(i);
  if (const auto whole = value.integer(i)) return *whole;
  return *value.real(i);  // a u64 beyond int64_t
}

std::vector<std::string> first_elements(const GgufValue& value) {
  const size_t n = std::min(value.count, kShownElems);
  std::vector<std::string> out;
  if (value.type == GgufType::string) {
    const auto strings = value.strings();
    for (size_t i = 0; i < n; ++i) out.push_back(fmt::format("'{}'", printable(strings[i], 40)));
  } else {
    for (size_t i = 0; i < n; ++i) out.push_back(element_json(value, i).dump());
  }
  return out;
}

}  // namespace

std::string value_text(const GgufValue& value) {
  if (const auto text = value.string()) return printable(*text, kShownBytes);
  if (!value.is_array) return element_json(value, 0).dump();
  return fmt::format("{} x {}: {}{}", value.count, name_of(value.type),
                     fmt::join(first_elements(value), ", "),
                     value.count > kShownElems ? ", ..." : "");
}

nlohmann::ordered_json value_json(const GgufValue& value) {
  if (const auto text = value.string()) return *text;
  if (!value.is_array) return element_json(value, 0);
  auto first = nlohmann::ordered_json::array();
  const auto strings = value.strings();
  for (size_t i = 0; i < std::min(value.count, kShownElems); ++i)
    if (value.type == GgufType::string)
      first.push_back(strings[i]);
    else
      first.push_back(element_json(value, i));
  return {{"array", name_of(value.type)}, {"count", value.count}, {"first", std::move(first)}};
}

Inspection inspect(const ModelFile& file) {
  Inspection out;
  out.file_bytes = file.file_bytes();
  if (file.gguf() != nullptr)
    describe(*file.gguf(), out);
  else
    describe(*file.safetensors(), out);
  const Status checked = check_model(file).status();
  out.runs = checked.ok();
  out.why_not = checked.message();
  const auto config = read_config(file);
  if (!config.ok()) return out;
  out.config = config.value();
  out.unused = unused_tensors(file, build_step(config.value(), file));
  return out;
}

}  // namespace millrace
