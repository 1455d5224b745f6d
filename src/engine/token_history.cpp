#include "engine/token_history.h"

#include <utility>

namespace millrace {

void TokenHistory::assign(std::span<const int32_t> tokens) {
  last_.clear();
  oldest_ = 0;
  tokens_.clear();
  counts_.clear();
  slots_.assign(slots_.size(), kFree);
  if (window_ >= 0 && tokens.size() > static_cast<size_t>(window_))
    tokens = tokens.last(static_cast<size_t>(window_));
  for (const int32_t token : tokens) push(token);
}

void TokenHistory::push(int32_t token) {
  if (window_ == 0) return;
  add(token);
  if (window_ < 0) return;
  if (last_.size() < static_cast<size_t>(window_)) {
    last_.push_back(token);
    return;
  }
  remove(std::exchange(last_[oldest_], token));
  oldest_ = oldest_ + 1 < last_.size() ? oldest_ + 1 : 0;
}

size_t TokenHistory::home_of(int32_t token) const {
  const uint64_t product = uint64_t{static_cast<uint32_t>(token)} * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(product >> 32) & (slots_.size() - 1);
}

// The slot that holds the token, or the free one where it belongs.
size_t TokenHistory::find(int32_t token) const {
  size_t slot = home_of(token);
  while (slots_[slot] != kFree && tokens_[static_cast<size_t>(slots_[slot])] != token)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void TokenHistory::add(int32_t token) {
  if (2 * (tokens_.size() + 1) > slots_.size()) grow();
  const size_t slot = find(token);
  if (slots_[slot] != kFree) {
    ++counts_[static_cast<size_t>(slots_[slot])];
    return;
  }
  slots_[slot] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
  counts_.push_back(1);
}

void TokenHistory::remove(int32_t token) {
  const size_t slot = find(token);
  const auto place = static_cast<size_t>(slots_[slot]);
  if (--counts_[place] > 0) return;
  free_slot(slot);
  const size_t last = tokens_.size() - 1;
  if (place != last) slots_[find(tokens_[last])] = static_cast<int32_t>(place);
  tokens_[place] = tokens_[last];
  counts_[place] = counts_[last];
  tokens_.pop_back();
  counts_.pop_back();
}

// Moves up what had to go past the slot, so that no search ends too early.
void TokenHistory::free_slot(size_t slot) {
  const size_t mask = slots_.size() - 1;
  for (size_t next = (slot + 1) & mask; slots_[next] != kFree; next = (next + 1) & mask) {
    const size_t home = home_of(tokens_[static_cast<size_t>(slots_[next])]);
    if (((next - home) & mask) < ((next - slot) & mask)) continue;
    slots_[slot] = slots_[next];
    slot = next;
  }
  slots_[slot] = kFree;
}

void TokenHistory::grow() {
  slots_.assign(slots_.empty() ? 256 : 2 * slots_.size(), kFree);
  for (size_t place = 0; place < tokens_.size(); ++place)
    slots_[find(tokens_[place])] = static_cast<int32_t>(place);
}

}  // namespace millrace
