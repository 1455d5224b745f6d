#include "memory/mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>

namespace millrace::mapping_guard {
namespace {

constexpr size_t kMaxMappings = 4096;  // models have up to 1000 files

struct Mapping {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0};  // 0: none, or not ready
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> damaged{false};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "the handler may take no lock");

std::array<Mapping, kMaxMappings> mappings;
std::atomic<size_t> n_used{0};     // mappings[n_used..] were never taken
std::atomic<size_t> n_damaged{0};  // asked first: nearly always zero
uintptr_t page_bytes = 4096;       // before the handler is installed
struct sigaction previous {};      // the same

Mapping* mapping_at(uintptr_t address) {
  for (size_t i = 0; i < n_used.load(std::memory_order_acquire); ++i) {
    Mapping& m = mappings[i];
    const uintptr_t begin = m.begin.load(std::memory_order_acquire);
    if (begin != 0 && begin <= address && address < m.end.load(std::memory_order_relaxed))
      return &m;
  }
  return nullptr;
}

// Zeros from the page at `address` to the end of the mapping: behind the place where a file was cut
// nothing can be read either. mmap() is a plain system call and takes no lock of the C library.
bool patch(Mapping& m, uintptr_t address) {
  if (!m.damaged.exchange(true)) n_damaged.fetch_add(1);
  const uintptr_t begin = address & ~(page_bytes - 1);
  const size_t bytes = m.end.load(std::memory_order_relaxed) - begin;
  void* const at = reinterpret_cast<void*>(begin);
  return mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler == SIG_IGN && info->si_code <= 0) return;  // sent, not a fault
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(number);
  struct sigaction otherwise {};
  otherwise.sa_handler = SIG_DFL;
  sigaction(number, &otherwise, nullptr);
  raise(number);  // ends the process once this returns
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  // A signal that was sent has no address.
  const bool is_fault = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Mapping* m = is_fault ? mapping_at(address) : nullptr;
  if (m == nullptr || !patch(*m, address)) pass_on(number, info, context);
}

bool install() {
  page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, nullptr, &previous) == 0 && sigaction(SIGBUS, &action, nullptr) == 0;
}

}  // namespace

int add(const std::byte* begin, size_t bytes) {
  static const bool kInstalled = install();
  if (!kInstalled) return -1;
  for (size_t i = 0; i < kMaxMappings; ++i) {
    Mapping& m = mappings[i];
    if (m.taken.exchange(true)) continue;
    m.damaged.store(false);
    m.end.store(reinterpret_cast<uintptr_t>(begin) + bytes, std::memory_order_relaxed);
    m.begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
    for (size_t n = n_used.load(); n <= i && !n_used.compare_exchange_weak(n, i + 1);) {
    }
    return static_cast<int>(i);
  }
  return -1;
}

void remove(int guard) {
  if (guard < 0) return;
  Mapping& m = mappings[static_cast<size_t>(guard)];
  m.begin.store(0, std::memory_order_release);
  if (m.damaged.exchange(false)) n_damaged.fetch_sub(1);
  m.taken.store(false);
}

bool is_damaged(int guard) {
  return n_damaged.load(std::memory_order_acquire) != 0 && guard >= 0 &&
         mappings[static_cast<size_t>(guard)].damaged.load(std::memory_order_acquire);
}

}  // namespace millrace::mapping_guard
