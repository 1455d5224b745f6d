// Fast hashes of bytes (XXH3) that stay the same across builds and machines: for what is kept on
// disk or compared between processes, never against someone who chooses the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace {

uint64_t hash64(std::span<const std::byte> bytes);
// 128 bits as 32 hexadecimal digits.
std::string hash128(std::string_view bytes);

}  // namespace millrace
