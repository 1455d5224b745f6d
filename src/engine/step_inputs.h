// The rows of a step as its calls read them: of each row the token, its position, its sequence and
// where its K and V go; which rows' logits are wanted; and every sequence's pages. The host writes
// them in one block, which is uploaded as a whole; on a CPU the block is what the calls read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "exec/device.h"
#include "exec/step.h"

namespace millrace {

struct StepInputSizes {
  int64_t max_rows = 0, max_outputs = 0, max_seqs = 0, max_pages = 0;
  size_t n_groups = 1;
};

class StepInputs {
 public:
  static Result<StepInputs> make(const StepInputSizes& sizes, Device& device);

  const StepInputSizes& sizes() const { return sizes_; }
  int32_t* tokens() { return host(0); }
  int32_t* positions() { return host(1); }
  int32_t* sequences() { return host(2); }
  int32_t* wanted() { return host(3); }
  int32_t* slots(size_t group) { return host(4 + 2 * group); }
  int32_t* table(size_t group, int64_t seq) { return host(5 + 2 * group) + seq * sizes_.max_pages; }

  // Rows from n_rows to `padded` become padding: they store nothing and see nothing.
  void pad_rows(int64_t n_rows, int64_t padded);
  Status upload(Device& device);

  // Where the calls find them.
  const int* input(StepInput input) const { return device(static_cast<size_t>(input)); }
  const int* bound_slots(size_t group) const { return device(4 + 2 * group); }
  const int* bound_tables(size_t group) const { return device(5 + 2 * group); }

 private:
  int32_t* host(size_t i) const { return reinterpret_cast<int32_t*>(host_block() + offsets_[i]); }
  const int* device(size_t i) const {
    return reinterpret_cast<const int*>(device_.data() + offsets_[i]);
  }
  std::byte* host_block() const { return host_.data() != nullptr ? host_.data() : device_.data(); }

  StepInputSizes sizes_;
  std::vector<size_t> offsets_;
  size_t bytes_ = 0;
  PinnedBuffer host_;  // none on a CPU
  DeviceMemory device_;
};

}  // namespace millrace
