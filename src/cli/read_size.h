// Sizes as people write them.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace millrace::cli {

// "512M", "8G", "1.5GiB" or a number of bytes; `option` names it in the error.
Result<int64_t> read_size(const std::string& option, const std::string& text);

}  // namespace millrace::cli
