#include "engine/step_inputs.h"

#include <algorithm>

namespace millrace {

Result<StepInputs> StepInputs::make(const StepInputSizes& sizes, Device& device) {
  StepInputs out;
  out.sizes_ = sizes;
  const auto add = [&](int64_t n) {
    out.offsets_.push_back(out.bytes_);
    out.bytes_ += (static_cast<size_t>(n) * sizeof(int32_t) + 63) / 64 * 64;
  };
  for (int i = 0; i < 3; ++i) add(sizes.max_rows);
  add(sizes.max_outputs);
  for (size_t group = 0; group < sizes.n_groups; ++group) {
    add(sizes.max_rows);
    add(sizes.max_seqs * sizes.max_pages);
  }
  MILLRACE_ASSIGN(out.device_, device.allocate(out.bytes_, Pages::small));
  if (device.kind() == DeviceKind::cuda) {
    MILLRACE_ASSIGN(out.host_, PinnedBuffer::make(out.bytes_));
  }
  return out;
}

void StepInputs::pad_rows(int64_t n_rows, int64_t padded) {
  for (int64_t r = n_rows; r < padded; ++r) {
    tokens()[r] = sequences()[r] = 0;
    positions()[r] = -1;
    for (size_t group = 0; group < sizes_.n_groups; ++group) slots(group)[r] = -1;
  }
}

Status StepInputs::upload(Device& device) {
  return device.upload(device_.data(), host_block(), bytes_);
}

}  // namespace millrace
