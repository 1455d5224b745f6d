// Promise 1 under every way in which a Program may share a call out: by rows, by columns, by
// columns with a coarser grain, and as one of several calls whose columns are shared out together.
// A Program leaves out the barrier between two calls that give a lane the same part, so each lane
// must write all of its part, with the bits of the whole call, and nothing else.
#pragma once

#include <cstddef>
#include <vector>

#include "lab/verify.h"

namespace millrace::lab {

// `expected` holds the output ports of `whole` as the default split leaves them. Only an op that
// declares splits has anything to check, and only where a call has lanes.
Status check_splits(const Trial& trial, Instance& whole,
                    const std::vector<std::vector<std::byte>>& expected);

}  // namespace millrace::lab
