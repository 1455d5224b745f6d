// Counts every operator new of the test program it is linked into.
#pragma once

#include <cstdint>

namespace millrace {

int64_t n_allocations();

}  // namespace millrace
