// The prefix tree over real pages: what is found, what makes room, and that every page comes back.
#include "engine/prefix_tree.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "engine/fixture_test.h"

namespace millrace {
namespace {

using Pages = std::vector<std::vector<int32_t>>;

struct Pools {
  std::unique_ptr<Loaded> loaded;  // for its device
  Config config;
  std::vector<KvPages> pools;

  explicit Pools(std::vector<int64_t> windows, int64_t n_pages) {
    loaded = load(tiny_model(), 1, {.n_ctx = 64});
    config = loaded->engine->config();
    for (const int64_t window : windows)
      pools.push_back(KvPages::make(config, {.window = window, .layers = {0}}, DType::f16, n_pages,
                                    *loaded->device)
                          .value());
  }
  // Pages of n tokens, as a sequence has them.
  Pages take(int64_t n) {
    Pages out(pools.size());
    for (size_t group = 0; group < pools.size(); ++group)
      for (int64_t i = 0; i < (n + kPageTokens - 1) / kPageTokens; ++i)
        out[group].push_back(pools[group].take().value());
    return out;
  }
  void give_back(const Pages& pages) {
    for (size_t group = 0; group < pools.size(); ++group)
      for (const int32_t id : pages[group])
        if (id >= 0) pools[group].release(id);
  }
};

std::vector<int32_t> tokens(int64_t n, int32_t first = 0) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(first + static_cast<int32_t>(i));
  return out;
}

TEST(PrefixTree, finds_the_longest_beginning_even_inside_a_page) {
  Pools p({0}, 16);
  PrefixTree tree(p.pools);
  Pages pages = p.take(150);
  tree.insert("", tokens(150), pages, true);
  p.give_back(pages);
  EXPECT_EQ(p.pools[0].n_free(), 13);
  EXPECT_EQ(tree.find("", tokens(150)).n, 150);
  EXPECT_EQ(tree.find("", tokens(140)).n, 140);
  std::vector<int32_t> other = tokens(150);
  other[70] = -1;
  const auto found = tree.find("", other);
  EXPECT_EQ(found.n, 70);
  EXPECT_EQ(found.pages[0], (std::vector<int32_t>{pages[0][0], pages[0][1]}));
  EXPECT_EQ(tree.find("another salt", tokens(150)).n, 0);
  EXPECT_EQ(tree.find("", tokens(10, 5)).n, 0);
}

TEST(PrefixTree, a_longer_context_replaces_the_end_it_went_on_from) {
  Pools p({0}, 16);
  PrefixTree tree(p.pools);
  Pages pages = p.take(128);
  tree.insert("", tokens(70), pages, true);
  EXPECT_EQ(tree.counts().n_nodes, 2);
  tree.insert("", tokens(128), pages, false);
  EXPECT_EQ(tree.counts().n_nodes, 2);
  tree.insert("", tokens(100), pages, true);  // has nothing new
  EXPECT_EQ(tree.counts().n_nodes, 2);
  p.give_back(pages);
  EXPECT_EQ(p.pools[0].n_free(), 14);
  tree.clear();
  EXPECT_EQ(p.pools[0].n_free(), 16);
}

TEST(PrefixTree, gives_up_the_least_recent_end_first_and_never_what_is_held) {
  Pools p({0}, 8);
  PrefixTree tree(p.pools);
  Pages a = p.take(128), b = p.take(128);
  tree.insert("", tokens(128), a, true);
  tree.insert("", tokens(128, 1000), b, true);
  p.give_back(a);
  EXPECT_EQ(tree.find("", tokens(128)).n, 128);  // newer than b now
  ASSERT_TRUE(tree.make_room(0));                // of b nothing, it is held
  EXPECT_EQ(tree.find("", tokens(128)).n, 64);
  p.give_back(b);
  EXPECT_EQ(tree.n_reclaimable(0), 3);
  ASSERT_TRUE(tree.make_room(0));
  EXPECT_EQ(tree.find("", tokens(128, 1000)).n, 64);
  while (tree.make_room(0)) {
  }
  EXPECT_EQ(p.pools[0].n_free(), 8);
  EXPECT_EQ(tree.counts().n_nodes, 0);
}

// The newest, of which nobody expects anything, before an old one whose client will be back; of it
// the end first, and never what is held.
TEST(PrefixTree, gives_up_what_is_worth_least) {
  Pools p({0}, 8);
  double now_s = 100;
  Retention retention(KvPolicy::value, [&] { return now_s; });
  PrefixTree tree(p.pools, &retention);
  const auto arrive = [&](const char* session, const std::vector<int32_t>& prompt) {
    return retention.arrived({.session = session, .prompt = prompt});
  };
  const Use awaited = arrive("a", tokens(128)), left = arrive("b", tokens(128, 1000));
  Pages a = p.take(128), b = p.take(128), c = p.take(128);
  tree.insert("", tokens(128), a, true, true, awaited);
  tree.insert("", tokens(128, 1000), b, true, true, left);
  tree.insert("", tokens(128, 2000), c, true);  // by nobody that is known
  p.give_back(a);
  p.give_back(b);
  retention.ended(awaited, TurnEnd::end, "a_tool");
  retention.ended(left, TurnEnd::end);
  const auto shown = tree.shown(8);
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_LT(shown[0].rate, shown[2].rate);
  EXPECT_EQ(shown[2].uses[0].line, awaited.line);
  ASSERT_TRUE(tree.make_room(0));
  EXPECT_EQ(tree.count("", tokens(128, 1000)), 64);
  ASSERT_TRUE(tree.make_room(0));
  EXPECT_EQ(tree.count("", tokens(128, 1000)), 0);
  EXPECT_EQ(tree.count("", tokens(128)), 128);
  ASSERT_TRUE(tree.make_room(0));
  ASSERT_TRUE(tree.make_room(0));
  EXPECT_FALSE(tree.make_room(0));
  EXPECT_EQ(tree.count("", tokens(128, 2000)), 128);
  p.give_back(c);
  while (tree.make_room(0)) {
  }
  EXPECT_EQ(p.pools[0].n_free(), 8);
  EXPECT_TRUE(tree.shown(8).empty());
}

// What the disk has costs a read, what it lacks is lost: that stays longer.
TEST(PrefixTree, moves_down_before_it_drops) {
  Pools p({0}, 8);
  Retention retention(KvPolicy::value, [] { return 100.0; });
  PrefixTree tree(p.pools, &retention);
  const auto first = [](std::string_view) { return Hash128{1, 1}; };
  const auto next = [](const Hash128& before, std::span<const int32_t> own) {
    return Hash128{before.low + static_cast<uint64_t>(own[0]) + 1, 1};
  };
  std::vector<uint64_t> moved;
  tree.save_with({.first_hash = first,
                  .next_hash = next,
                  .is_on_disk = [](const Hash128& prefix, uint32_t) { return prefix.low > 500; },
                  .move_down =
                      [&](const PrefixTree::Unsaved& page) {
                        moved.push_back(page.prefix.low);
                        return true;
                      }});
  Pages a = p.take(64), b = p.take(64);
  tree.insert("", tokens(64), a, true);
  tree.insert("", tokens(64, 1000), b, true);  // newer, and on disk
  p.give_back(a);
  p.give_back(b);
  ASSERT_TRUE(tree.make_room(0));
  EXPECT_EQ(tree.count("", tokens(64)), 64);
  EXPECT_EQ(tree.count("", tokens(64, 1000)), 0);
  ASSERT_TRUE(tree.make_room(0));
  EXPECT_EQ(moved, (std::vector<uint64_t>{1002, 2}));
  EXPECT_EQ(tree.counts().n_not_saved, 0);
}

// What must stay off the disk does, though what is before it was read from there.
TEST(PrefixTree, what_may_not_be_written_is_not_moved_down) {
  Pools p({0}, 8);
  Retention retention(KvPolicy::value, [] { return 100.0; });
  PrefixTree tree(p.pools, &retention);
  std::vector<uint64_t> moved;
  tree.save_with({.first_hash =
                      [](std::string_view) {
                        return Hash128{1, 1};
                      },
                  .next_hash =
                      [](const Hash128& before, std::span<const int32_t>) {
                        return Hash128{before.low + 1, 1};
                      },
                  .is_on_disk = [](const Hash128& prefix, uint32_t) { return prefix.low == 2; },
                  .move_down =
                      [&](const PrefixTree::Unsaved& page) {
                        moved.push_back(page.prefix.low);
                        return true;
                      }});
  Pages a = p.take(192);
  tree.insert("", tokens(192), a, true, false);
  tree.came_from_disk("", tokens(192), 0);
  p.give_back(a);
  while (tree.make_room(0)) {
  }
  EXPECT_EQ(moved, std::vector<uint64_t>{2});
}

// Two sequences computed the same: the second gets the first one's whole pages, and keeps its own
// last one, which it goes on writing.
TEST(PrefixTree, keeps_nothing_twice) {
  Pools p({0}, 16);
  PrefixTree tree(p.pools);
  Pages first = p.take(150), second = p.take(150);
  const int32_t last = second[0][2];
  tree.insert("", tokens(150), first, true);
  tree.insert("", tokens(150), second, true);
  EXPECT_EQ(second[0], (std::vector<int32_t>{first[0][0], first[0][1], last}));
  EXPECT_EQ(p.pools[0].n_free(), 16 - 4);
  EXPECT_EQ(tree.n_held("", tokens(150), 0), 2);
  p.give_back(first);
  p.give_back(second);
  EXPECT_EQ(tree.n_held("", tokens(150), 0), 0);
  EXPECT_EQ(tree.n_reclaimable(0), 3);
  tree.clear();
  EXPECT_EQ(p.pools[0].n_free(), 16);
}

// A window of 100 needs the two or three pages before where a context goes on.
TEST(PrefixTree, keeps_what_windows_see_where_contexts_end) {
  Pools p({0, 100}, 32);
  PrefixTree tree(p.pools);
  Pages pages = p.take(640);
  tree.insert("", std::span<const int32_t>(tokens(640)).first(300), pages, true);
  tree.insert("", tokens(640), pages, true);
  p.give_back(pages);
  EXPECT_EQ(tree.find("", tokens(640)).n, 640);
  const int64_t n_all = tree.n_reclaimable(1);
  // 300: pages 3 and 4; 640: pages 8 and 9.
  for (int64_t i = 0; i < n_all - 4; ++i) ASSERT_TRUE(tree.make_room(1));
  EXPECT_EQ(tree.find("", tokens(640)).n, 640);
  EXPECT_EQ(tree.find("", tokens(300)).n, 300);
  EXPECT_EQ(tree.find("", tokens(500)).n, 320);  // the last border with all that it sees
  while (tree.make_room(1)) {
  }
  EXPECT_EQ(tree.find("", tokens(640)).n, 0);
  EXPECT_EQ(p.pools[1].n_free(), 32);
}

// Against a plain list of what was inserted.
TEST(PrefixTree, agrees_with_a_list) {
  Pools p({0}, 400);
  PrefixTree tree(p.pools);
  std::vector<std::vector<int32_t>> known;
  Rng rng(3);
  const auto below = [&](uint32_t n) { return static_cast<int64_t>(rng.below(n)); };
  const auto made = [&] {
    std::vector<int32_t> out;
    if (!known.empty() && below(3) > 0) {
      out = known[static_cast<size_t>(below(static_cast<uint32_t>(known.size())))];
      out.resize(static_cast<size_t>(below(static_cast<uint32_t>(out.size()) + 1)));
    }
    for (int64_t n = below(200); n > 0; --n) out.push_back(static_cast<int32_t>(below(2)));
    return out;
  };
  for (int round = 0; round < 200; ++round) {
    const std::vector<int32_t> asked = made();
    int64_t longest = 0;
    for (const auto& one : known)
      longest = std::max<int64_t>(
          longest,
          std::mismatch(asked.begin(), asked.end(), one.begin(), one.end()).first - asked.begin());
    EXPECT_EQ(tree.count("", asked), longest);
    const auto found = tree.find("", asked);
    EXPECT_EQ(found.n, longest);
    const std::vector<int32_t> stored = made();
    const auto n_pages = (std::ssize(stored) + kPageTokens - 1) / kPageTokens;
    while (p.pools[0].n_free() < n_pages) {
      tree.clear();
      known.clear();
    }
    Pages pages = p.take(std::ssize(stored));
    tree.insert("", stored, pages, below(2) == 0);
    p.give_back(pages);
    known.push_back(stored);
  }
  tree.clear();
  EXPECT_EQ(p.pools[0].n_free(), 400);
}

}  // namespace
}  // namespace millrace
