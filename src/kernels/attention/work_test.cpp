// The list of work: every chunk of every KV head of every tile falls to exactly one share, shares
// are even, cuts are what the device counts on, and records stay within their room.
#include "kernels/attention/work.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "base/philox.h"

namespace millrace::attention {
namespace {

struct Lists {
  std::vector<ListShare> shares;
  std::vector<ListCut> cuts;
  std::vector<ListTile> tiles;  // those that hold rows
};

template <class T>
std::vector<T> take(const int* from, size_t n) {
  std::vector<T> out(n);
  if (n > 0) std::memcpy(out.data(), from, n * sizeof(T));
  return out;
}

struct Mix {
  std::vector<int> sequences = {}, positions = {};
  long long n_heads = 16, n_kv_heads = 8, page_tokens = 64, window = 0;

  Lists list(const Spread& work) const {
    const auto rows = static_cast<long long>(positions.size());
    std::vector<int> ints(list_ints(rows, work.n_shares), -77);
    make_list({sequences, positions, n_heads, n_kv_heads, page_tokens, window}, work, ints);
    const auto shares = static_cast<size_t>(work.n_shares);
    Lists out{take<ListShare>(ints.data(), shares),
              take<ListCut>(ints.data() + shares * kShareInts, shares),
              take<ListTile>(ints.data() + shares * (kShareInts + kCutInts), positions.size())};
    while (!out.tiles.empty() && out.tiles.back().n_rows == 0) out.tiles.pop_back();
    return out;
  }
};

constexpr Spread kWork{.n_shares = 132, .n_records = 65536};

int chunks_of(const ListTile& t) {
  return t.last / kListChunk - t.first / kListChunk + 1;
}

int first_seen(const Mix& mix, int position) {
  return mix.window == 0 ? 0 : std::max(0, position + 1 - static_cast<int>(mix.window));
}

int vectors_of(const Mix& mix, const ListTile& t) {
  return t.n_rows * static_cast<int>(mix.n_heads / mix.n_kv_heads);
}

// A share's chunks of one KV head of a tile.
struct Run {
  int tile, head, chunk, n_chunks, cut;
};

std::vector<Run> runs_of(const Lists& lists, const ListShare& share, int n_kv_heads) {
  std::vector<Run> runs;
  int tile = share.tile, head = share.kv_head, chunk = share.chunk, left = share.n_chunks;
  while (left > 0) {
    const int n = chunks_of(lists.tiles.at(static_cast<size_t>(tile)));
    const int run = std::min(left, n - chunk);
    const int cut = run == n ? -1 : chunk == 0 ? share.last_cut : share.first_cut;
    runs.push_back({tile, head, chunk, run, cut});
    left -= run;
    chunk = 0;
    if (++head == n_kv_heads) {
      head = 0;
      ++tile;
    }
  }
  return runs;
}

// The rows of a tile are neighbours of one sequence, and its tokens are those that they see.
void check_tile(const Mix& mix, const ListTile& tile) {
  int first = 1 << 30, last = -1, first_all = -1, last_all = 1 << 30;
  std::set<int> pages;
  const auto page_tokens = static_cast<int>(mix.page_tokens);
  for (int row = tile.row; row < tile.row + tile.n_rows; ++row) {
    const int position = mix.positions.at(static_cast<size_t>(row));
    EXPECT_GE(position, 0);
    EXPECT_EQ(mix.sequences[static_cast<size_t>(row)], tile.sequence);
    first = std::min(first, first_seen(mix, position));
    last = std::max(last, position);
    first_all = std::max(first_all, first_seen(mix, position));
    last_all = std::min(last_all, position);
    for (int page = first_seen(mix, position) / page_tokens; page <= position / page_tokens; ++page)
      pages.insert(page);
  }
  EXPECT_EQ(std::tie(tile.first, tile.last), std::tie(first, last));
  EXPECT_EQ(std::tie(tile.first_all, tile.last_all), std::tie(first_all, last_all));
  EXPECT_EQ(pages.size(), static_cast<size_t>(last / page_tokens - first / page_tokens + 1));
  EXPECT_LE(vectors_of(mix, tile), kTileVectors);
  EXPECT_EQ(tile.columns, vectors_of(mix, tile) <= 8 ? 1 : 4);
}

// Every row that is no padding lies in one tile.
void check_rows(const Mix& mix, const Lists& lists) {
  std::vector<int> expected, found;
  for (size_t row = 0; row < mix.positions.size(); ++row)
    if (mix.positions[row] >= 0) expected.push_back(static_cast<int>(row));
  for (const ListTile& tile : lists.tiles) {
    check_tile(mix, tile);
    for (int i = 0; i < tile.n_rows; ++i) found.push_back(tile.row + i);
  }
  EXPECT_EQ(found, expected);
}

// What the device does with the chunks, but for arithmetic: blocks in any order, results of cut
// heads in records, and whoever brings in the last one reads them all.
class Walk {
 public:
  Walk(const Mix& mix, const Spread& work, Lists lists)
      : mix_(mix),
        lists_(std::move(lists)),
        records_(static_cast<size_t>(work.n_records), {-1, 0}) {
    for (const ListTile& tile : lists_.tiles)
      done_.emplace_back(static_cast<size_t>(mix.n_kv_heads * chunks_of(tile)), 0);
  }

