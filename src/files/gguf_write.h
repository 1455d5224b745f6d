// Writes a GGUF file (version 3): metadata and the tensors' shapes first, then their data as it
// comes, so that a model need not be in memory. The file appears under its name when it is whole:
// until finish() it is a temporary one beside it, which the destructor removes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "files/gguf.h"
#include "tensor/dtype.h"

namespace millrace {

struct TensorPlan {
  std::string name;
  DType type = DType::f32;
  std::vector<int64_t> shape;  // outermost first; rows of whole blocks

  int64_t n_rows() const;
  size_t row_bytes() const;
  size_t bytes() const { return static_cast<size_t>(n_rows()) * row_bytes(); }
};

class GgufWriter {
 public:
  GgufWriter() = default;
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  void add_u32(std::string_view key, uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  void add(const GgufValue& value);  // as another file has it

  // The data must come in this order.
  void add_tensor(TensorPlan tensor);
  std::span<const TensorPlan> tensors() const { return tensors_; }
  size_t data_bytes() const;  // of all tensors

  // Everything is added: creates the temporary file and writes the header.
  Status begin(const std::string& path);
  // Data, which must not reach across the end of a tensor.
  Status write(std::span<const std::byte> bytes);
  // On disk, under its name. An error when data is missing.
  Status finish();

 private:
  void add_key(std::string_view key, GgufType type);
  void add_array(std::string_view key, GgufType type, size_t count);
  std::string header() const;
  Status put_bytes(const void* bytes, size_t n);
  Status pad();
  Status failed(std::string_view what) const;

  uint64_t n_keys_ = 0;
  std::string meta_;
  std::vector<TensorPlan> tensors_;
  std::string path_, temporary_;
  int fd_ = -1;
  size_t at_ = 0;       // bytes written to the file
  size_t tensor_ = 0;   // whose data comes next
  size_t written_ = 0;  // of it
};

}  // namespace millrace
