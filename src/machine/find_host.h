// find_machine() without the GPUs: what runs on the CPU does not wait for a driver to start, which
// takes a tenth of a second.
#pragma once

#include "machine/machine.h"

namespace millrace {

Machine find_host();

}  // namespace millrace
