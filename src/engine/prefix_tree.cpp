#include "engine/prefix_tree.h"

#include <algorithm>

#include "base/check.h"

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
};

namespace {

int64_t common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

int64_t n_pages_of(int64_t n_tokens) {
  return (n_tokens + kPageTokens - 1) / kPageTokens;
}

// The first page that the row after n tokens sees.
int64_t first_seen_page(int64_t n, int64_t window) {
  return window == 0 ? 0 : std::max<int64_t>(n - window + 1, 0) / kPageTokens;
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

PrefixTree::Node& PrefixTree::add(Node* parent, Children& siblings,
                                  std::span<const int32_t> tokens) {
  auto made = std::make_unique<Node>();
  Node& node = *made;
  node.parent = parent;
  node.tokens.assign(tokens.begin(), tokens.end());
  node.pages.assign(pools_.size(), -1);
  node.depth = parent == nullptr ? 1 : parent->depth + 1;
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
                        std::span<std::vector<int32_t>> pages, bool ends_here) {
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
    Node& node = is_here ? *found->second : add(parent, *siblings, mine);
    node.salt = root->first;
    if (node.tokens.size() == mine.size()) {
      settle(node, pages, page);
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
    if (pools_[group].references(node->pages[group]) == 1 && node->children.empty()) {
      remove(*node);
      return true;
    }
  return false;
}

int64_t PrefixTree::n_reclaimable(size_t group) const {
  int64_t n = 0;
  for (const Node* node = oldest_; node != nullptr; node = node->newer)
    n += node->pages[group] >= 0 && pools_[group].references(node->pages[group]) == 1;
  return n;
}

PrefixTree::Counts PrefixTree::counts() const {
  Counts out{.n_nodes = n_nodes_, .n_dropped = n_dropped_};
  for (const Node* node = oldest_; node != nullptr; node = node->newer) {
    out.n_tokens += std::ssize(node->tokens);
    out.depth = std::max(out.depth, node->depth);
  }
  return out;
}

}  // namespace millrace
