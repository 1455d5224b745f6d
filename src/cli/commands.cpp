#include "cli/commands.h"

#include <fmt/format.h>

namespace millrace::cli {

int fail(const Status& status) {
  fmt::print(stderr, "millrace: {}\n", status.message());
  if (status.code() == Code::cancelled) return kInterrupted;
  const bool is_usage = status.code() == Code::not_found || status.code() == Code::invalid_argument;
  return is_usage ? kUsage : kFailed;
}

std::string size_text(size_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) return fmt::format("{:.0f} KiB", kib);
  if (kib < 1024 * 1024) return fmt::format("{:.4g} MiB", kib / 1024);
  return fmt::format("{:.1f} GiB", kib / (1024 * 1024));
}

namespace {

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string command_line(int argc, char** argv) {
  std::string line = "millrace";
  for (int i = 1; i < argc; ++i) line += " " + quoted(argv[i]);
  return line;
}

}  // namespace millrace::cli
