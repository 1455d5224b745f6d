#include "engine/prefix_tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/philox.h"

namespace millrace {

namespace {
constexpr size_t kNoLeaf = SIZE_MAX;
}

struct PrefixTree::Node {
  Node* parent = nullptr;  // null: of its salt's root
  std::string_view salt;   // the key in roots_
  std::vector<int32_t> tokens;
  std::vector<int32_t> pages;  // by group; -1: none (of a group with a window)
  Children children;
  int64_t depth = 1;
  bool keeps_windows = false;  // a context goes on from near here
  Node* older = nullptr;
  Node* newer = nullptr;
  Uses uses;
  double used_s = 0;
  size_t leaf_at = kNoLeaf;  // in leaves_

  Hash128 hash = {};   // of all tokens up to its end, with a disk below
  uint32_t saved = 0;  // a bit for each group that was handed to the disk
  bool persists = false, was_on_disk = false;
  Waiting* waits_in = nullptr;
  Node* waits_before = nullptr;
  Node* waits_after = nullptr;
  int64_t waits_since_ns = 0;
};

namespace {

constexpr size_t kGivenUp = size_t{1} << 16;
// Of more leaves than this so many are looked at, drawn by chance: that takes 50 us.
constexpr size_t kLookedAt = 256;
// Reading a page costs this part of computing it: SmolLM2's 1.4 MB take 0.7 ms at 2 GB/s, its 64
// tokens 38 ms and more (docs/0009).
constexpr double kReadCost = 1.0 / 32;

int64_t common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

int64_t n_pages_of(int64_t n_tokens) {
  return (n_tokens + kPageTokens - 1) / kPageTokens;
}

}  // namespace

bool PrefixTree::ByTokens::operator()(std::span<const int32_t> a,
                                      std::span<const int32_t> b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

PrefixTree::PrefixTree(std::vector<KvPages>& pools, const Retention* retention)
    : pools_(pools),
      retention_(retention != nullptr && retention->by_value() ? retention : nullptr) {}

PrefixTree::~PrefixTree() {
  clear();
}

void PrefixTree::clear() {
  while (oldest_ != nullptr) remove(*oldest_);
}

// Among siblings in order of their tokens, the one with the longest common beginning stands beside
// the place where the tokens asked for would be.
std::vector<PrefixTree::Hop> PrefixTree::walk(std::string_view salt,
                                              std::span<const int32_t> tokens) const {
  std::vector<Hop> path;
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return path;
  const Children* children = &root->second;
  while (!tokens.empty()) {
    const auto wanted = tokens.first(std::min<size_t>(tokens.size(), kPageTokens));
    Hop best{nullptr, 0};
    const auto consider = [&](const auto& child) {
      const int64_t n = common(wanted, child.first);
      if (n > best.n) best = {child.second.get(), n};
    };
    const auto at = children->lower_bound(wanted);
    if (at != children->end()) consider(*at);
    if (at != children->begin()) consider(*std::prev(at));
    if (best.n == 0) break;
    path.push_back(best);
    if (best.n < kPageTokens) break;
    tokens = tokens.subspan(kPageTokens);
    children = &best.node->children;
  }
  return path;
}

bool PrefixTree::can_go_on(std::span<const Hop> path, int64_t n) const {
  for (size_t group = 0; group < pools_.size(); ++group) {
    const int64_t window = pools_[group].group().window;
    if (window == 0) continue;  // every node has its page
    for (int64_t i = first_seen_page(n, window); i < n_pages_of(n); ++i)
      if (path[static_cast<size_t>(i)].node->pages[group] < 0) return false;
  }
  return true;
}

// The end of the path, or the last page border before it where every window has what it sees.
int64_t PrefixTree::usable(std::span<const Hop> path) const {
  if (path.empty()) return 0;
  const int64_t n_full = (std::ssize(path) - 1) * kPageTokens;
  int64_t n = n_full + path.back().n;
  while (n > 0 && !can_go_on(path, n)) n = (n - 1) / kPageTokens * kPageTokens;
  return n;
}

int64_t PrefixTree::count(std::string_view salt, std::span<const int32_t> tokens) const {
  return usable(walk(salt, tokens));
}

PrefixTree::Found PrefixTree::find(std::string_view salt, std::span<const int32_t> tokens,
                                   const Use& use) {
  const std::vector<Hop> path = walk(salt, tokens);
  Found out{usable(path), std::vector<std::vector<int32_t>>(pools_.size())};
  if (out.n == 0) return out;
  const int64_t n_pages = n_pages_of(out.n);
  for (size_t group = 0; group < pools_.size(); ++group) {
    const int64_t first = first_seen_page(out.n, pools_[group].group().window);
    for (int64_t i = 0; i < n_pages; ++i)
      out.pages[group].push_back(i < first ? -1 : path[static_cast<size_t>(i)].node->pages[group]);
  }
  touch(path[static_cast<size_t>(n_pages - 1)].node, use);
  return out;
}

PrefixTree::Children& PrefixTree::siblings_of(Node& node) {
  return node.parent != nullptr ? node.parent->children : roots_.find(node.salt)->second;
}

PrefixTree::Node& PrefixTree::add(std::string_view salt, Node* parent, Children& siblings,
                                  std::span<const int32_t> tokens) {
  auto made = std::make_unique<Node>();
  Node& node = *made;
  node.parent = parent;
  node.tokens.assign(tokens.begin(), tokens.end());
  node.pages.assign(pools_.size(), -1);
  node.depth = parent == nullptr ? 1 : parent->depth + 1;
  if (below_.first_hash)
    node.hash =
        below_.next_hash(parent == nullptr ? below_.first_hash(salt) : parent->hash, tokens);
  siblings.emplace(node.tokens, std::move(made));
  if (parent != nullptr) leave_leaves(*parent);
  become_leaf(node);
  ++n_nodes_;
  return node;
}

// The node takes references to the pages that it lacks; of those that both have the caller gets the
// node's, unless more is to be written to its own.
void PrefixTree::settle(Node& node, std::span<std::vector<int32_t>> pages, size_t page) {
  const bool is_whole = std::ssize(node.tokens) == kPageTokens;
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (page >= pages[group].size() || pages[group][page] < 0) continue;
    int32_t& mine = pages[group][page];
    if (node.pages[group] < 0) {
      node.pages[group] = mine;
      pools_[group].retain(mine);
    } else if (is_whole && mine != node.pages[group]) {
      pools_[group].retain(node.pages[group]);
      pools_[group].release(mine);
      mine = node.pages[group];
    }
  }
}

int64_t PrefixTree::n_held(std::string_view salt, std::span<const int32_t> tokens,
                           size_t group) const {
  int64_t n = 0;
  for (const Hop& hop : walk(salt, tokens))
    n += hop.n == kPageTokens && hop.node->pages[group] >= 0 &&
         pools_[group].references(hop.node->pages[group]) > 1;
  return n;
}

// Leaves that the node's tokens begin with are no longer the end of anything; they stay where the
// node lacks a window's page that they have.
void PrefixTree::drop_beginnings(Children& siblings, Node& node) {
  const auto lacks = [&](const Node& other) {
    for (size_t group = 0; group < pools_.size(); ++group)
      if (node.pages[group] < 0 && other.pages[group] >= 0) return true;
    return false;
  };
  for (size_t n = 1; n < node.tokens.size(); ++n) {
    const auto it = siblings.find(std::span(node.tokens).first(n));
    if (it == siblings.end() || lacks(*it->second)) continue;
    node.keeps_windows |= it->second->keeps_windows;
    remove(*it->second);
  }
}

void PrefixTree::insert(std::string_view salt, std::span<const int32_t> tokens,
                        std::span<std::vector<int32_t>> pages, bool ends_here, bool persists,
                        const Use& use) {
  if (tokens.empty()) return;
  const auto root = roots_.try_emplace(std::string(salt)).first;
  Children* siblings = &root->second;
  Node* parent = nullptr;
  const int64_t n = std::ssize(tokens);
  for (size_t page = 0; !tokens.empty(); ++page) {
    const auto mine = tokens.first(std::min<size_t>(tokens.size(), kPageTokens));
    const auto found = siblings->lower_bound(mine);
    // One that begins with these tokens has them all.
    const bool is_here = found != siblings->end() && common(mine, found->first) == std::ssize(mine);
    Node& node = is_here ? *found->second : add(salt, parent, *siblings, mine);
    node.salt = root->first;
    if (node.tokens.size() == mine.size()) {
      settle(node, pages, page);
      want_saved(node, persists);
      if (!is_here) drop_beginnings(*siblings, node);
    }
    tokens = tokens.subspan(mine.size());
    parent = &node;
    siblings = &node.children;
  }
  if (ends_here) keep_windows(parent, n);
  touch(parent, use);
}

void PrefixTree::keep_windows(Node* last, int64_t n) {
  int64_t first = n_pages_of(n);
  for (const KvPages& pool : pools_)
    if (pool.group().window > 0) first = std::min(first, first_seen_page(n, pool.group().window));
  int64_t page = n_pages_of(n) - 1;
  for (Node* node = last; node != nullptr && page >= first; node = node->parent, --page)
    node->keeps_windows = true;
}

void PrefixTree::unlink(Node& node) {
  if (node.older != nullptr) node.older->newer = node.newer;
  if (node.newer != nullptr) node.newer->older = node.older;
  if (oldest_ == &node) oldest_ = node.newer;
  if (newest_ == &node) newest_ = node.older;
  node.older = node.newer = nullptr;
}

// The node, then its parent, up to the root: so a parent is newer than its children.
void PrefixTree::touch(Node* node, const Use& use) {
  const double now_s = retention_ == nullptr ? 0 : retention_->now_s();
  for (; node != nullptr; node = node->parent) {
    node->uses.add(use);
    node->used_s = now_s;
    unlink(*node);
    node->older = newest_;
    if (newest_ != nullptr) newest_->newer = node;
    newest_ = node;
    if (oldest_ == nullptr) oldest_ = node;
  }
}

void PrefixTree::become_leaf(Node& node) {
  node.leaf_at = leaves_.size();
  leaves_.push_back(&node);
}

void PrefixTree::leave_leaves(Node& node) {
  if (node.leaf_at == kNoLeaf) return;
  leaves_.back()->leaf_at = node.leaf_at;
  leaves_[std::exchange(node.leaf_at, kNoLeaf)] = leaves_.back();
  leaves_.pop_back();
}

void PrefixTree::remove(Node& node) {
  MILLRACE_CHECK(node.children.empty(), "a node with {} children", node.children.size());
  for (size_t group = 0; group < pools_.size(); ++group)
    if (node.pages[group] >= 0) pools_[group].release(node.pages[group]);
  unlink(node);
  unwait(node);
  leave_leaves(node);
  --n_nodes_;
  ++n_dropped_;
  Children& siblings = siblings_of(node);
  if (node.parent != nullptr && siblings.size() == 1) become_leaf(*node.parent);
  const std::string_view salt = node.salt;
  const bool is_top = node.parent == nullptr;
  const auto at = siblings.find(node.tokens);
  // The key lies in the node.
  auto extracted = siblings.extract(at);
  if (is_top && siblings.empty()) roots_.erase(roots_.find(salt));
}

// A leaf without pages helps nobody.
bool PrefixTree::is_useless(const Node& node) const {
  return node.children.empty() &&
         std::all_of(node.pages.begin(), node.pages.end(), [](int32_t id) { return id < 0; });
}

bool PrefixTree::release_page(Node& node, size_t group) {
  note_given_up(node);
  pools_[group].release(node.pages[group]);
  node.pages[group] = -1;
  for (Node* useless = &node; useless != nullptr && is_useless(*useless);) {
    Node* parent = useless->parent;
    remove(*useless);
    useless = parent;
  }
  return true;
}

bool PrefixTree::reclaim_window(size_t group, bool also_kept) {
  for (Node* node = oldest_; node != nullptr; node = node->newer)
    if (node->pages[group] >= 0 && pools_[group].references(node->pages[group]) == 1 &&
        (also_kept || !node->keeps_windows))
      return release_page(*node, group);
  return false;
}

// What is lost with it: what it costs to get back, by reading where the disk has it.
Retention::Candidate PrefixTree::weigh(const Node& node) const {
  const double age_s = retention_->now_s() - node.used_s;
  auto cost = static_cast<double>(node.tokens.size());
  if (below_.is_on_disk && below_.is_on_disk(node.hash, groups_here(node))) cost *= kReadCost;
  return {retention_->worth(node.uses.all(), age_s), cost, age_s};
}

// Among the ends of contexts that nobody holds; null: there is none among those looked at.
PrefixTree::Node* PrefixTree::least_worth(size_t group) {
  looked_at_.clear();
  candidates_.clear();
  const size_t n = std::min(leaves_.size(), kLookedAt);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = n == leaves_.size() ? i : philox(0, n_draws_++)[0] % leaves_.size();
    Node* node = leaves_[at];
    if (node->pages[group] < 0 || pools_[group].references(node->pages[group]) != 1) continue;
    looked_at_.push_back(node);
    candidates_.push_back(weigh(*node));
  }
  const size_t least = Retention::least(candidates_);
  return least == looked_at_.size() ? nullptr : looked_at_[least];
}

