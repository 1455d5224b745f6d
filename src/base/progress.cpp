#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"

namespace millrace {
namespace {

constexpr int64_t kTerminalGapNs = 100'000'000;
constexpr int64_t kLogGapNs = 5'000'000'000;
constexpr size_t kMaxWidth = 78;  // longer lines would wrap and not be erased

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
}

Progress::Progress(std::string title)
    : title_(std::move(title)),
      start_ns_(now_ns()),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      shown_ns_(start_ns_) {}

Progress::~Progress() {
  clear();
}

void Progress::at(double share, std::string_view what) {
  const int64_t now = now_ns();
  if (now - shown_ns_ < (on_terminal_ ? kTerminalGapNs : kLogGapNs)) return;
  shown_ns_ = now;
  const double spent = static_cast<double>(now - start_ns_) * 1e-9;
  std::string line = fmt::format("{} {:3.0f} %", title_, share * 100);
  if (share > 0.02) line += fmt::format(", {} left", duration_text(spent * (1 - share) / share));
  line += fmt::format(": {}", what);
  if (!on_terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  if (line.size() > kMaxWidth) line.resize(kMaxWidth);
  fmt::print(stderr, "\r{:<{}}", line, shown_width_);
  std::fflush(stderr);
  shown_width_ = line.size();
}

void Progress::clear() {
  if (!on_terminal_ || shown_width_ == 0) return;
  fmt::print(stderr, "\r{:{}}\r", "", shown_width_);
  std::fflush(stderr);
  shown_width_ = 0;
}

}  // namespace millrace
