#include "text/grammar/token_trie.h"

#include <algorithm>
#include <numeric>

#include "text/tokenizer/tokenizer.h"

namespace millrace::grammar {

namespace {

// Longer tokens are never allowed; no vocabulary has them.
constexpr size_t kMaxDepth = 4096;

std::vector<std::string> pieces_of(const Tokenizer& tokenizer) {
  std::vector<std::string> pieces(static_cast<size_t>(tokenizer.size()));
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (!tokenizer.is_control(id) && !tokenizer.is_eog(id))
      pieces[static_cast<size_t>(id)] = tokenizer.piece(id);
  return pieces;
}

std::map<std::string, int32_t, std::less<>> controls_of(const Tokenizer& tokenizer) {
  std::map<std::string, int32_t, std::less<>> controls;
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.is_control(id) && !tokenizer.is_eog(id))
      controls.emplace(tokenizer.piece(id), id);
  return controls;
}

size_t common_prefix(std::string_view a, std::string_view b) {
  const auto [at, _] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(at - a.begin());
}

}  // namespace

TokenTrie::TokenTrie(const Tokenizer& tokenizer)
    : TokenTrie(pieces_of(tokenizer), {tokenizer.eog().begin(), tokenizer.eog().end()},
                controls_of(tokenizer)) {}

TokenTrie::TokenTrie(std::span<const std::string> pieces, std::vector<int32_t> ends,
                     std::map<std::string, int32_t, std::less<>> controls)
    : end_tokens_(std::move(ends)), controls_(std::move(controls)) {
  std::sort(end_tokens_.begin(), end_tokens_.end());
  begin_.push_back(0);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].size() <= kMaxDepth && !is_end(static_cast<int32_t>(i))) text_ += pieces[i];
    begin_.push_back(static_cast<uint32_t>(text_.size()));
  }
  build(pieces);
}

std::string_view TokenTrie::piece(int32_t token) const {
  if (token < 0 || token >= n_tokens()) return {};
  const auto i = static_cast<size_t>(token);
  return std::string_view(text_).substr(begin_[i], begin_[i + 1] - begin_[i]);
}

bool TokenTrie::is_end(int32_t token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

int32_t TokenTrie::control(std::string_view text) const {
  const auto at = controls_.find(text);
  return at == controls_.end() ? -1 : at->second;
}

void TokenTrie::add_node(uint8_t byte, size_t depth) {
  bytes_.push_back(byte);
  depths_.push_back(static_cast<uint16_t>(depth));
  ends_.push_back(0);
  kinds_.push_back(0);
  first_id_.push_back(static_cast<uint32_t>(ids_.size()));
}

// In the order of their bytes, tokens meet the nodes of the trie in preorder.
void TokenTrie::build(std::span<const std::string> pieces) {
  std::vector<int32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int32_t id) { return piece(id).empty(); });
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return std::pair(piece(a), a) < std::pair(piece(b), b); });
  std::vector<int32_t> path = {0};
  add_node(0, 0);
  const auto pop_to = [&](size_t depth) {
    while (path.size() > depth + 1) {
      const auto closed = static_cast<size_t>(path.back());
      path.pop_back();
      ends_[closed] = n_nodes();
      kinds_[static_cast<size_t>(path.back())] |= kinds_[closed] | kind_of(bytes_[closed]);
    }
  };
  std::string_view before;
  for (const int32_t id : order) {
    const std::string_view text = piece(id);
    pop_to(common_prefix(before, text));
    for (size_t depth = path.size(); depth <= text.size(); ++depth) {
      path.push_back(n_nodes());
      add_node(static_cast<uint8_t>(text[depth - 1]), depth);
    }
    ids_.push_back(id);
    max_token_bytes_ = std::max(max_token_bytes_, text.size());
    before = text;
  }
  pop_to(0);
  ends_[0] = n_nodes();
  first_id_.push_back(static_cast<uint32_t>(ids_.size()));
  root_children_.fill(-1);
  for (int32_t c = 1; c < n_nodes(); c = end(c)) root_children_[byte(c)] = c;
}

int32_t TokenTrie::child(int32_t node, uint8_t byte) const {
  if (node == kRoot) return root_children_[byte];
  for (int32_t c = node + 1; c < end(node); c = end(c))
    if (this->byte(c) >= byte) return this->byte(c) == byte ? c : -1;
  return -1;
}

}  // namespace millrace::grammar
