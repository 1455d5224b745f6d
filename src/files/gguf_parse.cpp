#include "files/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/utf8.h"

namespace millrace {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMinAlignment = 8;  // the format's; no element is wider
// Far above any model (Qwen3 235B: 1131 tensors): what a hostile file can make us index stays
// small.
constexpr uint64_t kMaxKeys = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 16;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint32_t kMaxDims = 4;
// The fewest bytes a key and value (a one-letter key, a byte) and a tensor can take.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class Parser {
 public:
  Parser(std::span<const std::byte> header, std::span<const std::byte> all, std::string_view file)
      : bytes_(header), all_(all), file_(file) {}
  Result<GgufHeader> run();

 private:
  Status read_preamble();
  Status read_value(uint64_t i);
  Status read_elements(GgufValue& value);
  Status skip_strings(uint64_t count);
  Status read_tensor(uint64_t i);
  Status read_shape(GgufTensor& tensor);
  Status size_tensor(GgufTensor& tensor);
  Status check_duplicates();
  Status find_alignment();
  Status place_tensors();
  Status check_overlap();

  size_t left() const { return bytes_.size() - at_; }

  // An error at `offset`, about what is being read.
  template <class... A>
  Status bad(size_t offset, fmt::format_string<A...> format, A&&... args) const {
    return error(Code::corrupt, "{}: at byte {}{}: {}", printable(file_), offset, subject_,
                 fmt::format(format, std::forward<A>(args)...));
  }
  Status truncated(std::string_view what, uint64_t wanted) const {
    return bad(at_,
               "the file ends inside {} ({} bytes wanted, {} left); is it a complete download?",
               what, wanted, left());
  }

