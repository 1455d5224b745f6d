// Where the program keeps what is its own between runs: $XDG_STATE_HOME/millrace, or
// ~/.local/state/millrace.
#pragma once

#include <string>

namespace millrace::cli {

// The file's path, whether it is there or not; empty when there is no home.
std::string state_path(const std::string& name);

// The same, with its folder made; empty when that fails.
std::string state_file(const std::string& name);

}  // namespace millrace::cli
