// The list of work: every chunk of every KV head of every tile falls to exactly one share, shares
// are even, cuts are what the device counts on, and records stay within their room.
#include "kernels/attention/work.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
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

  Lists list(const Work& work) const {
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

int chunks_of(const ListTile& t) {
  return t.last / kListChunk - t.first / kListChunk + 1;
}

// A share's chunks of one KV head of a tile.
struct Run {
  int tile, head, chunk, n_chunks, cut;
};

std::vector<Run> runs_of(const Lists& lists, const ListShare& share, int n_kv_heads) {
  std::vector<Run> runs;
  int tile = share.tile, head = share.kv_head, chunk = share.chunk, left = share.n_chunks;
  while (left > 0) {
    const int n = chunks_of(lists.tiles[static_cast<size_t>(tile)]);
    const int run = std::min(left, n - chunk);
    const bool whole = run == n;
    runs.push_back({tile, head, chunk, run, whole ? -1 : runs.empty() ? share.first_cut : -2});
    if (!whole && (runs.size() > 1 || share.chunk == 0)) runs.back().cut = share.last_cut;
    left -= run;
    chunk = 0;
    if (++head == n_kv_heads) {
      head = 0;
      ++tile;
    }
  }
  return runs;
}

// Holds a list to everything the device counts on; gives the greatest number of chunks of a share.
int check(const Mix& mix, const Work& work) {
  const Lists lists = mix.list(work);
  std::map<std::pair<int, int>, std::vector<Run>> heads;
  int most = 0;
  for (const ListShare& share : lists.shares) {
    most = std::max(most, share.n_chunks);
    for (const Run& run : runs_of(lists, share, static_cast<int>(mix.n_kv_heads)))
      heads[{run.tile, run.head}].push_back(run);
  }
  EXPECT_EQ(heads.size(), lists.tiles.size() * static_cast<size_t>(mix.n_kv_heads));
  long long records = 0;
  for (const auto& [place, runs] : heads) {
    const ListTile& tile = lists.tiles[static_cast<size_t>(place.first)];
    int done = 0;
    for (const Run& run : runs) {
      EXPECT_EQ(run.chunk, done);
      done += run.n_chunks;
      if (runs.size() == 1) {
        EXPECT_EQ(run.cut, -1);
        continue;
      }
      EXPECT_EQ(run.cut, runs[0].cut);
      if (run.cut < 0 || run.cut >= work.n_shares) {
        ADD_FAILURE() << "run without a cut";
        return most;
      }
    }
    EXPECT_EQ(done, chunks_of(tile));
    if (runs.size() == 1) continue;
    const ListCut& cut = lists.cuts[static_cast<size_t>(runs[0].cut)];
    EXPECT_EQ(cut.n_done, 0);
    EXPECT_EQ(cut.head_chunks, runs[0].n_chunks);
    EXPECT_EQ(cut.record, records);
    records += static_cast<long long>(chunks_of(tile) - cut.head_chunks + 1) * tile.columns * 8;
  }
  EXPECT_LE(records, work.n_records);
  return most;
}

constexpr Work kWork{.n_shares = 132, .n_records = 65536};

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
  Work work = kWork;
  work.n_records = 0;
  EXPECT_EQ(check(mix, work), 79);  // no head is cut: 79 chunks of one
  work.n_records = 2000;
  EXPECT_EQ(check(mix, work), 79);  // room for some
  EXPECT_EQ(check(mix, kWork), 7);  // for all: 920 chunks over 132 shares
}

TEST(AttentionWork, OfNothingIsNothing) {
  EXPECT_EQ(check({}, kWork), 0);
  EXPECT_EQ(check({.sequences = {0, 0}, .positions = {-1, -1}}, kWork), 0);
}

TEST(AttentionWork, HoldsForAnyMix) {
  Rng rng(7);
  for (int trial = 0; trial < 300; ++trial) {
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
    check(mix, {.n_shares = static_cast<int>(rng.below(200)) + 1,
                .n_records = static_cast<long long>(rng.below(20000))});
  }
}

}  // namespace
}  // namespace millrace::attention
