#include "kernels/attention/work.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#ifdef MILLRACE_CUDA
#include "kernels/attention/device.h"
#include "memory/device.h"
#endif

namespace millrace::attention {
namespace {

// A place in the line: a unit (head by head, chunk by chunk) of a tile, and what lies before the
// tile.
struct Place {
  int tile = 0;
  long long unit = 0;
  long long units_before = 0, cost_before = 0;

  long long index() const { return units_before + unit; }
};

// Writes into the list as it goes: a step of the engine allocates nothing.
class Planner {
 public:
  Planner(const WorkBatch& batch, const Spread& work, std::span<int> list)
      : batch_(batch),
        work_(work),
        list_(list),
        group_(batch.n_heads / batch.n_kv_heads),
        cuts_at_(static_cast<size_t>(work.n_shares) * kShareInts),
        tiles_at_(cuts_at_ + static_cast<size_t>(work.n_shares) * kCutInts) {
    MILLRACE_CHECK(group_ <= kTileVectors, "{} query heads a KV head", group_);
    std::fill(list.begin(), list.end(), 0);
  }

  void run() {
    make_tiles();
    long long cost = 0;
    for (int i = 0; i < n_tiles_; ++i) cost += units_of(tile(i)) * unit_cost(tile(i));
    make_shares(cost);
  }

 private:
  template <class T>
  void put(size_t at, const T& value) {
    std::memcpy(list_.data() + at, &value, sizeof(T));
  }
  ListTile tile(int i) const {
    ListTile t;
    std::memcpy(&t, list_.data() + tiles_at_ + static_cast<size_t>(i) * kTileInts, sizeof t);
    return t;
  }

  static long long chunks_of(const ListTile& t) {
    return t.last / kListChunk - t.first / kListChunk + 1;
  }
  long long units_of(const ListTile& t) const { return chunks_of(t) * batch_.n_kv_heads; }
  // A column of query vectors takes the time of K and V; with more, arithmetic counts.
  static long long unit_cost(const ListTile& t) { return t.columns == 1 ? 4 : 5; }

  int first_seen(size_t row) const {
    if (batch_.window == 0) return 0;
    return static_cast<int>(std::max(0LL, batch_.positions[row] + 1LL - batch_.window));
  }

  // Whether the row continues the tile: no page may lie unseen between them.
  bool joins(const ListTile& t, size_t row) const {
    const auto page = static_cast<int>(batch_.page_tokens);
    const int first = first_seen(row), last = batch_.positions[row];
    return last >= 0 && batch_.sequences[row] == t.sequence && first / page <= t.last / page + 1 &&
           t.first / page <= last / page + 1;
  }

  void add_row(ListTile& t, size_t row) const {
    const int first = first_seen(row), last = batch_.positions[row];
    ++t.n_rows;
    t.first = std::min(t.first, first);
    t.last = std::max(t.last, last);
    t.first_all = std::max(t.first_all, first);
    t.last_all = std::min(t.last_all, last);
  }

  void make_tiles() {
    const bool one_column = has_one_column(std::ssize(batch_.positions), group_);
    const long long most_rows = (one_column ? kColumnVectors : kTileVectors) / group_;
    for (size_t row = 0; row < batch_.positions.size();) {
      const int first = first_seen(row), last = batch_.positions[row];
      ListTile t{static_cast<int>(row), 1, batch_.sequences[row], first, last, first, last, 0};
      ++row;
      if (last < 0) continue;
      for (; row < batch_.positions.size() && t.n_rows < most_rows && joins(t, row); ++row)
        add_row(t, row);
      t.columns = t.n_rows * group_ <= kColumnVectors ? 1 : 4;
      put(tiles_at_ + static_cast<size_t>(n_tiles_++) * kTileInts, t);
    }
  }

  // The same place, at the next tile's beginning if it is this one's end.
  Place settled(const Place& p) const {
    if (p.tile == n_tiles_ || p.unit < units_of(tile(p.tile))) return p;
    const ListTile t = tile(p.tile);
    return {p.tile + 1, 0, p.units_before + units_of(t),
            p.cost_before + units_of(t) * unit_cost(t)};
  }

