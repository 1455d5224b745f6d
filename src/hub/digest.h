// Checksums over OpenSSL: how a download is known to be what was asked for, and a secret known
// again without being kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

enum class DigestKind : unsigned char {
  sha256,
  git_blob,  // SHA-1 of "blob <size>\0" and the bytes: how Git names a file's content
};

struct Checksum {
  DigestKind kind = DigestKind::sha256;
  std::string hex;  // lower case; empty: not known
};

// Whether the text is as many lower-case hexadecimal digits as the digest has.
bool is_checksum(DigestKind kind, std::string_view hex);

// Of a whole file. `stopped` is asked between blocks; cancelled when it says so.
Result<std::string> digest_of_file(const std::string& path, DigestKind kind,
                                   const std::function<bool()>& stopped);

using Sha256 = std::array<uint8_t, 32>;
Sha256 sha256(std::span<const std::byte> bytes);
std::string sha256_of(std::string_view text);  // in hexadecimal digits

}  // namespace millrace
