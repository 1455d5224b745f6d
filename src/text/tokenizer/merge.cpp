#include "text/tokenizer/merge.h"

#include <bit>

namespace millrace {
namespace {

constexpr size_t kMaxProbes = 4096;  // a half-full table of honest pairs stays far below

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

PairTable::PairTable(size_t n_pairs) : slots_(std::bit_ceil(2 * n_pairs + 2)) {}

size_t PairTable::slot_of(uint64_t key) const {
  key = (key ^ (key >> 29)) * 0x9E3779B97F4A7C15u;
  return (key ^ (key >> 32)) & (slots_.size() - 1);
}

bool PairTable::insert(int32_t left, int32_t right, MergeRule rule) {
  const uint64_t key = key_of(left, right);
  size_t at = slot_of(key);
  for (size_t i = 0; i < kMaxProbes; ++i, at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].rule.id < 0) {
      slots_[at] = {key, rule};
      return true;
    }
    if (slots_[at].key == key) return true;
  }
  return false;
}

MergeRule PairTable::find(int32_t left, int32_t right) const {
  const uint64_t key = key_of(left, right);
  for (size_t at = slot_of(key); slots_[at].rule.id >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].key == key) return slots_[at].rule;
  return {};
}

void Merger::link() {
  const auto n = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < n; ++i) {
    symbols[static_cast<size_t>(i)].prev = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1 < n ? i + 1 : -1;
  }
}

// Symbols only grow, so a pair of as many bytes is the same pair.
bool Merger::is_stale(const Candidate& c) const {
  const Symbol& left = symbols[c.left()];
  if (left.bytes == 0 || left.next < 0) return true;
  return left.bytes + symbols[static_cast<size_t>(left.next)].bytes != c.bytes;
}

void Merger::join(const Candidate& c) {
  Symbol& left = symbols[c.left()];
  Symbol& right = symbols[static_cast<size_t>(left.next)];
  left.id = c.id;
  left.bytes = c.bytes;
  left.next = right.next;
  if (right.next >= 0)
    symbols[static_cast<size_t>(right.next)].prev = static_cast<int32_t>(c.left());
  right.bytes = 0;
}

}  // namespace millrace
