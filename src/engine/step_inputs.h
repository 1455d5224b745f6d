// The rows of a step as its calls read them: of each row the token, its position, its sequence and
// where its K and V go; which rows' logits are wanted; every sequence's pages; and where attention
// walks a list of work, that list. The host writes them in one block, of which a step uploads what
// it reads and what changed; on a CPU the block is what the calls read.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "exec/device.h"
#include "exec/step.h"

namespace millrace {

struct StepInputSizes {
  int64_t max_rows = 0, max_outputs = 0, max_seqs = 0, max_pages = 0;
  size_t n_groups = 1;
  int n_shares = 0;  // of the lists of work, one a group; 0: there are none
};

class StepInputs {
 public:
  static Result<StepInputs> make(const StepInputSizes& sizes, Device& device);

  const StepInputSizes& sizes() const { return sizes_; }
  int32_t* tokens() { return host(0); }
  int32_t* positions() { return host(1); }
  int32_t* sequences() { return host(2); }
  int32_t* wanted() { return host(3); }
  int32_t* slots(size_t group) { return host(kStepInputs + group); }
  // Of a step of n_rows rows.
  std::span<int32_t> work(size_t group, int64_t n_rows);
  // The pages of a sequence. Those that it has already cost nothing to upload.
  void set_table(size_t group, int64_t seq, std::span<const int32_t> pages);

  // Rows from n_rows to `padded` become padding: they store nothing and see nothing.
  void pad_rows(int64_t n_rows, int64_t padded);
  // For a step of n_rows rows without padding.
  Status upload(Device& device, int64_t n_rows);
  // What upload() copies: from the first byte to one, and from one byte to another.
  size_t used_bytes(int64_t n_rows) const;
  std::pair<size_t, size_t> changed_tables() const { return {changed_, changed_end_}; }

  // Where the calls find them.
  const int* input(StepInput input) const { return device(static_cast<size_t>(input)); }
  const int* bound_slots(size_t group) const { return device(kStepInputs + group); }
  const int* bound_tables(size_t group) const { return device(table_at(group)); }
  int* bound_work(size_t group) const;  // null where there are no lists

 private:
  // The tables come last: they are the longest, and change least.
  size_t work_at(size_t group) const { return kStepInputs + sizes_.n_groups + group; }
  size_t table_at(size_t group) const { return kStepInputs + 2 * sizes_.n_groups + group; }
  int32_t* host(size_t i) const { return reinterpret_cast<int32_t*>(host_block() + offsets_[i]); }
  const int* device(size_t i) const {
    return reinterpret_cast<const int*>(device_.data() + offsets_[i]);
  }
  std::byte* host_block() const { return host_.data() != nullptr ? host_.data() : device_.data(); }

  StepInputSizes sizes_;
  std::vector<size_t> offsets_;
  size_t bytes_ = 0;
  size_t changed_ = 0, changed_end_ = 0;  // bytes of tables that are to be uploaded
  PinnedBuffer host_;                     // none on a CPU
  DeviceMemory device_;
};

}  // namespace millrace
