#include "cli/interrupt.h"

#include <csignal>

namespace millrace::cli {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a failed write like a full disk
  return interrupted;
}

std::atomic<bool>& catch_ctrl_c() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  return interrupted;
}

}  // namespace millrace::cli
