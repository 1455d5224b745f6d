// Machine and Ceilings as JSON text, for records and for --json. The only file of this folder that
// knows the JSON library; a text from outside that is not what it claims to be is a Status.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "machine/ceilings.h"
#include "machine/machine.h"

namespace millrace {

std::string to_json(const Machine& machine);
std::string to_json(const Ceilings& ceilings);
Result<Ceilings> parse_ceilings(std::string_view text);

}  // namespace millrace
