#include "memory/host.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace millrace {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

void* map(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

Result<HostBuffer> HostBuffer::make(size_t bytes, Pages pages) {
  HostBuffer b;
  if (bytes == 0) return b;
  if (bytes > SIZE_MAX / 2) return error(Code::out_of_memory, "a host buffer of {} bytes", bytes);
  const bool huge = pages == Pages::huge && bytes >= kHugePage;
  const size_t mapped = round_up(bytes, huge ? kHugePage : size_t(sysconf(_SC_PAGESIZE)));
  void* p = map(huge ? mapped + kHugePage : mapped);
  if (p == nullptr) return error(Code::out_of_memory, "cannot map {} bytes of host memory", bytes);
  auto* begin = static_cast<std::byte*>(p);
  if (huge) {  // trim to a huge-page boundary, so that the kernel can back it with whole huge pages
    auto* aligned =
        reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(p), kHugePage));
    if (aligned != begin) munmap(begin, static_cast<size_t>(aligned - begin));
    const auto tail = static_cast<size_t>(begin + kHugePage - aligned);
    if (tail != 0) munmap(aligned + mapped, tail);
    begin = aligned;
    (void)madvise(begin, mapped, MADV_HUGEPAGE);
  }
  b.data_ = begin;
  b.bytes_ = bytes;
  b.mapped_ = mapped;
  return b;
}

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

Result<GuardedBuffer> GuardedBuffer::make(size_t bytes, size_t align) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t body = round_up(bytes == 0 ? 1 : bytes, page) + page;
  void* p = map(body + page);
  if (p == nullptr) return error(Code::out_of_memory, "cannot map {} guarded bytes", bytes);
  GuardedBuffer b;
  b.base_ = static_cast<std::byte*>(p);
  b.mapped_ = body + page;
  if (mprotect(b.base_ + body, page, PROT_NONE) != 0)
    return error(Code::io_error, "cannot protect a guard page");
  const auto end = reinterpret_cast<uintptr_t>(b.base_ + body);
  b.data_ = reinterpret_cast<std::byte*>((end - bytes) & ~(uintptr_t{align} - 1));
  b.bytes_ = bytes;
  return b;
}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

std::span<std::byte> GuardedBuffer::slack() const {
  return {base_, static_cast<size_t>(data_ - base_)};
}

}  // namespace millrace
