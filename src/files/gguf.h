// A GGUF model (versions 2 and 3, little endian), one file or split over several, mapped. Opening
// checks everything the header claims (counts, lengths, types, shapes, offsets) against the bytes
// that are there before anything is allocated from it; what a Gguf hands out can be trusted to lie
// inside the file and not to overlap. Keys and strings are views into a copy of the header, data is
// in the mapping: they live as long as the Gguf. Whoever has read data asks check() whether the
// file was whole (memory/mapped_file.h). What the metadata means is for others
// (model/config_gguf.h, the tokenizer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "files/gguf_types.h"
#include "files/name_index.h"
#include "memory/mapped_file.h"

namespace millrace {

// A metadata value as the file holds it.
struct GgufValue {
  std::string_view key;          // valid UTF-8
  GgufType type = GgufType::u8;  // of the value, or of an array's elements; never array
  bool is_array = false;
  size_t count = 1;                    // elements
  std::span<const std::byte> bytes{};  // all elements
  size_t offset = 0;                   // of the key in its file

  // Element i as what it was asked for, when its type holds that; strings may be any bytes.
  std::optional<int64_t> integer(size_t i = 0) const;  // integer types and bool, where it fits
  std::optional<double> real(size_t i = 0) const;      // those and f32, f64
  std::optional<std::string_view> string() const;      // not of an array
  // All elements of an array of strings; empty for anything else. 16 bytes each, where the file
  // spends at least 8.
  std::vector<std::string_view> strings() const;
};

struct GgufTensor {
  std::string_view name;       // valid UTF-8
  uint32_t type_id = 0;        // GGUF's; dtype_of_gguf() says whether it is one of ours
  std::vector<int64_t> shape;  // outermost first: the file lists them the other way round
  const std::byte* data = nullptr;
  size_t bytes = 0;   // 0: of unknown type
  size_t offset = 0;  // of the data in its file
  size_t part = 0;    // which file of a split model
};

class Gguf {
 public:
  // Of a split model, the first file; the others are looked for beside it.
  static Result<Gguf> open(const std::string& path);
  // One file that is in memory already and outlives the Gguf.
  static Result<Gguf> read(std::span<const std::byte> bytes, const std::string& name);

  const std::string& path() const { return parts_.front().path; }
  uint32_t version() const { return version_; }
  size_t n_parts() const { return parts_.size(); }
  size_t file_bytes() const;  // of all parts

  // In the order of the file; of a split model, the first part's.
  std::span<const GgufValue> values() const { return values_; }
  const GgufValue* find(std::string_view key) const;
  // The error names file, key and what was wrong. Without the key: not_found.
  Result<int64_t> integer(std::string_view key) const;
  Result<double> real(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  // As above, and `fallback` without the key. A value of the wrong type stays an error.
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> real_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;

  std::span<const GgufTensor> tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;
  // Gives back the memory of the whole pages in a tensor's bytes, or in some of them; they are read
  // again when touched.
  void drop(std::span<const std::byte> bytes) const;
  // Whether a file was cut short or could not be read since; check() says which.
  bool is_damaged() const;
  Status check() const;

 private:
  struct Part {
    std::string path;
    MappedFile file;  // empty when read from memory, and so is the next
    std::vector<std::byte> header;
    std::span<const std::byte> bytes;
  };
  Gguf() = default;
  static Result<Part> open_part(const std::string& path);
  Status add_first(Part part);
  Status add_rest();  // the other files of a split model
  Status index_tensors();
  Status missing(std::string_view key) const;
  Status wrong_type(const GgufValue& value, std::string_view wanted) const;

  std::vector<Part> parts_;
  uint32_t version_ = 0;
  std::vector<GgufValue> values_;
  NameIndex<GgufValue, &GgufValue::key> values_by_key_;
  std::vector<GgufTensor> tensors_;
  NameIndex<GgufTensor, &GgufTensor::name> tensors_by_name_;
};

}  // namespace millrace
