// millrace job, which is a client of a server.
#pragma once

#include "cli/app.h"

namespace millrace::cli {

void add_job(App& app);

}  // namespace millrace::cli