  // The first place at or after `p` with at least this cost before it.
  Place place_at(long long cost, Place p) const {
    while (p.tile < n_tiles_) {
      const ListTile t = tile(p.tile);
      const long long wanted = (cost - p.cost_before + unit_cost(t) - 1) / unit_cost(t);
      p.unit = std::clamp(wanted, p.unit, units_of(t));
      if (p.unit < units_of(t)) break;
      p = settled(p);
    }
    return p;
  }

  // Makes a boundary possible: one inside a head's chunks needs a cut, and a cut room for records.
  // Gives the cut, or -1 where the boundary lies between heads, if need be moved there.
  int cut_at(Place& p) {
    if (p.tile == n_tiles_) return -1;
    const ListTile t = tile(p.tile);
    const long long n_chunks = chunks_of(t), chunk = p.unit % n_chunks;
    if (chunk == 0) return -1;
    const long long head_at = p.index() - chunk;
    if (cut_head_ == head_at) return n_cuts_ - 1;
    const long long records = (n_chunks - chunk + 1) * ((t.n_rows * group_ + 1) / 2 * 2);
    if (n_records_ + records > work_.n_records) {
      p.unit += n_chunks - chunk;
      p = settled(p);
      return -1;
    }
    cut_head_ = head_at;
    put(cuts_at_ + static_cast<size_t>(n_cuts_) * kCutInts,
        ListCut{0, static_cast<int>(chunk), static_cast<int>(n_records_), 0});
    n_records_ += records;
    return n_cuts_++;
  }

  void make_shares(long long cost) {
    Place begin;
    int first_cut = -1;
    for (int i = 0; i < work_.n_shares; ++i) {
      Place end = place_at(cost * (i + 1) / work_.n_shares, begin);
      const int last_cut = cut_at(end);
      if (end.index() > begin.index()) {
        const long long n_chunks = chunks_of(tile(begin.tile));
        put(static_cast<size_t>(i) * kShareInts,
            ListShare{begin.tile,
                      static_cast<int>(begin.unit / n_chunks),
                      static_cast<int>(begin.unit % n_chunks),
                      static_cast<int>(end.index() - begin.index()),
                      first_cut,
                      last_cut,
                      {}});
      }
      begin = end;
      first_cut = last_cut;
    }
  }

  const WorkBatch& batch_;
  const Spread& work_;
  const std::span<int> list_;
  const long long group_;
  const size_t cuts_at_, tiles_at_;
  int n_tiles_ = 0, n_cuts_ = 0;
  long long n_records_ = 0;
  long long cut_head_ = -1;  // index of the first unit of the head that was cut last
};

}  // namespace

// A share is a part of the cost, rounded up to a chunk, and the rest of a head where there is no
// room to cut it. A chunk costs 4 or 5, so it has at most 5 / 4 of the mean number of chunks.
Status check_limits(const WorkLimits& limits, int n_shares) {
  const auto chunks = static_cast<double>((limits.max_tokens + kListChunk - 1) / kListChunk);
  const double all =
      chunks * static_cast<double>(limits.n_kv_heads) * static_cast<double>(limits.max_rows);
  const double share = all * 1.25 / n_shares + 1 + chunks;
  if (share <= std::numeric_limits<int>::max()) return {};
  return error(Code::unsupported,
               "attention over {} tokens for {} tokens a step is more than a GPU's list of work "
               "holds; -c sets a smaller context, -b a smaller batch",
               limits.max_tokens, limits.max_rows);
}

Result<Spread> device_work([[maybe_unused]] const WorkLimits& limits) {
  Spread work;
#ifdef MILLRACE_CUDA
  if (limits.n_heads / limits.n_kv_heads > kTileVectors) return work;
  MILLRACE_TRY(cuda_status(sm80_list_work(limits.head_dim, &work), "attention's list of work"));
  if (work.n_shares > 0) MILLRACE_TRY(check_limits(limits, work.n_shares));
#endif
  return work;
}

size_t list_ints(long long n_rows, int n_shares) {
  return static_cast<size_t>(n_shares) * (kShareInts + kCutInts) +
         static_cast<size_t>(n_rows) * kTileInts;
}

void make_list(const WorkBatch& batch, const Spread& work, std::span<int> list) {
  MILLRACE_CHECK(
      list.size() == list_ints(static_cast<long long>(batch.positions.size()), work.n_shares),
      "a list of {} ints", list.size());
  Planner(batch, work, list).run();
}

}  // namespace millrace::attention
