#include "kernels/attention/plan.h"

#include <algorithm>

namespace millrace::attention {
namespace {

// The chunks of which the row sees something.
Range chunks_of(const Args& a, long long row) {
  return {first_seen(a, row) / kChunkTokens, a.positions[row] / kChunkTokens + 1};
}

long long n_chunks_at_most(const Args& a) {
  return (a.max_pages * a.page_tokens + kChunkTokens - 1) / kChunkTokens;
}

// Makes `unit` the block of rows that begins at the first row from `row` on that is not padding. It
// ends before a row that would leave a gap in its chunks: of a gap neither tables nor pages may be
// read, and nobody is to be given it as work.
bool begin_rows(const Args& a, long long row, Unit& unit) {
  while (row < a.n_rows && a.positions[row] < 0) ++row;
  if (row >= a.n_rows) return false;
  unit.row = row;
  unit.n_rows = 0;
  Range all = chunks_of(a, row);
  const long long end =
      std::min(a.n_rows, row + std::max(1LL, unit.queries_at_most / (a.n_heads / a.n_kv_heads)));
  for (; row < end && a.positions[row] >= 0; ++row) {
    const Range own = chunks_of(a, row);
    if (a.sequences[row] != a.sequences[unit.row] || own.begin > all.end || own.end < all.begin)
      break;
    all = {std::min(all.begin, own.begin), std::max(all.end, own.end)};
    ++unit.n_rows;
  }
  unit.first_chunk = all.begin;
  unit.n_chunks = all.end - all.begin;
  return true;
}

}  // namespace

long long unit_queries_of(const Args& a, int n_lanes) {
  const auto fits = [&](long long n) {
    const long long cut_floats = n * n_chunks_at_most(a) * record_floats(a);
    return a.n_rows * a.n_heads >= n * n_lanes * kUnitsPerLane &&
           cut_floats * static_cast<long long>(sizeof(float)) <= kCutBytesAtMost;
  };
  long long n = kUnitQueries;
  while (n > kFewestUnitQueries && !fits(n)) n /= 2;
  return n;
}

bool next_unit(const Args& a, Unit& unit) {
  unit.cost_before += unit.n_chunks * unit.chunk_cost();
  unit.head += unit.n_heads;
  if (unit.n_rows == 0 || unit.head == a.n_heads) {
    unit.head = 0;
    if (!begin_rows(a, unit.row + unit.n_rows, unit)) return false;
  }
  const long long group = a.n_heads / a.n_kv_heads;
  unit.n_heads = std::min(group - unit.head % group, unit.queries_at_most);
  return true;
}

int Plan::lane_of(const Unit& unit, long long i) const {
  const long long at = unit.cost_before + i * unit.chunk_cost();
  return static_cast<int>(at * n_lanes / std::max(1LL, total_cost));
}

bool Plan::is_cut(const Unit& unit) const {
  return lane_of(unit, 0) != lane_of(unit, unit.n_chunks - 1);
}

Plan make_plan(const Args& a, int n_lanes) {
  Plan plan{.unit_queries = unit_queries_of(a, n_lanes), .n_lanes = n_lanes};
  Unit unit = plan.before_first();
  while (next_unit(a, unit)) {
  }
  plan.total_cost = unit.cost_before;
  return plan;
}

Workspace::Workspace(const Args& a, int n_lanes, std::byte* bytes)
    : base(reinterpret_cast<float*>(bytes)),
      record(record_floats(a)),
      n_lanes(n_lanes),
      n_chunks(n_chunks_at_most(a)),
      unit_queries(std::min(unit_queries_of(a, n_lanes), a.n_rows * (a.n_heads / a.n_kv_heads))),
      wide_floats(widens(a, unit_queries) ? 2 * kChunkTokens * a.head_dim : 0) {}

size_t Workspace::bytes() const {
  const long long cut_floats = (n_lanes - 1) * n_chunks * unit_queries * record;
  return static_cast<size_t>(n_lanes * lane_floats() + cut_floats) * sizeof(float);
}

size_t workspace_bytes(const Args& a, int n_lanes) {
  return Workspace(a, n_lanes, nullptr).bytes();
}

}  // namespace millrace::attention
