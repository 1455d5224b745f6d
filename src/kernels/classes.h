// Revisions of the numerics classes. The bits that a class gives may change in a new version of the
// program; its revision then goes up, and what was kept under the old one (KV on disk, checkpoints)
// is a miss. A golden hash for every class (tests/golden/classes.txt) fails when bits change and
// the revision does not.
#pragma once

#include <string_view>

namespace millrace {

int revision_of(std::string_view numerics);

}  // namespace millrace
