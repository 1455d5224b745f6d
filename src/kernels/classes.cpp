#include "kernels/classes.h"

#include <algorithm>
#include <array>
#include <utility>

namespace millrace {
namespace {

// Those that are not at their first.
constexpr std::array<std::pair<std::string_view, int>, 0> kRevisions = {};

}  // namespace

int revision_of(std::string_view numerics) {
  const auto found = std::find_if(kRevisions.begin(), kRevisions.end(),
                                  [&](const auto& row) { return row.first == numerics; });
  return found == kRevisions.end() ? 1 : found->second;
}

}  // namespace millrace