bool PrefixTree::make_room(size_t group) {
  if (pools_[group].group().window > 0)
    return reclaim_window(group, false) || reclaim_window(group, true);
  if (Node* least = retention_ == nullptr ? nullptr : least_worth(group); least != nullptr) {
    note_given_up(*least);
    remove(*least);
    return true;
  }
  for (Node* node = oldest_; node != nullptr; node = node->newer)
    if (node->pages[group] >= 0 && pools_[group].references(node->pages[group]) == 1 &&
        node->children.empty()) {
      note_given_up(*node);
      remove(*node);
      return true;
    }
  return false;
}

Result<int32_t> PrefixTree::take_page(size_t group) {
  auto id = pools_[group].take();
  while (!id.ok() && make_room(group)) id = pools_[group].take();
  return id;
}

PrefixTree::Found PrefixTree::resident(std::string_view salt,
                                       std::span<const int32_t> tokens) const {
  const std::vector<Hop> path = walk(salt, tokens);
  Found out{0, std::vector<std::vector<int32_t>>(pools_.size())};
  for (const Hop& hop : path) {
    out.n += hop.n;
    for (size_t group = 0; group < pools_.size(); ++group)
      out.pages[group].push_back(hop.node->pages[group]);
  }
  return out;
}

void PrefixTree::save_with(Below below) {
  MILLRACE_CHECK(n_nodes_ == 0, "{} nodes without a hash", n_nodes_);
  below_ = std::move(below);
  given_up_.resize(kGivenUp);
}

