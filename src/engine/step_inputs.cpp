#include "engine/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "kernels/attention/work.h"

namespace millrace {
namespace {

int64_t list_ints(const StepInputSizes& sizes, int64_t n_rows) {
  if (sizes.n_shares == 0) return 0;
  return static_cast<int64_t>(attention::list_ints(n_rows, sizes.n_shares));
}

}  // namespace

Result<StepInputs> StepInputs::make(const StepInputSizes& sizes, Device& device) {
  StepInputs out;
  out.sizes_ = sizes;
  const auto add = [&](int64_t n) {
    out.offsets_.push_back(out.bytes_);
    out.bytes_ += (static_cast<size_t>(n) * sizeof(int32_t) + 63) / 64 * 64;
  };
  const auto add_groups = [&](int64_t n) {
    for (size_t group = 0; group < sizes.n_groups; ++group) add(n);
  };
  for (int i = 0; i < kWantedRows; ++i) add(sizes.max_rows);
  add(sizes.max_outputs);
  add_groups(sizes.max_rows);
  add_groups(list_ints(sizes, sizes.max_rows));
  add_groups(sizes.max_seqs * sizes.max_pages);
  MILLRACE_ASSIGN(out.device_, device.allocate(out.bytes_, Pages::small));
  if (device.kind() == DeviceKind::cuda) {
    MILLRACE_ASSIGN(out.host_, PinnedBuffer::make(out.bytes_));
    std::memset(out.host_.data(), 0, out.bytes_);  // what the device has: set_table() compares
  }
  return out;
}

std::span<int32_t> StepInputs::work(size_t group, int64_t n_rows) {
  return {host(work_at(group)), static_cast<size_t>(list_ints(sizes_, n_rows))};
}

void StepInputs::set_table(size_t group, int64_t seq, std::span<const int32_t> pages) {
  int32_t* table = host(table_at(group)) + seq * sizes_.max_pages;
  const auto differ = std::mismatch(pages.begin(), pages.end(), table).first;
  if (differ == pages.end()) return;
  const auto first = static_cast<size_t>(differ - pages.begin());
  std::copy(differ, pages.end(), table + first);
  const auto at = static_cast<size_t>(reinterpret_cast<std::byte*>(table) - host_block());
  const size_t begin = at + first * sizeof(int32_t), end = at + pages.size_bytes();
  changed_ = changed_end_ == 0 ? begin : std::min(changed_, begin);
  changed_end_ = std::max(changed_end_, end);
}

int* StepInputs::bound_work(size_t group) const {
  return sizes_.n_shares == 0 ? nullptr : const_cast<int*>(device(work_at(group)));
}

void StepInputs::pad_rows(int64_t n_rows, int64_t padded) {
  for (int64_t r = n_rows; r < padded; ++r) {
    tokens()[r] = sequences()[r] = 0;
    positions()[r] = -1;
    for (size_t group = 0; group < sizes_.n_groups; ++group) slots(group)[r] = -1;
  }
}

size_t StepInputs::used_bytes(int64_t n_rows) const {
  return offsets_[work_at(sizes_.n_groups - 1)] +
         static_cast<size_t>(list_ints(sizes_, n_rows)) * sizeof(int32_t);
}

Status StepInputs::upload(Device& device, int64_t n_rows) {
  MILLRACE_TRY(device.upload(device_.data(), host_block(), used_bytes(n_rows)));
  MILLRACE_TRY(
      device.upload(device_.data() + changed_, host_block() + changed_, changed_end_ - changed_));
  changed_ = changed_end_ = 0;
  return {};
}

}  // namespace millrace
