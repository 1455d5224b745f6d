// Two pages of different tokens that have one XXH3 hash, whatever is before them: what somebody who
// chooses tokens would send.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/disk/record.h"

namespace millrace::disk {

inline std::vector<int32_t> twin_page(bool first) {
  std::vector<int32_t> out(kPageIds);
  for (size_t i = 0; i < kPageIds; ++i) out[i] = static_cast<int32_t>(i + 1);
  out[0] = 749, out[1] = first ? 635 : 998;
  out[16] = 457, out[17] = first ? 954 : 887;
  out[32] = 802, out[33] = first ? 807 : 511;
  return out;
}

}  // namespace millrace::disk
