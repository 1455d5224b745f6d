#include "cli/commands.h"

#include <fmt/format.h>

namespace millrace::cli {

int fail(const Status& status) {
  fmt::print(stderr, "millrace: {}\n", status.message());
  return status.code() == Code::not_found || status.code() == Code::invalid_argument ? kUsage
                                                                                     : kFailed;
}

std::string size_text(size_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) return fmt::format("{:.0f} KiB", kib);
  if (kib < 1024 * 1024) return fmt::format("{:.4g} MiB", kib / 1024);
  return fmt::format("{:.1f} GiB", kib / (1024 * 1024));
}

}  // namespace millrace::cli
