// millrace post: what was learned, told to others with every number true.
#pragma once

#include "cli/app.h"

namespace millrace::cli {

void add_post(App& app);

}  // namespace millrace::cli
