// Makes the list of work that a device variant walks. It follows the real lengths of a batch, not
// the configured context: shares are equal in cost whatever the mix of decodes and prefills, and
// where the workspace has no room for another cut a share ends earlier or later instead. Bits do
// not depend on any of this.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "kernels/attention/args.h"
#include "kernels/attention/list.h"

namespace millrace::attention {

// What of a batch the list depends on; host memory.
struct WorkBatch {
  std::span<const int> sequences, positions;  // [n_rows], as in Args
  long long n_heads, n_kv_heads;
  long long page_tokens;
  long long window;
};

// The most that a list is ever made for.
struct WorkLimits {
  long long head_dim, n_heads, n_kv_heads;
  long long max_rows, max_tokens;  // of a batch; of a sequence
};

// What this machine's GPU wants of a list: everything but the list. No shares where it has no
// kernel that walks one for such heads; an error where a share could be more than a list can say.
Result<Spread> device_work(const WorkLimits& limits);
// Whether every batch within the limits has a list of so many shares. Room for records is no limit:
// where it ends, shares end with a head instead of inside one.
Status check_limits(const WorkLimits& limits, int n_shares);

// The length of a list for n_rows rows.
size_t list_ints(long long n_rows, int n_shares);

// Writes all of `list`, list_ints() long; work.list itself is not looked at. A KV head may have
// kTileVectors query heads at most.
void make_list(const WorkBatch& batch, const Spread& work, std::span<int> list);

}  // namespace millrace::attention
