// Which record a full store gives up, and how: its entry is cleared and its bytes go back to the
// disk, in the middle of the segment's files. Only records that no other goes on from are given up:
// what is after a missing page is never found again.
#include <algorithm>

#include "base/philox.h"
#include "engine/disk/store.h"

namespace millrace::disk {
namespace {

// Of more leaves than this so many are looked at, drawn by chance: finding waits for the lock
// meanwhile, some 50 us.
constexpr size_t kLookedAt = 256;
// A file system gives back whole blocks, of 4 KB mostly: where a page of 64 tokens is less than
// this, most of it would stay.
constexpr uint64_t kLeastPage = 16 << 10;

// Of a segment's records so many are looked at, where parts of files cannot be given back.
constexpr size_t kLookedAtInSegment = 64;

}  // namespace

// Under the lock, as all here that say nothing else.
void Store::note_leaf(Record& record) {
  if (const auto parent = records_.find(record.entry.before); parent != records_.end())
    leave_leaves(parent->second);
  if (record.leaf_at != kNoLeaf || has_after(record.entry.prefix)) return;
  record.leaf_at = leaves_.size();
  leaves_.push_back(record.entry.prefix);
}

bool Store::has_after(const Hash128& prefix) const {
  const auto first = in_order_.lower_bound(Place{prefix, {}});
  return first != in_order_.end() && (*first)->before == prefix;
}

void Store::leave_leaves(Record& record) {
  if (record.leaf_at == kNoLeaf) return;
  records_.at(leaves_.back()).leaf_at = record.leaf_at;
  leaves_[record.leaf_at] = leaves_.back();
  leaves_.pop_back();
  record.leaf_at = kNoLeaf;
}

void Store::note_dead(const Extent& extent) {
  if (is_by_worth() && can_punch_) dead_.push_back(extent);
}

// What memory has too counts as much: it is all that is left when the process is killed.
Retention::Candidate Store::weigh(const Record& record) const {
  const auto age_s = static_cast<double>(std::max<int64_t>(now_s() - record.used_s, 0));
  const double bytes = static_cast<double>(record.entry.payload_bytes() + kEntryBytes);
  const double cost = static_cast<double>(record.entry.n_tokens) / bytes;
  return {options_.retention->worth(record.uses.all(), age_s), cost, age_s};
}

std::optional<Hash128> Store::least_worth_record() {
  const std::lock_guard lock(mutex_);
  std::vector<Hash128> looked_at;
  std::vector<Retention::Candidate> candidates;
  const size_t n = std::min(leaves_.size(), kLookedAt);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = n == leaves_.size() ? i : philox(0, n_draws_++)[0] % leaves_.size();
    const Record& record = records_.at(leaves_[at]);
    if (record.entry.payload_bytes() * kPageIds < kLeastPage * record.entry.n_tokens) continue;
    looked_at.push_back(leaves_[at]);
    candidates.push_back(weigh(record));
  }
  const size_t least = Retention::least(candidates);
  if (least == looked_at.size()) return {};
  return looked_at[least];
}

// Where parts of files cannot be given back. What nobody asks for again is worth nothing.
uint64_t Store::least_worth_segment() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> numbers;
  std::vector<double> worth;
  for (const auto& [number, segment] : segments_) {
    if (number == open_.number && segments_.size() > 1) continue;
    const size_t stride = segment.records.size() / kLookedAtInSegment + 1;
    double sum = 0;
    for (size_t i = 0; i < segment.records.size(); i += stride) {
      const auto it = records_.find(segment.records[i]);
      if (it == records_.end() || it->second.segment != number) continue;
      sum += weigh(it->second).worth.learned * static_cast<double>(it->second.entry.n_tokens);
    }
    numbers.push_back(number);
    worth.push_back(sum * static_cast<double>(stride) /
                    static_cast<double>(std::max<uint64_t>(segment.bytes, 1)));
  }
  return numbers[static_cast<size_t>(std::min_element(worth.begin(), worth.end()) - worth.begin())];
}

// One that nothing can be found in: it could not be read, or is of another model. 0: none.
uint64_t Store::empty_segment() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, segment] : segments_)
    if (segment.n_live == 0 && number != open_.number) return number;
  return 0;
}

// Without the lock. First the entry: a record whose bytes are gone must not be found at the next
// start.
Status Store::give_back(const Extent& extent) {
  const auto number = [&](const char* ending) {
    return fmt::format("{:08}{}", extent.segment, ending);
  };
  const auto entry = files_.punch(number(".ids"), extent.index * kEntryBytes, kEntryBytes);
  const auto parts = files_.punch(number(".kv"), extent.offset, extent.bytes);
  if (!entry.ok() || !parts.ok()) {
    const Code why = entry.ok() ? parts.status().code() : entry.status().code();
    if (why != Code::unsupported) return drop(extent.segment);
    const std::lock_guard lock(mutex_);
    can_punch_ = false;
    dead_.clear();
    return {};
  }
  bool is_empty = false;
  {
    const std::lock_guard lock(mutex_);
    const auto it = segments_.find(extent.segment);
    if (it == segments_.end()) return {};
    const uint64_t bytes = std::min(it->second.bytes, entry.value() + parts.value());
    it->second.bytes -= bytes;
    counts_.bytes -= bytes;
    is_empty = it->second.n_live == 0 && extent.segment != open_.number;
  }
  return is_empty ? drop(extent.segment) : Status();
}

// Shorter ends of contexts that went on.
Status Store::give_back_dead() {
  for (;;) {
    Extent extent;
    {
      const std::lock_guard lock(mutex_);
      if (dead_.empty()) return {};
      extent = dead_.back();
      dead_.pop_back();
    }
    MILLRACE_TRY(give_back(extent));
  }
}

Status Store::drop_least() {
  if (const uint64_t empty = empty_segment(); empty != 0) return drop(empty);
  const auto record = can_punch_ ? least_worth_record() : std::nullopt;
  if (!record) return drop(least_worth_segment());
  {
    const std::lock_guard lock(mutex_);
    forget(*record);
    ++counts_.n_dropped;
  }
  return give_back_dead();
}

}  // namespace millrace::disk
