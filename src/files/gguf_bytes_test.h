// Builds GGUF files in memory for tests, byte by byte, so that they can be wrong in any place.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/gguf_types.h"

namespace millrace {

class GgufBytes {
 public:
  template <class T>
  GgufBytes& put(T value) {
    const auto* p = reinterpret_cast<const char*>(&value);
    bytes_.append(p, sizeof(T));
    return *this;
  }
  GgufBytes& text(std::string_view text) {
    put<uint64_t>(text.size());
    bytes_.append(text);
    return *this;
  }
  GgufBytes& begin(uint64_t n_tensors, uint64_t n_values, uint32_t version = 3) {
    bytes_.append("GGUF");
    return put(version).put(n_tensors).put(n_values);
  }
  GgufBytes& key(std::string_view name, GgufType type) {
    return text(name).put(static_cast<uint32_t>(type));
  }
  GgufBytes& u32(std::string_view name, uint32_t value) {
    return key(name, GgufType::u32).put(value);
  }
  GgufBytes& f32(std::string_view name, float value) { return key(name, GgufType::f32).put(value); }
  GgufBytes& string(std::string_view name, std::string_view value) {
    return key(name, GgufType::string).text(value);
  }
  GgufBytes& array(std::string_view name, GgufType type, uint64_t count) {
    return key(name, GgufType::array).put(static_cast<uint32_t>(type)).put(count);
  }
  // `dims` innermost first, as the file has them.
  GgufBytes& tensor(std::string_view name, std::vector<int64_t> dims, uint32_t type_id,
                    uint64_t offset) {
    text(name).put(static_cast<uint32_t>(dims.size()));
    for (const int64_t dim : dims) put(dim);
    return put(type_id).put(offset);
  }
  // Fills up to a multiple of `alignment`, then `n` bytes of data.
  GgufBytes& data(size_t n, size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    bytes_.append(n, '\x11');
    return *this;
  }

  const std::string& str() const { return bytes_; }
  std::span<const std::byte> span() const {
    return std::as_bytes(std::span(bytes_.data(), bytes_.size()));
  }

 private:
  std::string bytes_;
};

}  // namespace millrace
