// The MODEL of a command, opened.
#pragma once

#include <string>

#include "base/status.h"
#include "model/model_file.h"

namespace millrace::cli {

// By a path, or by a name that `millrace models` lists.
Result<ModelFile> open_model(const std::string& name);

}  // namespace millrace::cli
