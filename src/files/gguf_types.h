// The numbers GGUF writes for the types of values and of tensor elements. A tensor type that no
// DType covers is still known by name and block size where the format defines it, so that a file of
// it can be inspected; one that is not even that is a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace millrace {

enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};
inline constexpr uint32_t kGgufTypes = 13;

std::string_view name_of(GgufType type);
size_t gguf_type_bytes(GgufType type);  // 0 for string and array

struct GgufTensorType {
  uint32_t id;
  std::string_view name;
  int64_t block_elems;
  int64_t block_bytes;
};

std::optional<GgufTensorType> gguf_tensor_type(uint32_t id);  // none: unknown
std::string gguf_tensor_type_name(uint32_t id);               // "q4_k"; "unknown type 99"
std::optional<DType> dtype_of_gguf(uint32_t id);
std::optional<uint32_t> gguf_id_of(DType type);

}  // namespace millrace
