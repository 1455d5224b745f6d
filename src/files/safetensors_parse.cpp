#include "files/safetensors_parse.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxDims = 8;

struct ElementType {
  std::string_view name;
  int64_t bytes;
  std::optional<DType> type;
};

constexpr ElementType kElementTypes[] = {
    {"F32", 4, DType::f32}, {"F16", 2, DType::f16}, {"BF16", 2, DType::bf16}, {"F64", 8, {}},
    {"I64", 8, {}},         {"I32", 4, DType::i32}, {"I16", 2, {}},           {"I8", 1, DType::i8},
    {"U8", 1, DType::u8},   {"BOOL", 1, {}},        {"F8_E4M3", 1, {}},       {"F8_E5M2", 1, {}},
    {"U16", 2, {}},         {"U32", 4, {}},         {"U64", 8, {}},
};

const ElementType* element_type(std::string_view name) {
  const auto* at = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                [&](const ElementType& t) { return t.name == name; });
  return at == std::end(kElementTypes) ? nullptr : at;
}

// Takes the header's events: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
// and
// {"__metadata__": {"any": "text"}}. Whatever else comes ends the parse with `problem`.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<SafetensorsEntry> entries;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > uint64_t{INT64_MAX}) return fail(fmt::format("the number {} is too large", value));
    return number(static_cast<int64_t>(value));
  }
  bool string(string_t& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || field_ != "dtype") return unexpected("a string");
    entries.back().type_name = value;
    return true;
  }
  bool start_object(size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return fail(fmt::format("not valid JSON at byte {} of it", position));
  }

 private:
  enum class Place { before, top, tensor, metadata, array, after };

  bool fail(std::string why) {
    problem =
        name_.empty() ? std::move(why) : fmt::format("tensor '{}': {}", printable(name_, 200), why);
    return false;
  }
  bool unexpected(std::string_view what) {
    return fail(fmt::format("{} is not allowed here", what));
  }
  bool number(int64_t value) {
    if (place_ != Place::array) return unexpected("a number");
    if (value < 0) return fail(fmt::format("'{}' holds {}", field_, value));
    if (numbers_.size() == kMaxDims) return fail(fmt::format("'{}' is too long", field_));
    numbers_.push_back(value);
    return true;
  }

  Place place_ = Place::before;
  std::string name_;              // the tensor
  std::string field_;             // of the tensor
  std::set<std::string> fields_;  // of the tensor, seen
  std::vector<int64_t> numbers_;  // of the array
};

bool HeaderReader::start_object(size_t) {
  if (place_ == Place::before) {
    place_ = Place::top;
  } else if (place_ == Place::top && name_ == "__metadata__") {
    place_ = Place::metadata;
  } else if (place_ == Place::top) {
    place_ = Place::tensor;
    fields_.clear();
    entries.emplace_back().name = name_;
  } else {
    return unexpected("an object");
  }
  return true;
}

bool HeaderReader::key(string_t& name) {
  if (place_ == Place::top) {
    name_ = name;
    return name_.empty() ? fail("a tensor without a name") : true;
  }
  if (place_ == Place::metadata) return true;
  field_ = name;
  if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets")
    return fail(fmt::format("unknown field '{}'", printable(field_, 80)));
  return fields_.insert(field_).second ? true : fail(fmt::format("'{}' twice", field_));
}

bool HeaderReader::end_object() {
  if (place_ == Place::tensor && fields_.size() != 3)
    return fail("one of dtype, shape and data_offsets is missing");
  place_ = place_ == Place::top ? Place::after : Place::top;
  name_.clear();
  return true;
}

bool HeaderReader::start_array(size_t) {
  if (place_ != Place::tensor || field_ == "dtype") return unexpected("an array");
  place_ = Place::array;
  numbers_.clear();
  return true;
}

