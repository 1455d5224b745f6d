// The options that say how a command draws tokens, named as this ecosystem names them.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/generate.h"

namespace millrace::cli {

void add_sampling_options(CLI::App& command, Generation& generation);

}  // namespace millrace::cli
