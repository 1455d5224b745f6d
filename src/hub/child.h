// A program run as a child, without a shell: it ends when it is asked to stop, and dies with us.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace millrace {

struct Child {
  std::vector<std::string> command;      // found on PATH
  std::vector<std::string> environment;  // NAME=VALUE, beside this process's own
  std::string log;                       // a file that takes what it says
};

// Its exit status (128 + n after signal n). `tick` is called every 100 ms or so; when it returns
// false, the child and whatever it started are killed and the result is cancelled. not_found when
// there is no such program.
Result<int> run_child(const Child& child, const std::function<bool()>& tick);

}  // namespace millrace
