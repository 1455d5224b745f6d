// Ctrl-C as a flag: the first SIGINT or SIGTERM asks the command to stop cleanly and keep what it
// has; a second one ends the process at once. Also turns a file-size limit into a failed write.
#pragma once

#include <atomic>

namespace millrace::cli {

const std::atomic<bool>& catch_interrupts();

}  // namespace millrace::cli