  template <class T>
  Status number(std::string_view what, T& out) {
    if (left() < sizeof(T)) return truncated(what, sizeof(T));
    std::memcpy(&out, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return {};
  }
  Status string(std::string_view what, uint64_t max_bytes, std::string_view& out);
  Status name(std::string_view what, uint64_t max_bytes, std::string_view& out);

  std::span<const std::byte> bytes_, all_;  // of the header, at least; of the file
  std::string_view file_;
  std::string subject_;  // ", key 'x'"
  size_t at_ = 0;
  uint64_t n_tensors_ = 0;
  uint64_t n_values_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  GgufHeader header_;
};

Status Parser::string(std::string_view what, uint64_t max_bytes, std::string_view& out) {
  const size_t begin = at_;
  uint64_t length = 0;
  MILLRACE_TRY(number(what, length));
  if (length > max_bytes)
    return bad(begin, "{} is {} bytes long, more than {}", what, length, max_bytes);
  if (length > left()) return truncated(what, length);
  out = {reinterpret_cast<const char*>(bytes_.data() + at_), static_cast<size_t>(length)};
  at_ += length;
  return {};
}

Status Parser::name(std::string_view what, uint64_t max_bytes, std::string_view& out) {
  const size_t begin = at_;
  MILLRACE_TRY(string(what, max_bytes, out));
  if (out.empty()) return bad(begin, "{} is empty", what);
  if (!is_utf8(out)) return bad(begin, "{} '{}' is not UTF-8", what, printable(out, 80));
  return {};
}

Status Parser::read_preamble() {
  uint32_t magic = 0;
  MILLRACE_TRY(number("the magic number", magic));
  if (magic != kMagic) return bad(0, "not a GGUF file: it does not begin with 'GGUF'");
  const size_t begin = at_;
  MILLRACE_TRY(number("the version", header_.version));
  const uint32_t version = header_.version;
  if (version == __builtin_bswap32(2) || version == __builtin_bswap32(3))
    return error(Code::unsupported, "{}: a big-endian GGUF file; convert it to little endian",
                 printable(file_));
  if (version != 2 && version != 3)
    return error(Code::unsupported, "{}: at byte {}: GGUF version {}; 2 and 3 can be read",
                 printable(file_), begin, version);
  MILLRACE_TRY(number("the number of tensors", n_tensors_));
  MILLRACE_TRY(number("the number of keys", n_values_));
  if (n_values_ > std::min(kMaxKeys, left() / kMinKeyBytes))
    return bad(begin, "{} keys in {} bytes (at most {})", n_values_, left(), kMaxKeys);
  if (n_tensors_ > std::min(kMaxTensors, left() / kMinTensorBytes))
    return bad(begin, "{} tensors in {} bytes (at most {})", n_tensors_, left(), kMaxTensors);
  return {};
}

Status Parser::skip_strings(uint64_t count) {
  std::string_view ignored;
  for (uint64_t i = 0; i < count; ++i) MILLRACE_TRY(string("a string", left(), ignored));
  return {};
}

Status Parser::read_elements(GgufValue& value) {
  const size_t begin = at_;
  const bool strings = value.type == GgufType::string;
  const size_t least = strings ? sizeof(uint64_t) : gguf_type_bytes(value.type);
  if (value.count > left() / least)
    return bad(at_, "{} elements of {} in the {} bytes left; is it a complete download?",
               value.count, name_of(value.type), left());
  if (strings)
    MILLRACE_TRY(skip_strings(value.count));
  else
    at_ += value.count * least;
  value.bytes = bytes_.subspan(begin, at_ - begin);
  return {};
}

Status Parser::read_value(uint64_t i) {
  GgufValue value;
  value.offset = at_;
  subject_ = fmt::format(", key {} of {}", i + 1, n_values_);
  MILLRACE_TRY(name("a key", kMaxKeyBytes, value.key));
  subject_ = fmt::format(", key '{}'", printable(value.key, 200));
  uint32_t type = 0;
  MILLRACE_TRY(number("the value's type", type));
  if (type == static_cast<uint32_t>(GgufType::array)) {
    uint64_t count = 0;
    MILLRACE_TRY(number("the elements' type", type));
    MILLRACE_TRY(number("the array's length", count));
    value.is_array = true;
    value.count = static_cast<size_t>(count);
    if (type == static_cast<uint32_t>(GgufType::array))
      return bad(value.offset, "an array of arrays, which no model needs");
  }
  if (type >= kGgufTypes) return bad(value.offset, "value type {} is not known", type);
  value.type = static_cast<GgufType>(type);
  MILLRACE_TRY(read_elements(value));
  header_.values.push_back(value);
  return {};
}

Status Parser::read_shape(GgufTensor& tensor) {
  const size_t begin = at_;
  uint32_t n_dims = 0;
  MILLRACE_TRY(number("the number of dimensions", n_dims));
  if (n_dims < 1 || n_dims > kMaxDims)
    return bad(begin, "{} dimensions, outside 1 to {}", n_dims, kMaxDims);
  int64_t elems = 1;
  for (uint32_t d = 0; d < n_dims; ++d) {
    int64_t length = 0;
    MILLRACE_TRY(number("a dimension", length));
    if (length < 1) return bad(begin, "a dimension of {}", length);
    if (__builtin_mul_overflow(elems, length, &elems))
      return bad(begin, "the product of the dimensions overflows");
    tensor.shape.insert(tensor.shape.begin(), length);
  }
  return {};
}

// The bytes of its data, where the type is known; reaching beyond the file is found out later.
Status Parser::size_tensor(GgufTensor& tensor) {
  const GgufTensorType* type = gguf_tensor_type(tensor.type_id);
  if (type == nullptr) return {};
  if (tensor.shape.back() % type->block_elems != 0)
    return bad(at_, "rows of {} elements are not whole blocks of {} ({})", tensor.shape.back(),
               type->block_elems, type->name);
  int64_t n_blocks = 1;
  for (const int64_t length : tensor.shape) n_blocks *= length;
  n_blocks /= type->block_elems;
  if (__builtin_mul_overflow(n_blocks, type->block_bytes, &tensor.bytes))
    return bad(at_, "the size of {} blocks of {} bytes overflows", n_blocks, type->block_bytes);
  return {};
}

Status Parser::read_tensor(uint64_t i) {
  GgufTensor tensor;
  subject_ = fmt::format(", tensor {} of {}", i + 1, n_tensors_);
  MILLRACE_TRY(name("a tensor's name", kMaxTensorNameBytes, tensor.name));
  subject_ = fmt::format(", tensor '{}'", printable(tensor.name));
  MILLRACE_TRY(read_shape(tensor));
  MILLRACE_TRY(number("the type", tensor.type_id));
  MILLRACE_TRY(size_tensor(tensor));
  uint64_t offset = 0;
  MILLRACE_TRY(number("the offset", offset));
  tensor.offset = offset;  // from the start of the data until place_tensors()
  header_.tensors.push_back(std::move(tensor));
  return {};
}

Status Parser::check_duplicates() {
  subject_.clear();
  const NameIndex<GgufValue, &GgufValue::key> keys(header_.values);
  if (const GgufValue* twice = keys.duplicate(header_.values))
    return bad(twice->offset, "key '{}' is there twice", printable(twice->key, 200));
  const NameIndex<GgufTensor, &GgufTensor::name> names(header_.tensors);
  if (const GgufTensor* twice = names.duplicate(header_.tensors))
    return bad(at_, "tensor '{}' is there twice", printable(twice->name));
  return {};
}

Status Parser::find_alignment() {
  for (const GgufValue& value : header_.values) {
    if (value.key != "general.alignment") continue;
    const auto alignment = value.integer();
    if (value.type != GgufType::u32 || value.is_array)
      return bad(value.offset, "general.alignment is not a u32");
    alignment_ = static_cast<uint64_t>(*alignment);
    if (alignment_ < kMinAlignment || !std::has_single_bit(alignment_))
      return bad(value.offset, "general.alignment is {}, not a power of two from {} on", alignment_,
                 kMinAlignment);
  }
  return {};
}

Status Parser::place_tensors() {
  const uint64_t begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
  const uint64_t room = begin < all_.size() ? all_.size() - begin : 0;
  for (GgufTensor& tensor : header_.tensors) {
    subject_ = fmt::format(", tensor '{}'", printable(tensor.name));
    if (tensor.offset % alignment_ != 0)
      return bad(at_, "its offset {} is not a multiple of {}", tensor.offset, alignment_);
    if (tensor.offset > room || tensor.bytes > room - tensor.offset)
      return bad(
          at_,
          "its {} bytes at {} of the data reach beyond the file, which has {} bytes of data; "
          "is it a complete download?",
          tensor.bytes, tensor.offset, room);
    tensor.offset += begin;
    tensor.data = all_.data() + tensor.offset;
  }
  return check_overlap();
}

Status Parser::check_overlap() {
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : header_.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes <= order[i]->offset) continue;
    subject_ = fmt::format(", tensor '{}'", printable(order[i]->name));
    return bad(order[i]->offset, "its data overlaps that of '{}'", printable(order[i - 1]->name));
  }
  return {};
}

Result<GgufHeader> Parser::run() {
  MILLRACE_TRY(read_preamble());
  for (uint64_t i = 0; i < n_values_; ++i) MILLRACE_TRY(read_value(i));
  for (uint64_t i = 0; i < n_tensors_; ++i) MILLRACE_TRY(read_tensor(i));
  header_.bytes = at_;
  MILLRACE_TRY(check_duplicates());
  MILLRACE_TRY(find_alignment());
  MILLRACE_TRY(place_tensors());
  return std::move(header_);
}

}  // namespace

Result<GgufHeader> parse_gguf(std::span<const std::byte> header, std::span<const std::byte> file,
                              std::string_view name) {
  return Parser(header, file, name).run();
}

}  // namespace millrace
