// The dispatch profile that commands read: the user's own, which 'bench --write-profile default'
// writes, or the one that MILLRACE_PROFILE names; MILLRACE_PROFILE=off reads none.
#pragma once

#include <string>

#include "base/status.h"
#include "kernels/profile.h"
#include "machine/machine.h"

namespace millrace::cli {

// Without a file of the user's own, an empty profile. So is one of another machine, with a warning;
// a damaged one is an error.
Result<Profile> load_profile(const Machine& machine);

// Where to write: the file named, or the user's own for "default".
Result<std::string> profile_to_write(const std::string& asked);

}  // namespace millrace::cli