uint32_t PrefixTree::groups_here(const Node& node) const {
  uint32_t out = 0;
  for (size_t group = 0; group < pools_.size(); ++group)
    out |= static_cast<uint32_t>(node.pages[group] >= 0) << group;
  return out;
}

// A node that got a page of a window after it was written is written again.
void PrefixTree::want_saved(Node& node, bool persists) {
  if (!below_.first_hash) return;
  node.persists |= persists;
  if (!node.persists || node.waits_in != nullptr) return;
  if ((groups_here(node) & ~node.saved) == 0) return;
  Waiting& list = std::ssize(node.tokens) == kPageTokens ? whole_ : ends_;
  node.waits_in = &list;
  node.waits_since_ns = now_ns();
  node.waits_before = list.last;
  (list.last == nullptr ? list.first : list.last->waits_after) = &node;
  list.last = &node;
  ++n_unsaved_;
}

void PrefixTree::unwait(Node& node) {
  if (node.waits_in == nullptr) return;
  Waiting& list = *std::exchange(node.waits_in, nullptr);
  (node.waits_before == nullptr ? list.first : node.waits_before->waits_after) = node.waits_after;
  (node.waits_after == nullptr ? list.last : node.waits_after->waits_before) = node.waits_before;
  node.waits_before = node.waits_after = nullptr;
  --n_unsaved_;
}

