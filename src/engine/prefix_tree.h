// What the engine remembers: the pages of contexts it has computed, by their tokens, so that a
// prompt that begins like one of them starts from there. A node is one page: the tokens in it and
// its page in every group of layers, on which the tree holds a reference. A node of fewer tokens
// than a page holds is a leaf: the end of some context. Each salt has a tree of its own.
//
// A layer with a window needs its pages only near where a context goes on. The tree keeps those of
// a group while there is room; first to go are those that no context is known to go on from.
//
// Nothing is pinned: make_room() gives up what is worth least (engine/retention.h), or was used
// least recently, and nobody else holds. Pages of windows always go by use.
//
// With a disk below it (engine/kv_tier.h) nodes wait in a list until their pages are written; one
// that is given up before is lost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "engine/kv_pages.h"
#include "engine/retention.h"

namespace millrace {

class PrefixTree {
 public:
  // The pools must outlive it, as must what says how long things are kept; null: by use alone.
  explicit PrefixTree(std::vector<KvPages>& pools, const Retention* retention = nullptr);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The longest beginning of `tokens` from which every layer can go on. Its pages by group, of the
  // last one perhaps only some tokens; -1 before a window. They are the tree's: whoever wants to
  // use them takes references before anything else is asked for.
  struct Found {
    int64_t n = 0;
    std::vector<std::vector<int32_t>> pages;
  };
  Found find(std::string_view salt, std::span<const int32_t> tokens, const Use& use = {});
  // How many tokens that would be, without counting as a use.
  int64_t count(std::string_view salt, std::span<const int32_t> tokens) const;

  // Of those, the pages of a group that others hold too.
  int64_t n_held(std::string_view salt, std::span<const int32_t> tokens, size_t group) const;

  // These tokens lie in these pages, on which the caller holds references. Where the tree has whole
  // pages of the same tokens already, the caller gets those instead of its own: nothing is kept
  // twice. `ends_here`: a context may go on from the last of them, so what the windows before it
  // see is worth keeping. `persists`: they may be written to disk. `use`: for whom.
  void insert(std::string_view salt, std::span<const int32_t> tokens,
              std::span<std::vector<int32_t>> pages, bool ends_here, bool persists = true,
              const Use& use = {});

  // What the tree has of these tokens, be it enough to go on from or not: how many lie in nodes,
  // and their pages by group; -1: given up.
  Found resident(std::string_view salt, std::span<const int32_t> tokens) const;

  // A page for one owner, for which the tree gives up others where none is free.
  Result<int32_t> take_page(size_t group);
  // Gives up a page of this group that only the tree holds; false where there is none.
  bool make_room(size_t group);
  int64_t n_reclaimable(size_t group) const;
  void clear();

  struct Counts {
    int64_t n_nodes = 0, n_tokens = 0, depth = 0;
    int64_t n_dropped = 0;    // nodes, since the start
    int64_t n_unsaved = 0;    // nodes that wait to be written to disk
    int64_t n_not_saved = 0;  // nodes that were given up before that, since the start
  };
  Counts counts() const;

  // For people: what could be given up next and what it is worth, the least first.
  struct Shown {
    int64_t n_tokens = 0, depth = 0;  // its own tokens, and its place in pages from the root
    bool is_held = false, is_on_disk = false;
    double rate = 0, cost = 0, age_s = 0;
    std::vector<Use> uses = {};
  };
  std::vector<Shown> shown(size_t most) const;

  // ---- for the disk below it
  // From now on nodes have hashes, and wait to be written: before anything is inserted.
  using FirstHash = std::function<Hash128(std::string_view salt)>;
  using NextHash = std::function<Hash128(const Hash128& before, std::span<const int32_t> tokens)>;
  struct Unsaved;
  struct Below {
    FirstHash first_hash;
    NextHash next_hash;
    // Whether the disk has these groups of the page that ends here.
    std::function<bool(const Hash128& prefix, uint32_t groups)> is_on_disk = {};
    // This one is given up: whether the disk has it or takes it now.
    std::function<bool(const Unsaved&)> move_down = {};
  };
  void save_with(Below below);
  struct Unsaved {
    Hash128 before, prefix;
    std::string_view salt;
    std::span<const int32_t> tokens, pages;
    Uses uses;
  };
  // The node that waits longest; ends of contexts, which soon may be longer, wait until they are
  // older than `ends_before_ns`. Valid until the tree changes.
  std::optional<Unsaved> next_unsaved(int64_t ends_before_ns);
  void saved();  // that one waits no more
  // Some that were saved are not on disk after all: all wait again, to be asked after.
  void doubt_saved();
  int64_t n_unsaved() const { return n_unsaved_; }
  // The pages of these tokens from this one on were read from there: they may go there again.
  void came_from_disk(std::string_view salt, std::span<const int32_t> tokens, size_t first_page);
  // Whether the page that ends here was given up lately.
  bool was_given_up(const Hash128& prefix) const;

 private:
  struct Node;
  struct ByTokens {
    using is_transparent = void;
    bool operator()(std::span<const int32_t> a, std::span<const int32_t> b) const;
  };
  // Keyed by the node's own tokens.
  using Children = std::map<std::span<const int32_t>, std::unique_ptr<Node>, ByTokens>;
  struct Hop {
    Node* node;
    int64_t n;  // of its tokens, how many are those asked for
  };

  std::vector<Hop> walk(std::string_view salt, std::span<const int32_t> tokens) const;
  int64_t usable(std::span<const Hop> path) const;
  bool can_go_on(std::span<const Hop> path, int64_t n) const;
  Node& add(std::string_view salt, Node* parent, Children& siblings,
            std::span<const int32_t> tokens);
  void want_saved(Node& node, bool persists);
  void unwait(Node& node);
  uint32_t groups_here(const Node& node) const;  // a bit for each of which it has a page
  void note_given_up(const Node& node);
  Unsaved unsaved(const Node& node) const;
  void settle(Node& node, std::span<std::vector<int32_t>> pages, size_t page);
  void drop_beginnings(Children& siblings, Node& node);
  void keep_windows(Node* last, int64_t n);
  void touch(Node* node, const Use& use);
  void unlink(Node& node);
  void become_leaf(Node& node);
  void leave_leaves(Node& node);
  Retention::Candidate weigh(const Node& node) const;
  Node* least_worth(size_t group);
  bool reclaim_window(size_t group, bool also_kept);
  bool release_page(Node& node, size_t group);
  void remove(Node& node);
  Children& siblings_of(Node& node);
  bool is_useless(const Node& node) const;

  std::vector<KvPages>& pools_;
  std::map<std::string, Children, std::less<>> roots_;
  // By last use, the oldest first. A node is always newer than its children, so the oldest is a
  // leaf.
  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
  int64_t n_nodes_ = 0, n_dropped_ = 0;

  const Retention* const retention_;
  std::vector<Node*> leaves_;
  uint64_t n_draws_ = 0;
  // Of the choice that is made.
  std::vector<Node*> looked_at_;
  std::vector<Retention::Candidate> candidates_;

  // Nodes that wait to be written, the first longest: whole pages, and ends of contexts.
  struct Waiting {
    Node* first = nullptr;
    Node* last = nullptr;
  };
  Below below_;
  Waiting whole_, ends_;
  Waiting* shown_ = nullptr;  // whose first next_unsaved() gave
  int64_t n_unsaved_ = 0, n_not_saved_ = 0;
  std::vector<Hash128> given_up_;  // lately, each where its hash says
};

}  // namespace millrace
