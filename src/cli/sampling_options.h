// The options that say how a command draws tokens, named as this ecosystem names them.
#pragma once

#include "cli/app.h"
#include "engine/request.h"

namespace millrace::cli {

void add_sampling_options(Command& command, Generation& generation);

}  // namespace millrace::cli