bool HeaderReader::end_array() {
  place_ = Place::tensor;
  if (field_ == "shape") {
    entries.back().shape = numbers_;
    return true;
  }
  if (numbers_.size() != 2 || numbers_[0] > numbers_[1])
    return fail("'data_offsets' is not a range");
  entries.back().begin = static_cast<size_t>(numbers_[0]);
  entries.back().bytes = static_cast<size_t>(numbers_[1] - numbers_[0]);
  return true;
}

class Checker {
 public:
  explicit Checker(std::string_view file) : file_(file) {}

  template <class... A>
  Status bad(fmt::format_string<A...> format, A&&... args) const {
    return error(Code::corrupt, "{}: {}", printable(file_),
                 fmt::format(format, std::forward<A>(args)...));
  }
  Status bad_tensor(const SafetensorsEntry& entry, std::string_view why) const {
    return bad("tensor '{}': {}", printable(entry.name, 200), why);
  }

  // Shape and type against the bytes the header gives it.
  Status check_size(SafetensorsEntry& entry) const {
    const ElementType* type = element_type(entry.type_name);
    if (type == nullptr) return {};
    entry.type = type->type;
    int64_t bytes = type->bytes;
    for (const int64_t length : entry.shape)
      if (__builtin_mul_overflow(bytes, length, &bytes))
        return bad_tensor(entry, "the product of its shape overflows");
    if (static_cast<size_t>(bytes) != entry.bytes)
      return bad_tensor(
          entry, fmt::format("its shape needs {} bytes, data_offsets give {}", bytes, entry.bytes));
    if (entry.begin % static_cast<size_t>(type->bytes) != 0)
      return error(
          Code::unsupported,
          "{}: tensor '{}' starts at byte {}, which is not a multiple of {}; save it again with a "
          "current safetensors",
          printable(file_), printable(entry.name, 200), entry.begin, type->bytes);
    return {};
  }

  // The tensors in order fill [begin, end) of the file.
  Status check_cover(const std::vector<SafetensorsEntry>& entries, size_t begin, size_t end) const {
    size_t at = begin;
    for (const SafetensorsEntry& entry : entries) {
      if (entry.begin != at)
        return bad_tensor(
            entry, fmt::format("its data starts at byte {}, but the data before it ends at {}",
                               entry.begin, at));
      at += entry.bytes;
    }
    if (at != end)
      return bad("the tensors end at byte {}, the file at {}; is the download complete?", at, end);
    return {};
  }

  Status check_names(const std::vector<SafetensorsEntry>& entries) const {
    std::set<std::string_view> names;
    for (const SafetensorsEntry& entry : entries)
      if (!names.insert(entry.name).second) return bad_tensor(entry, "occurs twice");
    return {};
  }

 private:
  std::string_view file_;
};

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> bytes,
                                                        std::string_view file) {
  const Checker checker(file);
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes)
    return checker.bad("at byte 0: not a safetensors file: too short");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length < 2 || length > std::min<uint64_t>(kMaxHeaderBytes, bytes.size() - kLengthBytes))
    return checker.bad("at byte 0: a header of {} bytes in a file of {}; is the download complete?",
                       length, bytes.size());
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (header.front() != '{') return checker.bad("at byte 8: the header does not start with '{{'");
  HeaderReader reader;
  if (!Json::sax_parse(header.begin(), header.end(), &reader))
    return checker.bad("at byte 8, the header: {}", reader.problem);
  std::vector<SafetensorsEntry> entries = std::move(reader.entries);
  const size_t data = kLengthBytes + length;
  for (SafetensorsEntry& entry : entries) {
    if (entry.begin > bytes.size() - data || entry.bytes > bytes.size() - data - entry.begin)
      return checker.bad_tensor(
          entry, "its data reaches past the end of the file; is the download complete?");
    entry.begin += data;
    MILLRACE_TRY(checker.check_size(entry));
  }
  MILLRACE_TRY(checker.check_names(entries));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes;
  });
  MILLRACE_TRY(checker.check_cover(entries, data, bytes.size()));
  return entries;
}

}  // namespace millrace
