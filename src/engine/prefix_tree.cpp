#include "engine/prefix_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace millrace {

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

  Hash128 hash = {};   // of all tokens up to its end, with a disk below
  uint32_t saved = 0;  // a bit for each group that was handed to the disk
  bool persists = false;
  Waiting* waits_in = nullptr;
  Node* waits_before = nullptr;
  Node* waits_after = nullptr;
  int64_t waits_since_ns = 0;
};

namespace {

constexpr size_t kGivenUp = size_t{1} << 16;

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

PrefixTree::PrefixTree(std::vector<KvPages>& pools) : pools_(pools) {}

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

PrefixTree::Found PrefixTree::find(std::string_view salt, std::span<const int32_t> tokens) {
  const std::vector<Hop> path = walk(salt, tokens);
  Found out{usable(path), std::vector<std::vector<int32_t>>(pools_.size())};
  if (out.n == 0) return out;
  const int64_t n_pages = n_pages_of(out.n);
  for (size_t group = 0; group < pools_.size(); ++group) {
    const int64_t first = first_seen_page(out.n, pools_[group].group().window);
    for (int64_t i = 0; i < n_pages; ++i)
      out.pages[group].push_back(i < first ? -1 : path[static_cast<size_t>(i)].node->pages[group]);
  }
  touch(path[static_cast<size_t>(n_pages - 1)].node);
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
  if (first_hash_)
    node.hash = next_hash_(parent == nullptr ? first_hash_(salt) : parent->hash, tokens);
  siblings.emplace(node.tokens, std::move(made));
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
                        std::span<std::vector<int32_t>> pages, bool ends_here, bool persists) {
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
  touch(parent);
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
void PrefixTree::touch(Node* node) {
  for (; node != nullptr; node = node->parent) {
    unlink(*node);
    node->older = newest_;
    if (newest_ != nullptr) newest_->newer = node;
    newest_ = node;
    if (oldest_ == nullptr) oldest_ = node;
  }
}

void PrefixTree::remove(Node& node) {
  MILLRACE_CHECK(node.children.empty(), "a node with {} children", node.children.size());
  for (size_t group = 0; group < pools_.size(); ++group)
    if (node.pages[group] >= 0) pools_[group].release(node.pages[group]);
  unlink(node);
  unwait(node);
  --n_nodes_;
  ++n_dropped_;
  Children& siblings = siblings_of(node);
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

bool PrefixTree::make_room(size_t group) {
  if (pools_[group].group().window > 0)
    return reclaim_window(group, false) || reclaim_window(group, true);
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

void PrefixTree::save_with(FirstHash first_hash, NextHash next_hash) {
  MILLRACE_CHECK(n_nodes_ == 0, "{} nodes without a hash", n_nodes_);
  first_hash_ = std::move(first_hash);
  next_hash_ = std::move(next_hash);
  given_up_.resize(kGivenUp);
}

// A node that got a page of a window after it was written is written again.
void PrefixTree::want_saved(Node& node, bool persists) {
  if (!first_hash_) return;
  node.persists |= persists;
  if (!node.persists || node.waits_in != nullptr) return;
  uint32_t here = 0;
  for (size_t group = 0; group < pools_.size(); ++group)
    here |= static_cast<uint32_t>(node.pages[group] >= 0) << group;
  if ((here & ~node.saved) == 0) return;
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
  if (!first_hash_) return;
  n_not_saved_ += node.waits_in != nullptr;
  given_up_[node.hash.low % kGivenUp] = node.hash;
}

bool PrefixTree::was_given_up(const Hash128& prefix) const {
  return !given_up_.empty() && given_up_[prefix.low % kGivenUp] == prefix;
}

std::optional<PrefixTree::Unsaved> PrefixTree::next_unsaved(int64_t ends_before_ns) {
  shown_ = whole_.first != nullptr ? &whole_ : &ends_;
  const Node* node = shown_->first;
  if (node == nullptr) return {};
  if (shown_ == &ends_ && node->waits_since_ns > ends_before_ns) return {};
  return Unsaved{node->parent == nullptr ? first_hash_(node->salt) : node->parent->hash, node->hash,
                 node->salt, node->tokens, node->pages};
}

void PrefixTree::saved() {
  Node& node = *shown_->first;
  for (size_t group = 0; group < pools_.size(); ++group)
    node.saved |= static_cast<uint32_t>(node.pages[group] >= 0) << group;
  unwait(node);
}

void PrefixTree::doubt_saved() {
  for (Node* node = oldest_; node != nullptr; node = node->newer) {
    node->saved = 0;
    want_saved(*node, node->persists);
  }
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
