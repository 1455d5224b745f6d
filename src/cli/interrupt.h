// Ctrl-C as a flag: the first SIGINT or SIGTERM asks the command to stop cleanly and keep what it
// has; a second one ends the process at once. Also turns a file-size limit into a failed write.
#pragma once

#include <atomic>

namespace millrace::cli {

const std::atomic<bool>& catch_interrupts();

// SIGINT alone, as a flag that the caller clears: for a program that Ctrl-C does not end.
std::atomic<bool>& catch_ctrl_c();

}  // namespace millrace::cli
