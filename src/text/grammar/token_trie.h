// A vocabulary as a trie of bytes: which tokens a text may go on with, without looking at each.
// Made once per model, immutable, shared by threads. Control tokens are not in it: no grammar takes
// one, but for the end tokens where it may end and the markers it names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {
class Tokenizer;
}

namespace millrace::grammar {

class TokenTrie {
 public:
  explicit TokenTrie(const Tokenizer& tokenizer);
  // For vocabularies that are no Tokenizer: the bytes of each token (empty: it is never allowed),
  // the end tokens, and control tokens by their text. Neither of them is taken from `pieces`.
  TokenTrie(std::span<const std::string> pieces, std::vector<int32_t> ends,
            std::map<std::string, int32_t, std::less<>> controls);

  // Nodes are numbered in preorder; 0 is the root. A node's subtree is [node, end(node)).
  static constexpr int32_t kRoot = 0;
  int32_t n_nodes() const { return static_cast<int32_t>(bytes_.size()); }
  uint8_t byte(int32_t node) const { return bytes_[static_cast<size_t>(node)]; }
  int32_t end(int32_t node) const { return ends_[static_cast<size_t>(node)]; }
  size_t depth(int32_t node) const { return depths_[static_cast<size_t>(node)]; }
  bool has_children(int32_t node) const { return end(node) > node + 1; }
  // -1: there is none.
  int32_t child(int32_t node, uint8_t byte) const;
  std::span<const int32_t> tokens(int32_t node) const {
    const auto n = static_cast<size_t>(node);
    return std::span(ids_).subspan(first_id_[n], first_id_[n + 1] - first_id_[n]);
  }

  // Of all nodes below this one.
  std::span<const int32_t> tokens_below(int32_t node) const {
    const uint32_t first = first_id_[static_cast<size_t>(node) + 1];
    return std::span(ids_).subspan(first, first_id_[static_cast<size_t>(end(node))] - first);
  }
  // Which bytes there are below a node, as a set of kinds of bytes.
  uint64_t kinds_below(int32_t node) const { return kinds_[static_cast<size_t>(node)]; }
  // Printable ASCII in pairs, and few kinds of the rest.
  static uint64_t kind_of(uint8_t byte) {
    if (byte < 0x20) return uint64_t{1} << 63;
    return uint64_t{1} << (byte < 0x80 ? (byte - 0x20) / 2 : 48 + (byte - 0x80) / 16);
  }

  int32_t n_tokens() const { return static_cast<int32_t>(begin_.size()) - 1; }
  // The bytes of a token; empty for those that are in no text.
  std::string_view piece(int32_t token) const;
  std::span<const int32_t> end_tokens() const { return end_tokens_; }
  bool is_end(int32_t token) const;
  // The control token of this text; -1: there is none.
  int32_t control(std::string_view text) const;
  size_t max_token_bytes() const { return max_token_bytes_; }

 private:
  void build(std::span<const std::string> pieces);
  void add_node(uint8_t byte, size_t depth);

  std::vector<uint8_t> bytes_;
  std::vector<uint16_t> depths_;
  std::vector<int32_t> ends_;
  std::vector<uint64_t> kinds_;
  std::vector<uint32_t> first_id_;  // of each node, in ids_; one more at the end
  std::vector<int32_t> ids_;
  std::array<int32_t, 256> root_children_{};
  std::string text_;             // all pieces in a row,
  std::vector<uint32_t> begin_;  // of each token, in text_; one more at the end
  std::vector<int32_t> end_tokens_;
  std::map<std::string, int32_t, std::less<>> controls_;
  size_t max_token_bytes_ = 0;
};

}  // namespace millrace::grammar
