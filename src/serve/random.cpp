#include "serve/random.h"

#include <sys/random.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::serve {
namespace {

void fill(std::span<unsigned char> bytes) {
  (void)!getrandom(bytes.data(), bytes.size(), 0);  // so few never fail once the system is up
}

std::string random_of(std::string_view letters, size_t n) {
  std::vector<unsigned char> bytes(4 * n);
  fill(bytes);
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    uint32_t drawn = 0;
    std::memcpy(&drawn, &bytes[4 * i], sizeof drawn);
    out += letters[drawn % letters.size()];
  }
  return out;
}

}  // namespace

std::string random_letters(size_t n) {
  return random_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", n);
}

std::string random_hex(size_t n) {
  return random_of("0123456789abcdef", n);
}

uint64_t random_53_bits() {
  uint64_t out = 0;
  fill({reinterpret_cast<unsigned char*>(&out), sizeof out});
  return out >> 11;
}

}  // namespace millrace::serve