void PrefixTree::note_given_up(const Node& node) {
  if (!below_.first_hash) return;
  if ((node.persists || node.was_on_disk) && below_.move_down)
    n_not_saved_ += !below_.move_down(unsaved(node));
  else
    n_not_saved_ += node.waits_in != nullptr;
  given_up_[node.hash.low % kGivenUp] = node.hash;
}

// Some of these may have been in memory, kept off the disk: those must stay off it.
void PrefixTree::came_from_disk(std::string_view salt, std::span<const int32_t> tokens,
                                size_t first_page) {
  const std::vector<Hop> path = walk(salt, tokens);
  for (size_t i = first_page; i < path.size(); ++i) {
    Node& node = *path[i].node;
    const uint32_t here = groups_here(node);
    if (!below_.is_on_disk(node.hash, here)) continue;
    node.was_on_disk = true;
    node.saved |= here;
  }
}

bool PrefixTree::was_given_up(const Hash128& prefix) const {
  return !given_up_.empty() && given_up_[prefix.low % kGivenUp] == prefix;
}

PrefixTree::Unsaved PrefixTree::unsaved(const Node& node) const {
  return {node.parent == nullptr ? below_.first_hash(node.salt) : node.parent->hash,
          node.hash,
          node.salt,
          node.tokens,
          node.pages,
          node.uses};
}

