#include "engine/disk/tier.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace millrace::disk {
namespace {

constexpr size_t kLeastSlots = 2, kMostSlots = 256;
constexpr size_t kBatch = 8;  // records read or written at once

size_t n_slots(size_t bytes, size_t slot_bytes) {
  return std::clamp(bytes / slot_bytes, kLeastSlots, kMostSlots);
}

size_t aligned(size_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

// Who makes the thread is pinned to one CPU, as a lane of the team is.
void run_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);  // refused: it stays where it is
}

}  // namespace

Result<std::unique_ptr<Tier>> Tier::open(Folder folder, const TierOptions& options) {
  std::unique_ptr<Tier> out(new Tier(std::move(folder), options));
  MILLRACE_ASSIGN(out->store_, Store::open(*out->folder_.files, options.store));
  MILLRACE_TRY(out->make_slots());
  out->thread_ = std::thread([tier = out.get()]() noexcept { tier->run(); });
  return out;
}

Status Tier::make_slots() {
  const size_t slot = aligned(std::max<size_t>(options_.slot_bytes, 1));
  write_slots_.resize(n_slots(options_.write_bytes, slot));
  read_slots_.resize(n_slots(options_.read_bytes, slot));
  MILLRACE_ASSIGN(
      memory_, HostBuffer::make(slot * (write_slots_.size() + read_slots_.size()), Pages::small));
  std::byte* at = memory_.data();
  for (WriteSlot& one : write_slots_) {
    one.record.payload = std::exchange(at, at + slot);
    free_writes_.push_back(&one);
  }
  for (ReadSlot& one : read_slots_) {
    one.data = std::exchange(at, at + slot);
    free_reads_.push_back(&one);
  }
  writes_.reserve(write_slots_.size());
  reads_.reserve(read_slots_.size());
  done_reads_.reserve(read_slots_.size());
  return {};
}

Tier::~Tier() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Tier::WriteSlot* Tier::to_fill(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_off_ && now_ns() < off_until_ns_) return nullptr;
  if (free_writes_.empty()) return nullptr;
  // What is on its way counts as if it were as long as can be.
  const size_t n_on_the_way = write_slots_.size() - free_writes_.size();
  if (!store_->may_write(bytes + n_on_the_way * (options_.slot_bytes + kEntryBytes)))
    return nullptr;
  WriteSlot* slot = free_writes_.back();
  free_writes_.pop_back();
  return slot;
}

void Tier::write(WriteSlot* slot) {
  {
    const std::lock_guard lock(mutex_);
    writes_.push_back(slot);
  }
  changed_.notify_all();
}

void Tier::give_back(WriteSlot* slot) {
  const std::lock_guard lock(mutex_);
  free_writes_.push_back(slot);
}

Tier::ReadSlot* Tier::to_read() {
  const std::lock_guard lock(mutex_);
  if (free_reads_.empty()) return nullptr;
  ReadSlot* slot = free_reads_.back();
  free_reads_.pop_back();
  return slot;
}

void Tier::read(ReadSlot* slot) {
  {
    const std::lock_guard lock(mutex_);
    reads_.push_back(slot);
  }
  changed_.notify_all();
}

Tier::ReadSlot* Tier::take_read() {
  const std::lock_guard lock(mutex_);
  if (done_reads_.empty()) return nullptr;
  ReadSlot* slot = done_reads_.back();
  done_reads_.pop_back();
  return slot;
}

void Tier::give_back(ReadSlot* slot) {
  const std::lock_guard lock(mutex_);
  free_reads_.push_back(slot);
}

bool Tier::is_full() const {
  const std::lock_guard lock(mutex_);
  return free_writes_.empty() && !is_off_;
}

bool Tier::is_writing() const {
  const std::lock_guard lock(mutex_);
  return !writes_.empty() || n_busy_writes_ > 0;
}

uint64_t Tier::n_lost() const {
  const std::lock_guard lock(mutex_);
  return n_lost_;
}

int64_t Tier::off_until_ns() const {
  const std::lock_guard lock(mutex_);
  return is_off_ ? off_until_ns_ : 0;
}

bool Tier::wait(int64_t until_ns) {
  std::unique_lock lock(mutex_);
  const uint64_t before = n_ended_;
  const auto left = std::chrono::nanoseconds(std::max<int64_t>(until_ns - now_ns(), 0));
  return ended_.wait_for(lock, left, [&] { return n_ended_ != before || !done_reads_.empty(); });
}

Tier::Counts Tier::counts() const {
  Counts out{.store = store_->counts()};
  const std::lock_guard lock(mutex_);
  out.n_write_failures = n_write_failures_;
  out.n_lost = n_lost_;
  out.is_off = is_off_;
  return out;
}

// One line when it begins, one when it is over.
void Tier::note_failure(const Status& why, size_t n_lost) {
  if (!why.ok()) {
    ++n_write_failures_;
    n_lost_ += n_lost;
    off_until_ns_ = now_ns() + static_cast<int64_t>(options_.pause_s * 1e9);
  }
  if (is_off_ == !why.ok()) return;
  is_off_ = !why.ok();
  if (!options_.say) return;
  if (is_off_)
    options_.say(
        fmt::format("contexts are no longer written to '{}': {}; serving goes on, and it "
                    "is tried again every {:g} s",
                    folder_.path, why.message(), options_.pause_s));
  else
    options_.say(fmt::format("contexts are written to '{}' again", folder_.path));
}

void Tier::write_some(std::unique_lock<std::mutex>& lock) {
  const size_t n = std::min(writes_.size(), kBatch);
  writing_.clear();
  std::vector<WriteSlot*> slots(writes_.begin(), writes_.begin() + static_cast<int64_t>(n));
  writes_.erase(writes_.begin(), writes_.begin() + static_cast<int64_t>(n));
  for (WriteSlot* slot : slots) writing_.push_back(&slot->record);
  n_busy_writes_ = n;
  lock.unlock();
  const Status status = store_->write(writing_);
  lock.lock();
  note_failure(status, n);
  n_busy_writes_ = 0;
  free_writes_.insert(free_writes_.end(), slots.begin(), slots.end());
}

void Tier::read_some(std::unique_lock<std::mutex>& lock) {
  const size_t n = std::min(reads_.size(), kBatch);
  reading_.clear();
  std::vector<ReadSlot*> slots(reads_.begin(), reads_.begin() + static_cast<int64_t>(n));
  reads_.erase(reads_.begin(), reads_.begin() + static_cast<int64_t>(n));
  for (ReadSlot* slot : slots) reading_.push_back(&slot->record);
  lock.unlock();
  store_->read(reading_);
  lock.lock();
  done_reads_.insert(done_reads_.end(), slots.begin(), slots.end());
}

// Reading comes first: somebody waits for it. But what is read may wait for room in memory, and
// that for a slot.
void Tier::run() noexcept {
  run_on(options_.cpus);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || !reads_.empty() || !writes_.empty(); });
    const bool is_full = free_writes_.empty() && !writes_.empty();
    if (!reads_.empty() && !stops_ && !is_full)
      read_some(lock);
    else if (!writes_.empty())
      write_some(lock);
    else if (stops_)
      return;
    ++n_ended_;
    ended_.notify_all();
  }
}

}  // namespace millrace::disk
