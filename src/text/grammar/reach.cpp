#include "text/grammar/reach.h"

#include <algorithm>
#include <array>

#include "text/grammar/lexemes.h"

namespace millrace::grammar {

namespace {

// Sorts exits by their byte. `chars`: what goes with each, or null.
void group(Reach& reach, const TokenTrie& trie, std::vector<uint8_t>* chars) {
  std::array<uint32_t, 257> at{};
  for (const int32_t exit : reach.exits) ++at[trie.byte(exit) + size_t{1}];
  for (size_t byte = 0; byte < 256; ++byte) {
    if (at[byte + 1] > 0) reach.groups.push_back({static_cast<uint8_t>(byte), at[byte]});
    at[byte + 1] += at[byte];
  }
  if (!reach.groups.empty()) reach.groups.push_back({0, at[256]});
  std::vector<int32_t> exits(reach.exits.size());
  std::vector<uint8_t> sorted_chars(chars == nullptr ? 0 : exits.size());
  for (size_t i = 0; i < exits.size(); ++i) {
    const uint32_t to = at[trie.byte(reach.exits[i])]++;
    exits[to] = reach.exits[i];
    if (chars != nullptr) sorted_chars[to] = (*chars)[i];
  }
  reach.exits = std::move(exits);
  if (chars != nullptr) *chars = std::move(sorted_chars);
}

// Kinds of bytes of which each leaves a state as it is.
class Loops {
 public:
  explicit Loops(const Lexeme& lexeme) : lexeme_(lexeme), of_(lexeme.n_states(), kUnknown) {}

  uint64_t operator()(Lexeme::State state) {
    uint64_t& kinds = of_[state];
    if (kinds != kUnknown) return kinds;
    uint64_t leaves = 0;
    for (unsigned byte = 0; byte < 256; ++byte)
      if (lexeme_.step(state, static_cast<uint8_t>(byte)) != state)
        leaves |= TokenTrie::kind_of(static_cast<uint8_t>(byte));
    return kinds = ~leaves & ~kUnknown;
  }

 private:
  static constexpr uint64_t kUnknown = uint64_t{1} << 60;  // no kind has this bit
  const Lexeme& lexeme_;
  std::vector<uint64_t> of_;
};

// Subtrees from here on are looked at whole before they are walked.
constexpr int32_t kWorthALook = 8;

void pack(Reach& reach, const TokenTrie& trie) {
  const size_t words = (static_cast<size_t>(trie.n_tokens()) + 31) / 32;
  if (reach.tokens.size() <= words) return;
  reach.bits.assign(words, 0);
  for (const int32_t id : reach.tokens)
    reach.bits[static_cast<size_t>(id) / 32] |= 1u << (static_cast<uint32_t>(id) % 32);
  reach.tokens = {};
}

// Where a string stands at a node of the trie.
struct InString {
  Lexeme::State state;
  uint8_t chars;  // begun
};

InString string_step(InString at, uint8_t byte) {
  const Standard& json = standard();
  const Lexeme::State to = json.string.step(at.state, byte);
  const bool begins = at.state == json.body && to != json.closed;
  const auto more = static_cast<uint8_t>(begins && at.chars < StringReach::kMost ? 1 : 0);
  return {to, static_cast<uint8_t>(at.chars + more)};
}

}  // namespace

void Reach::add_to(std::span<uint32_t> mask) const {
  for (const int32_t id : tokens)
    mask[static_cast<size_t>(id) / 32] |= 1u << (static_cast<uint32_t>(id) % 32);
  for (size_t i = 0; i < bits.size(); ++i) mask[i] |= bits[i];
}

size_t Reach::heap_bytes() const {
  return 4 * (tokens.capacity() + bits.capacity() + exits.capacity()) + 8 * groups.capacity();
}

Reach reach_of(const Lexeme& lexeme, Lexeme::State state, const TokenTrie& trie, int32_t node,
               uint64_t follow) {
  Reach out;
  Loops loops(lexeme);
  const size_t top = trie.depth(node);
  std::vector<Lexeme::State> path(trie.max_token_bytes() + 1);
  path[0] = state;
  for (int32_t n = node + 1; n < trie.end(node);) {
    ++out.visited;
    const size_t depth = trie.depth(n) - top;
    const Lexeme::State to = lexeme.step(path[depth - 1], trie.byte(n));
    if (to == Lexeme::kDead) {
      n = trie.end(n);
      continue;
    }
    path[depth] = to;
    for (const int32_t id : trie.tokens(n)) out.tokens.push_back(id);
    const bool over = lexeme.accepts(to) && (trie.kinds_below(n) & follow) != 0;
    if (!over && trie.end(n) - n >= kWorthALook && (trie.kinds_below(n) & ~loops(to)) == 0) {
      const auto below = trie.tokens_below(n);
      out.tokens.insert(out.tokens.end(), below.begin(), below.end());
      n = trie.end(n);
      continue;
    }
    for (int32_t c = n + 1; over && c < trie.end(n); c = trie.end(c))
      if ((TokenTrie::kind_of(trie.byte(c)) & follow) != 0) out.exits.push_back(c);
    ++n;
  }
  group(out, trie, nullptr);
  pack(out, trie);
  return out;
}

StringReach string_reach_of(const TokenTrie& trie) {
  const Standard& json = standard();
  StringReach out;
  out.chars.assign(static_cast<size_t>(trie.n_tokens()), StringReach::kNone);
  std::vector<InString> path(trie.max_token_bytes() + 1);
  path[0] = {json.body, 0};
  for (int32_t n = 1; n < trie.n_nodes();) {
    const size_t depth = trie.depth(n);
    const InString to = string_step(path[depth - 1], trie.byte(n));
    if (to.state == Lexeme::kDead) {
      n = trie.end(n);
      continue;
    }
    path[depth] = to;
    const bool closed = to.state == json.closed;
    for (const int32_t id : trie.tokens(n)) {
      out.reach.tokens.push_back(id);
      out.chars[static_cast<size_t>(id)] = to.chars;
      if (closed) out.closing.push_back(id);
    }
    if (closed)
      for (int32_t c = n + 1; c < trie.end(n); c = trie.end(c)) {
        out.reach.exits.push_back(c);
        out.exit_chars.push_back(to.chars);
      }
    ++n;
  }
  group(out.reach, trie, &out.exit_chars);
  pack(out.reach, trie);
  return out;
}

}  // namespace millrace::grammar