std::optional<PrefixTree::Unsaved> PrefixTree::next_unsaved(int64_t ends_before_ns) {
  shown_ = whole_.first != nullptr ? &whole_ : &ends_;
  const Node* node = shown_->first;
  if (node == nullptr) return {};
  if (shown_ == &ends_ && node->waits_since_ns > ends_before_ns) return {};
  return unsaved(*node);
}

void PrefixTree::saved() {
  Node& node = *shown_->first;
  node.saved |= groups_here(node);
  unwait(node);
}

void PrefixTree::doubt_saved() {
  for (Node* node = oldest_; node != nullptr; node = node->newer) {
    node->saved = 0;
    want_saved(*node, node->persists);
  }
}

std::vector<PrefixTree::Shown> PrefixTree::shown(size_t most) const {
  std::vector<Shown> out;
  if (retention_ == nullptr) return out;
  for (const Node* node : leaves_) {
    const Retention::Candidate weighed = weigh(*node);
    bool is_held = false;
    for (size_t group = 0; group < pools_.size(); ++group)
      is_held |= node->pages[group] >= 0 && pools_[group].references(node->pages[group]) > 1;
    const auto uses = node->uses.all();
    out.push_back({.n_tokens = std::ssize(node->tokens),
                   .depth = node->depth,
                   .is_held = is_held,
                   .is_on_disk = below_.is_on_disk && below_.is_on_disk(node->hash, 1),
                   .rate = weighed.worth.rate,
                   .cost = weighed.cost,
                   .age_s = weighed.age_s,
                   .uses = {uses.begin(), uses.end()}});
  }
  std::sort(out.begin(), out.end(), [](const Shown& a, const Shown& b) {
    return std::tuple(a.rate * a.cost, -a.age_s) < std::tuple(b.rate * b.cost, -b.age_s);
  });
  out.resize(std::min(out.size(), most));
  return out;
}

int64_t PrefixTree::n_reclaimable(size_t group) const {
  int64_t n = 0;
  for (const Node* node = oldest_; node != nullptr; node = node->newer)
    n += node->pages[group] >= 0 && pools_[group].references(node->pages[group]) == 1;
  return n;
}

PrefixTree::Counts PrefixTree::counts() const {
  Counts out{.n_nodes = n_nodes_,
             .n_dropped = n_dropped_,
             .n_unsaved = n_unsaved_,
             .n_not_saved = n_not_saved_};
  for (const Node* node = oldest_; node != nullptr; node = node->newer) {
    out.n_tokens += std::ssize(node->tokens);
    out.depth = std::max(out.depth, node->depth);
  }
  return out;
}

}  // namespace millrace
