// Fast hashes of bytes (XXH3) that stay the same across builds and machines: for what is kept on
// disk or compared between processes, never against someone who chooses the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
// 128 bits as 32 hexadecimal digits.
std::string hash128(std::string_view bytes);

// The same 128 bits as a value that can be a key.
struct Hash128 {
  uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
};
Hash128 hash128_value(std::span<const std::byte> bytes);

}  // namespace millrace

template <>
struct std::hash<millrace::Hash128> {
  size_t operator()(const millrace::Hash128& value) const { return value.low; }
};
