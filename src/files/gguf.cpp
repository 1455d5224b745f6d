#include "files/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/utf8.h"
#include "files/gguf_parse.h"

namespace millrace {
namespace {

constexpr int64_t kMaxParts = 1000;

template <class T>
T element(const GgufValue& value, size_t i) {
  T out;
  std::memcpy(&out, value.bytes.data() + i * sizeof(T), sizeof(T));
  return out;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "-00001-of-00003.gguf", what names one file of a split model.
std::string part_suffix(int64_t part, int64_t n_parts) {
  return fmt::format("-{:05}-of-{:05}.gguf", part + 1, n_parts);
}

Status bad_split(const std::string& path, std::string_view what) {
  return error(Code::corrupt, "{}: {}", printable(path), what);
}

// The value of a split.* key among those of one part.
Result<int64_t> split_number(std::span<const GgufValue> values, std::string_view key,
                             const std::string& path) {
  for (const GgufValue& value : values) {
    if (value.key != key || value.is_array) continue;
    if (const auto number = value.integer()) return *number;
  }
  return bad_split(path, fmt::format("key '{}' is missing or not a number", key));
}

Status check_part(std::span<const GgufValue> values, const std::string& path, int64_t part,
                  int64_t n_parts) {
  MILLRACE_ASSIGN(const int64_t no, split_number(values, "split.no", path));
  MILLRACE_ASSIGN(const int64_t count, split_number(values, "split.count", path));
  if (no == part && count == n_parts) return {};
  return bad_split(path, fmt::format("says it is part {} of {} where part {} of {} belongs", no + 1,
                                     count, part + 1, n_parts));
}

}  // namespace

std::optional<int64_t> GgufValue::integer(size_t i) const {
  if (i >= count) return std::nullopt;
  switch (type) {
    case GgufType::u8:
      return element<uint8_t>(*this, i);
    case GgufType::i8:
      return element<int8_t>(*this, i);
    case GgufType::u16:
      return element<uint16_t>(*this, i);
    case GgufType::i16:
      return element<int16_t>(*this, i);
    case GgufType::u32:
      return element<uint32_t>(*this, i);
    case GgufType::i32:
      return element<int32_t>(*this, i);
    case GgufType::boolean:
      return element<uint8_t>(*this, i) != 0 ? 1 : 0;
    case GgufType::i64:
      return element<int64_t>(*this, i);
    case GgufType::u64: {
      const auto wide = element<uint64_t>(*this, i);
      if (wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(wide);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::real(size_t i) const {
  if (i >= count) return std::nullopt;
  if (type == GgufType::f32) return element<float>(*this, i);
  if (type == GgufType::f64) return element<double>(*this, i);
  if (type == GgufType::u64) return static_cast<double>(element<uint64_t>(*this, i));
  if (const auto whole = integer(i)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::string_view> GgufValue::string() const {
  if (is_array || type != GgufType::string) return std::nullopt;
  return text_of(bytes.subspan(sizeof(uint64_t)));
}

std::vector<std::string_view> GgufValue::strings() const {
  std::vector<std::string_view> out;
  if (!is_array || type != GgufType::string) return out;
  out.reserve(count);
  for (size_t at = 0; out.size() < count;) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    out.push_back(text_of(bytes.subspan(at + sizeof(length), length)));
    at += sizeof(length) + length;
  }
  return out;
}

// The header is parsed twice: where it lies, to find its end, and as a copy, which is the one that
// counts, since nobody can change it any more.
Result<Gguf::Part> Gguf::open_part(const std::string& path) {
  Part part;
  part.path = path;
  MILLRACE_ASSIGN(part.file, MappedFile::open(path));
  part.bytes = part.file.bytes();
  const auto header = parse_gguf(part.bytes, part.bytes, path);
  MILLRACE_TRY(part.file.check());
  MILLRACE_TRY(header.status());
  const auto first = part.bytes.first(header.value().bytes);
  part.header.assign(first.begin(), first.end());
  part.file.drop(first);
  MILLRACE_TRY(part.file.check());
  return part;
}

Result<Gguf> Gguf::open(const std::string& path) {
  MILLRACE_ASSIGN(Part part, open_part(path));
  Gguf gguf;
  MILLRACE_TRY(gguf.add_first(std::move(part)));
  MILLRACE_TRY(gguf.add_rest());
  MILLRACE_TRY(gguf.index_tensors());
  return gguf;
}

Result<Gguf> Gguf::read(std::span<const std::byte> bytes, const std::string& name) {
  Gguf gguf;
  MILLRACE_TRY(gguf.add_first({name, {}, {}, bytes}));
  MILLRACE_TRY(gguf.index_tensors());
  return gguf;
}

Status Gguf::add_first(Part part) {
  const std::span<const std::byte> copied = part.header;
  MILLRACE_ASSIGN(GgufHeader header,
                  parse_gguf(copied.empty() ? part.bytes : copied, part.bytes, part.path));
  version_ = header.version;
  values_ = std::move(header.values);
  values_by_key_ = NameIndex<GgufValue, &GgufValue::key>(values_);
  tensors_ = std::move(header.tensors);
  parts_.push_back(std::move(part));
  return {};
}

Status Gguf::add_rest() {
  MILLRACE_ASSIGN(const int64_t n_parts, integer_or("split.count", 0));
  if (n_parts <= 1) return {};
  const std::string first = path(), suffix = part_suffix(0, n_parts);
  if (n_parts > kMaxParts)
    return bad_split(first, fmt::format("split into {} files (at most {})", n_parts, kMaxParts));
  if (!first.ends_with(suffix))
    return error(Code::invalid_argument,
                 "{}: one of {} files of a split model; open the one whose name ends in {}",
                 printable(first), n_parts, suffix);
  MILLRACE_TRY(check_part(values_, first, 0, n_parts));
  const std::string stem = first.substr(0, first.size() - suffix.size());
  for (int64_t i = 1; i < n_parts; ++i) {
    const std::string path = stem + part_suffix(i, n_parts);
    MILLRACE_ASSIGN(Part part, open_part(path));
    MILLRACE_ASSIGN(GgufHeader header, parse_gguf(part.header, part.bytes, path));
    MILLRACE_TRY(check_part(header.values, path, i, n_parts));
    for (GgufTensor& tensor : header.tensors) {
      tensor.part = static_cast<size_t>(i);
      tensors_.push_back(std::move(tensor));
    }
    parts_.push_back(std::move(part));
  }
  MILLRACE_ASSIGN(const int64_t n_tensors,
                  integer_or("split.tensors.count", static_cast<int64_t>(tensors_.size())));
  if (n_tensors == static_cast<int64_t>(tensors_.size())) return {};
  return bad_split(first, fmt::format("split.tensors.count is {}, but its {} files have {} tensors",
                                      n_tensors, n_parts, tensors_.size()));
}

Status Gguf::index_tensors() {
  tensors_by_name_ = NameIndex<GgufTensor, &GgufTensor::name>(tensors_);
  if (const GgufTensor* twice = tensors_by_name_.duplicate(tensors_))
    return bad_split(parts_[twice->part].path,
                     fmt::format("tensor '{}' is in another file of this model too", twice->name));
  return {};
}

size_t Gguf::file_bytes() const {
  return std::accumulate(parts_.begin(), parts_.end(), size_t{0},
                         [](size_t sum, const Part& part) { return sum + part.bytes.size(); });
}

const GgufValue* Gguf::find(std::string_view key) const {
  return values_by_key_.find(values_, key);
}

const GgufTensor* Gguf::find_tensor(std::string_view name) const {
  return tensors_by_name_.find(tensors_, name);
}

void Gguf::drop(std::span<const std::byte> bytes) const {
  for (const Part& part : parts_) part.file.drop(bytes);
}

bool Gguf::is_damaged() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.file.is_damaged(); });
}

Status Gguf::check() const {
  for (const Part& part : parts_) MILLRACE_TRY(part.file.check());
  return {};
}

Status Gguf::missing(std::string_view key) const {
  return error(Code::not_found, "{}: key '{}' is missing", printable(path()), key);
}

Status Gguf::wrong_type(const GgufValue& value, std::string_view wanted) const {
  return error(Code::corrupt, "{}: at byte {}, key '{}': {}{} where {} belongs", printable(path()),
               value.offset, value.key, value.is_array ? "an array of " : "", name_of(value.type),
               wanted);
}

Result<int64_t> Gguf::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  const auto number = value->integer();
  if (value->is_array || !number) return wrong_type(*value, "an integer");
  return *number;
}

Result<double> Gguf::real(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  const auto number = value->real();
  if (value->is_array || !number) return wrong_type(*value, "a number");
  return *number;
}

Result<bool> Gguf::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  if (value->is_array || value->type != GgufType::boolean) return wrong_type(*value, "a bool");
  return *value->integer() != 0;
}

Result<std::string_view> Gguf::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(key);
  const auto text = value->string();
  if (!text) return wrong_type(*value, "a string");
  return *text;
}

Result<int64_t> Gguf::integer_or(std::string_view key, int64_t fallback) const {
  return find(key) == nullptr ? fallback : integer(key);
}

Result<double> Gguf::real_or(std::string_view key, double fallback) const {
  return find(key) == nullptr ? fallback : real(key);
}

Result<bool> Gguf::boolean_or(std::string_view key, bool fallback) const {
  return find(key) == nullptr ? fallback : boolean(key);
}

Result<std::string_view> Gguf::string_or(std::string_view key, std::string_view fallback) const {
  return find(key) == nullptr ? fallback : string(key);
}

}  // namespace millrace
