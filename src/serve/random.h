// Randomness for names and seeds: what nobody can guess and nobody has had before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace::serve {

// Letters and digits.
std::string random_letters(size_t n);
std::string random_hex(size_t n);
// Of JSON's integers every reader has so many.
uint64_t random_53_bits();

}  // namespace millrace::serve
