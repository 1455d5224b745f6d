// Sorting the survivors of a selection when there are many: least-significant-digit radix sort on
// the distance below the largest key, over only the bits in which the keys differ (the top 2048 of
// 131072 normal values span 24 bits: three passes). Stable, so equal keys stay in index order.
#pragma once

#include <cstdint>

#include "kernels/topk/order.h"

namespace millrace::topk {

// Sorts n candidates, which stand in ascending index order, by before(). Both arrays hold n; the
// result is in the one returned.
Candidate* radix_sort(Candidate* from, Candidate* to, long long n);

}  // namespace millrace::topk
