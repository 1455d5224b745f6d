// How a batch is spread over lanes, the same for every CPU variant. A unit is a block of
// neighbouring rows of one sequence and of query heads that share a KV head; its work is its chunks
// in order. The chunks of all units form one line, cut into equal shares: a unit that falls wholly
// to one lane is folded as it goes; one that is cut keeps each chunk's result in the workspace,
// and all lanes fold those after one barrier. Bits do not depend on any of this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/op.h"

namespace millrace::attention {

// Query vectors of a unit. All of them share a chunk's K and V, widened once: with 96 that is 3 %
// of the time, with 48 6 %, with 24 more than it saves (Zen 4). A batch is cut finer where lanes
// would have less than kUnitsPerLane to share out, or a lane's records of a cut unit take over
// kCutBytesAtMost.
inline constexpr long long kUnitQueries = 96;
inline constexpr long long kFewestUnitQueries = 24;
inline constexpr long long kUnitsPerLane = 8;
inline constexpr long long kCutBytesAtMost = 16 << 20;
// Of one register block, in any variant.
inline constexpr long long kBlockQueriesAtMost = 12;

long long unit_queries_of(const Args& args, int n_lanes);

// Whether a unit of this many has its K and V widened ahead of the products, where that pays.
inline bool widens(const Args& a, long long n_queries) {
  return a.kv_type != DType::f32 && n_queries > kFewestUnitQueries;
}

struct Unit {
  long long queries_at_most = kFewestUnitQueries;
  long long row = 0;
  long long n_rows = 0;  // rows [row, row + n_rows), one sequence, none of padding
  long long head = 0;
  long long n_heads = 0;  // query heads [head, head + n_heads), one KV head
  long long first_chunk = 0;
  long long n_chunks = 0;     // chunks [first_chunk, first_chunk + n_chunks), each seen by some row
  long long cost_before = 0;  // of all units before this one

  long long n_queries() const { return n_rows * n_heads; }
  // A chunk costs its query vectors, and about two more for bringing in K and V.
  long long chunk_cost() const { return n_queries() + 2; }
  long long row_of(long long query) const { return row + query / n_heads; }
  long long head_of(long long query) const { return head + query % n_heads; }
};

// Steps to the unit after `unit` (Plan::before_first() to begin); false at the end.
bool next_unit(const Args& args, Unit& unit);

struct Plan {
  long long total_cost = 0;
  long long unit_queries = kFewestUnitQueries;
  int n_lanes = 1;

  Unit before_first() const { return {.queries_at_most = unit_queries}; }

  // The lane that does chunk first_chunk + i of this unit.
  int lane_of(const Unit& unit, long long i) const;
  bool is_cut(const Unit& unit) const;
};

Plan make_plan(const Args& args, int n_lanes);

// Chunks, or tokens of one counted from its first: [begin, end).
struct Range {
  long long begin, end;
  bool none() const { return begin >= end; }
  bool operator==(const Range&) const = default;
};

// The first token of its sequence that the row sees.
inline long long first_seen(const Args& a, long long row) {
  const long long skipped = a.window == 0 ? 0 : a.positions[row] + 1LL - a.window;
  return skipped < 0 ? 0 : skipped;
}

inline Range seen_in_chunk(const Args& a, long long row, long long chunk) {
  const long long at = chunk * kChunkTokens;
  const long long begin = first_seen(a, row) - at, end = a.positions[row] + 1LL - at;
  return {begin < 0 ? 0 : begin, end > kChunkTokens ? kChunkTokens : end};
}

// An element of KV, as bits: the type picks the way it is widened.
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

// The result of one query vector over some chunks: o[head_dim], then max, then sum.
inline long long record_floats(const Args& a) {
  return (a.head_dim + 2 + 15) / 16 * 16;
}

// The workspace: per lane a unit's query vectors and a block's scores, kChunkTokens floats each, K
// and V of a chunk as floats, and two sets of the unit's records; then the records of cut units, by
// the lane that begins one (each begins one at most) and chunk, counted from the unit's first.
struct Workspace {
  float* base;
  long long record, n_lanes, n_chunks, unit_queries, wide_floats;

  Workspace(const Args& args, int n_lanes, std::byte* bytes);
  long long lane_floats() const {
    return unit_queries * (kChunkTokens + 2 * record) + kBlockQueriesAtMost * kChunkTokens +
           wide_floats;
  }
  float* queries(int lane) const { return base + lane * lane_floats(); }
  float* scores(int lane) const { return queries(lane) + unit_queries * kChunkTokens; }
  float* wide(int lane) const { return scores(lane) + kBlockQueriesAtMost * kChunkTokens; }
  float* state(int lane) const { return wide(lane) + wide_floats; }
  float* chunk(int lane) const { return state(lane) + unit_queries * record; }
  float* cut(int first_lane, long long i) const {
    return base + n_lanes * lane_floats() + (first_lane * n_chunks + i) * unit_queries * record;
  }
  size_t bytes() const;
};

size_t workspace_bytes(const Args& args, int n_lanes);

}  // namespace millrace::attention
