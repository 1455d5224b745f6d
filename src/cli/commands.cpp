#include "cli/commands.h"

#include <fmt/format.h>

namespace millrace::cli {

int fail(const Status& status) {
  fmt::print(stderr, "millrace: {}\n", status.message());
  return status.code() == Code::not_found || status.code() == Code::invalid_argument ? kUsage
                                                                                     : kFailed;
}

}  // namespace millrace::cli
