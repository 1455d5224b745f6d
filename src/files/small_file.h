// Small text files of other programs, read whole: no more than a limit, and only what is a regular
// file, so that neither a huge file nor a pipe stalls whoever looks around.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace millrace {

Result<std::string> read_small_file(const std::string& path, size_t max_bytes);

}  // namespace millrace
