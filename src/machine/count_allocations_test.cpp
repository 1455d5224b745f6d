#include "machine/count_allocations_test.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> n_made{0};
}  // namespace

int64_t millrace::n_allocations() {
  return n_made;
}

// In a file of their own: inlined into other code they look to g++ like mismatched pairs.
void* operator new(size_t bytes) {
  ++n_made;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++n_made;
  return std::malloc(bytes);
}
void* operator new(size_t bytes, std::align_val_t align) {
  ++n_made;
  const auto unit = static_cast<size_t>(align);
  if (void* p = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
