// Whether the process that wrote something is still alive: how a run that was killed is known from
// one that is being measured.
#pragma once

#include <string>
#include <string_view>

namespace millrace::lab {

// This process: boot, process namespace, number and start.
std::string process_mark();

// False when it has certainly ended (or the mark is empty): it is gone, its number is another's, or
// the machine was started again. What runs in another namespace cannot be seen and counts as alive.
bool may_be_alive(std::string_view mark);

}  // namespace millrace::lab
