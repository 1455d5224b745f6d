// Downloading a model with progress on stderr: what `pull` and the default model share.
#pragma once

#include <string_view>

#include "base/status.h"
#include "hub/pull.h"

namespace millrace::cli {

// How long and how often to try; `progress` and `stopped` of the watch are set here.
Result<Pulled> pull_model(std::string_view what, PullWatch watch);

}  // namespace millrace::cli