  void run(Rng& rng) {
    std::vector<size_t> order(lists_.shares.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    for (const size_t share : order)
      for (const Run& run :
           runs_of(lists_, lists_.shares[share], static_cast<int>(mix_.n_kv_heads)))
        walk(run);
    for (const auto& tile : done_)
      for (const int times : tile) EXPECT_EQ(times, 1);
    for (const ListCut& cut : lists_.cuts) EXPECT_EQ(cut.n_done, 0);
  }

 private:
  struct Record {
    int chunk, n_chunks;  // -1: none
  };

  const ListTile& tile_of(const Run& run) const {
    return lists_.tiles[static_cast<size_t>(run.tile)];
  }

  // Chunks that are folded into the output count as done.
  void finish(const Run& run, int chunk) {
    ++done_[static_cast<size_t>(run.tile)]
           [static_cast<size_t>(run.head * chunks_of(tile_of(run)) + chunk)];
  }

  Record& record(const Run& run, const ListCut& cut, int slot, int vector) {
    const int each = (vectors_of(mix_, tile_of(run)) + 1) / 2 * 2;
    return records_.at(static_cast<size_t>(cut.record + slot * each + vector));
  }

  void keep(const Run& run, const ListCut& cut, int slot, const Record& result) {
    for (int v = 0; v < vectors_of(mix_, tile_of(run)); ++v) {
      EXPECT_EQ(record(run, cut, slot, v).chunk, -1) << "written twice";
      record(run, cut, slot, v) = result;
    }
  }

  void walk(const Run& run) {
    const int n = chunks_of(tile_of(run));
    if (run.n_chunks == n) {
      for (int chunk = 0; chunk < n; ++chunk) finish(run, chunk);
      return;
    }
    ListCut& cut = lists_.cuts.at(static_cast<size_t>(run.cut));
    if (run.chunk == 0) {
      EXPECT_EQ(run.n_chunks, cut.head_chunks);
      keep(run, cut, 0, {0, run.n_chunks});
    } else {
      for (int chunk = run.chunk; chunk < run.chunk + run.n_chunks; ++chunk)
        keep(run, cut, chunk - cut.head_chunks + 1, {chunk, 1});
    }
    cut.n_done += run.n_chunks;
    if (cut.n_done != n) return;
    cut.n_done = 0;
    fold(run, cut);
  }

  // In ascending order from chunk 0, without a gap.
  void fold(const Run& run, const ListCut& cut) {
    int next = 0;
    for (int slot = 0; slot <= chunks_of(tile_of(run)) - cut.head_chunks; ++slot) {
      const Record result = record(run, cut, slot, 0);
      EXPECT_EQ(result.chunk, next);
      for (int chunk = next; chunk < next + result.n_chunks; ++chunk) finish(run, chunk);
      next += result.n_chunks;
    }
  }

  const Mix& mix_;
  Lists lists_;
  std::vector<Record> records_;
  std::vector<std::vector<int>> done_;  // by tile, then head by head
};

int cost_of(const Lists& lists, const Run& run) {
  return run.n_chunks * (lists.tiles[static_cast<size_t>(run.tile)].columns == 1 ? 4 : 5);
}

// A share costs no more than its part, rounded up to a chunk, and where it may not cut a head, the
// rest of one.
void check_balance(const Mix& mix, const Lists& lists, bool has_room) {
  int64_t all = 0, most = 0, chunks = 0;
  for (const ListShare& share : lists.shares) {
    int64_t cost = 0;
    for (const Run& run : runs_of(lists, share, static_cast<int>(mix.n_kv_heads)))
      cost += cost_of(lists, run);
    all += cost;
    most = std::max(most, cost);
  }
  for (const ListTile& tile : lists.tiles) chunks = std::max<int64_t>(chunks, chunks_of(tile));
  EXPECT_LE(most, all / std::ssize(lists.shares) + 1 + 5 + (has_room ? 0 : 5 * chunks));
}

// Holds a list to everything the device counts on; gives the greatest number of chunks of a share.
int check(const Mix& mix, const Spread& work) {
  const Lists lists = mix.list(work);
  check_rows(mix, lists);
  Rng rng(static_cast<uint64_t>(work.n_shares));
  Walk(mix, work, lists).run(rng);
  check_balance(mix, lists, work.n_records >= kWork.n_records);
  int most = 0;
  for (const ListShare& share : lists.shares) most = std::max(most, share.n_chunks);
  return most;
}

TEST(AttentionWork, SpreadsOneSequence) {
  Mix mix{.sequences = {0}, .positions = {65535}};
  EXPECT_EQ(check(mix, kWork), 16);  // 8 x 256 chunks over 132 shares
  mix.positions = {200};
  EXPECT_EQ(check(mix, kWork), 1);
  const Lists lists = mix.list(kWork);
  for (const ListShare& share : lists.shares) EXPECT_LE(share.first_cut, 0);
}

TEST(AttentionWork, HasNoCliffAtAWave) {
  Mix mix;
  for (int i = 0; i < 34; ++i) {
    mix.sequences.push_back(i);
    mix.positions.push_back(8191);
  }
  EXPECT_EQ(check(mix, kWork), 66);  // 34 x 8 x 32 chunks over 132 shares: 65.9
}

TEST(AttentionWork, LetsRowsOfAPrefillShareATile) {
  Mix mix;
  for (int i = 0; i < 100; ++i) {
    mix.sequences.push_back(0);
    mix.positions.push_back(1000 + i);
  }
  check(mix, kWork);
  const Lists lists = mix.list(kWork);
  ASSERT_EQ(lists.tiles.size(), 7u);  // 16 rows of two heads each
  EXPECT_EQ(lists.tiles[1].row, 16);
  EXPECT_EQ(lists.tiles[1].first, 0);
  EXPECT_EQ(lists.tiles[1].last, 1031);
  EXPECT_EQ(lists.tiles[1].last_all, 1016);
  EXPECT_EQ(lists.tiles[1].columns, 4);
  EXPECT_EQ(lists.tiles[6].columns, 1);
}

TEST(AttentionWork, LeavesOutPaddingAndUnseenPages) {
  Mix mix{.sequences = {0, 0, 0, 1, 1}, .positions = {-1, 100, 900, 900, -1}, .window = 64};
  check(mix, kWork);
  const Lists lists = mix.list(kWork);
  ASSERT_EQ(lists.tiles.size(), 3u);  // 100 and 900 leave pages between them
  EXPECT_EQ(lists.tiles[0].row, 1);
  EXPECT_EQ(lists.tiles[1].first, 837);
  EXPECT_EQ(lists.tiles[2].sequence, 1);
}

TEST(AttentionWork, MovesBoundariesWhereThereIsNoRoomForRecords) {
  Mix mix{.sequences = {0, 1}, .positions = {9000, 20000}};
  Spread work = kWork;
  work.n_records = 0;
  EXPECT_EQ(check(mix, work), 79);  // no head is cut: 79 chunks of one
  work.n_records = 500;
  EXPECT_EQ(check(mix, work), 79);  // room for some
  EXPECT_EQ(check(mix, kWork), 7);  // for all: 920 chunks over 132 shares
}

TEST(AttentionWork, OfNothingIsNothing) {
  EXPECT_EQ(check({}, kWork), 0);
  EXPECT_EQ(check({.sequences = {0, 0}, .positions = {-1, -1}}, kWork), 0);
}

// Prefills, decodes and padding of several sequences, rows of one of them also apart.
Mix any_mix(Rng& rng) {
  Mix mix{.n_heads = 24, .n_kv_heads = 1LL << rng.below(4), .page_tokens = 16LL << rng.below(5)};
  mix.window = rng.below(3) == 0 ? static_cast<long long>(rng.below(2000) + 1) : 0;
  for (size_t n = rng.below(60); mix.positions.size() < n;) {
    const auto sequence = static_cast<int>(rng.below(5)), run = static_cast<int>(rng.below(20));
    int position = static_cast<int>(rng.below(8000)) - 500;
    for (int i = 0; i <= run; ++i) {
      mix.sequences.push_back(sequence);
      mix.positions.push_back(rng.below(9) == 0 ? -1 : position++);
    }
  }
  return mix;
}

TEST(AttentionWork, HoldsForAnyMix) {
  Rng rng(7);
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    const Mix mix = any_mix(rng);
    const auto n_shares = static_cast<int>(rng.below(200)) + 1;
    check(mix, {.n_shares = n_shares, .n_records = static_cast<long long>(rng.below(20000))});
    check(mix, {.n_shares = n_shares, .n_records = 1 << 20});
  }
}

TEST(AttentionWork, OfALayerWithAWindowBeginsInsideAChunk) {
  Mix mix{.sequences = {0, 0}, .positions = {5000, 5001}, .window = 512};
  check(mix, kWork);
  const Lists lists = mix.list(kWork);
  ASSERT_EQ(lists.tiles.size(), 1u);
  EXPECT_EQ(lists.tiles[0].first, 4489);  // in chunk 17, of which it leaves out the beginning
  EXPECT_EQ(lists.tiles[0].first_all, 4490);
  EXPECT_EQ(chunks_of(lists.tiles[0]), 3);
}

// The list of the rows before padding is that of all of them: an engine makes it of those alone.
TEST(AttentionWork, OfPaddedRowsIsThatOfTheOthers) {
  Mix mix{.sequences = {0, 1, 1}, .positions = {70, 800, 801}};
  Mix padded = mix;
  padded.sequences.resize(8, 0);
  padded.positions.resize(8, -1);
  const auto ints = [](const Mix& m) {
    std::vector<int> out(list_ints(std::ssize(m.positions), kWork.n_shares));
    make_list({m.sequences, m.positions, m.n_heads, m.n_kv_heads, m.page_tokens, m.window}, kWork,
              out);
    return out;
  };
  std::vector<int> expected = ints(mix);
  expected.resize(expected.size() + 5 * kTileInts, 0);
  EXPECT_EQ(ints(padded), expected);
}

TEST(AttentionWork, IsRefusedWhereASharePassesWhatAListCanSay) {
  WorkLimits limits{
      .head_dim = 128, .n_heads = 64, .n_kv_heads = 8, .max_rows = 8192, .max_tokens = 1 << 20};
  EXPECT_TRUE(check_limits(limits, 132).ok());
  limits.max_tokens = 1 << 28;
  limits.n_kv_heads = 64;
  EXPECT_EQ(check_limits(limits, 132).code(), Code::unsupported);
}

}  // namespace
}  // namespace millrace::attention
