// Byte-pair merging: of all neighbouring symbols that form a token, the best pair is joined first
// (the lowest rank, then the leftmost), until none is left. A heap keeps a word of n symbols at
// n log n, whatever it says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace millrace {

struct MergeRule {
  uint32_t rank = 0;
  int32_t id = -1;  // what the pair becomes; -1: they do not join
};

// Pairs of ids and what they become. Built once, then read by any number of threads.
class PairTable {
 public:
  explicit PairTable(size_t n_pairs = 0);
  // The first of two equal pairs stays. False when the pairs were made to collide.
  [[nodiscard]] bool insert(int32_t left, int32_t right, MergeRule rule);
  MergeRule find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = 0;
    MergeRule rule;
  };
  size_t slot_of(uint64_t key) const;
  std::vector<Slot> slots_;
};

struct Symbol {
  int32_t id = -1;     // -1: no token of its own
  uint32_t begin = 0;  // in the word
  uint32_t bytes = 0;  // 0: has been joined to the one before it
  int32_t prev = -1, next = -1;
};

// One thread's scratch: fill `symbols` (ids and bytes; links are made here), then merge.
class Merger {
 public:
  std::vector<Symbol> symbols;

  // rule(left, right) gives the MergeRule of two neighbouring symbols.
  template <class Rule>
  void merge(const Rule& rule);

 private:
  struct Candidate {
    uint64_t order;  // rank, then the left symbol: the least is the best
    uint32_t bytes;  // of both symbols: one that has changed since has more
    int32_t id;
    bool operator<(const Candidate& other) const { return order > other.order; }  // a max-heap
    uint32_t left() const { return static_cast<uint32_t>(order); }
  };
  template <class Rule>
  void consider(int32_t left, int32_t right, const Rule& rule);
  bool is_stale(const Candidate& c) const;
  void join(const Candidate& c);
  void link();
  std::vector<Candidate> heap_;
};

template <class Rule>
void Merger::merge(const Rule& rule) {
  link();
  heap_.clear();
  const auto n = static_cast<int32_t>(symbols.size());
  for (int32_t i = 1; i < n; ++i) consider(i - 1, i, rule);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    if (is_stale(best)) continue;
    join(best);
    const Symbol& joined = symbols[best.left()];
    const auto left = static_cast<int32_t>(best.left());
    if (joined.prev >= 0) consider(joined.prev, left, rule);
    if (joined.next >= 0) consider(left, joined.next, rule);
  }
}

template <class Rule>
void Merger::consider(int32_t left, int32_t right, const Rule& rule) {
  const Symbol& l = symbols[static_cast<size_t>(left)];
  const Symbol& r = symbols[static_cast<size_t>(right)];
  const MergeRule found = rule(l, r);
  if (found.id < 0) return;
  heap_.push_back(
      {uint64_t{found.rank} << 32 | static_cast<uint32_t>(left), l.bytes + r.bytes, found.id});
  std::push_heap(heap_.begin(), heap_.end());
}

}  // namespace millrace
