#include "text/grammar/lexemes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/utf8.h"
#include "text/grammar/pattern.h"
#include "text/grammar/product.h"

namespace millrace::grammar {

namespace {

constexpr std::string_view kString =
    R"re("([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u([0-9a-cA-CefEF][0-9a-fA-F]{3}|)re"
    R"re([dD][0-7][0-9a-fA-F]{2}|)re"
    R"re([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))*")re";
constexpr std::string_view kSpace = R"re(( |\n {0,32}|\n\t{1,8})?)re";
constexpr std::string_view kNumber =
    R"re(-?(0|[1-9][0-9]{0,31})(\.[0-9]{1,32})?([eE][+\-]?[0-9]{1,2})?)re";
constexpr std::string_view kInteger = R"re(-?(0|[1-9][0-9]{0,17}))re";

Lexeme made(Result<Pattern> pattern) {
  MILLRACE_CHECK(pattern.ok() && pattern->lexeme, "a pattern of the house does not compile");
  return std::move(*pattern->lexeme);
}

Standard make_standard() {
  size_t work = 0;
  Standard out{.string = made(whole_pattern(kString)),
               .body = 0,
               .closed = 0,
               .plain_string = made(string_pattern("", work)),
               .space = made(whole_pattern(kSpace)),
               .number = made(whole_pattern(kNumber)),
               .integer = made(whole_pattern(kInteger))};
  out.body = out.string.step(Lexeme::kStart, '"');
  out.closed = out.string.step(out.body, '"');
  return out;
}

// A trie of texts; node 0 is its root.
struct Tree {
  std::vector<std::map<uint8_t, int>> next = {{}};
  std::vector<bool> ends = {false};

  void add(std::string_view text) {
    int at = 0;
    for (const char c : text) {
      const auto [known, fresh] = next[static_cast<size_t>(at)].emplace(
          static_cast<uint8_t>(c), static_cast<int>(next.size()));
      at = known->second;
      if (!fresh) continue;
      next.emplace_back();
      ends.push_back(false);
    }
    ends[static_cast<size_t>(at)] = true;
  }
  int step(int at, uint8_t byte) const {
    if (at < 0) return -1;
    const auto known = next[static_cast<size_t>(at)].find(byte);
    return known == next[static_cast<size_t>(at)].end() ? -1 : known->second;
  }
};

// Where each node of the tree falls back to: the longest proper end of its text that is a node.
// A node whose text ends in a literal ends as well.
std::vector<int> fallbacks(Tree& tree) {
  std::vector<int> back(tree.next.size(), 0), order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const int at = order[i];
    for (const auto& [byte, to] : tree.next[static_cast<size_t>(at)]) {
      order.push_back(to);
      if (at == 0) continue;
      int from = back[static_cast<size_t>(at)];
      while (from != 0 && tree.step(from, byte) < 0) from = back[static_cast<size_t>(from)];
      const int found = std::max(0, tree.step(from, byte));
      back[static_cast<size_t>(to)] = found;
      if (tree.ends[static_cast<size_t>(found)]) tree.ends[static_cast<size_t>(to)] = true;
    }
  }
  return back;
}

}  // namespace

const Standard& standard() {
  static const Standard all = make_standard();
  return all;
}

Result<std::optional<Lexeme>> string_without(std::span<const std::string> names) {
  Tree tree;
  size_t bytes = 0;
  for (const std::string& name : names) {
    const std::string text = json_string(name);
    bytes += text.size();
    if (bytes > Lexeme::kMaxStates) return error(Code::unsupported, "its automaton is too large");
    tree.add(text);
  }
  const Lexeme& strings = standard().plain_string;
  using Key = std::pair<Lexeme::State, int>;
  return lexeme_of_keys(
      Key{Lexeme::kStart, 0},
      [&](const Key& key, uint8_t byte) -> std::optional<Key> {
        const Lexeme::State to = strings.step(key.first, byte);
        if (to == Lexeme::kDead) return std::nullopt;
        return Key{to, tree.step(key.second, byte)};
      },
      [&](const Key& key) {
        return strings.accepts(key.first) &&
               (key.second < 0 || !tree.ends[static_cast<size_t>(key.second)]);
      });
}

Result<std::optional<Lexeme>> with_length(const Lexeme& strings, uint32_t min, uint32_t max) {
  const Standard& json = standard();
  // States of the strings, of the JSON string that tells characters apart, and how many there were.
  using Key = std::tuple<Lexeme::State, Lexeme::State, uint32_t>;
  const uint32_t most = max == kNoLimit ? min : max;
  return lexeme_of_keys(
      Key{Lexeme::kStart, Lexeme::kStart, 0},
      [&](const Key& key, uint8_t byte) -> std::optional<Key> {
        auto [state, json_state, n] = key;
        const Lexeme::State to = strings.step(state, byte);
        if (to == Lexeme::kDead) return std::nullopt;
        const Lexeme::State json_to = json.string.step(json_state, byte);
        if (json_to == Lexeme::kDead || (json_to == json.closed && n < min)) return std::nullopt;
        if (json_state == json.body && json_to != json.closed && n >= max) return std::nullopt;
        if (json_to == json.body && json_state != Lexeme::kStart) n = std::min(n + 1, most);
        return Key{to, json_to, n};
      },
      [&](const Key& key) { return strings.accepts(std::get<0>(key)); });
}

Result<std::optional<Lexeme>> text_without(std::span<const std::string> literals) {
  static const Lexeme any = made(whole_pattern(R"re([^]*)re"));
  Tree tree;
  for (const std::string& literal : literals)
    if (!literal.empty()) tree.add(literal);
  const std::vector<int> back = fallbacks(tree);
  using Key = std::pair<Lexeme::State, int>;
  return lexeme_of_keys(
      Key{Lexeme::kStart, 0},
      [&](const Key& key, uint8_t byte) -> std::optional<Key> {
        const Lexeme::State to = any.step(key.first, byte);
        if (to == Lexeme::kDead) return std::nullopt;
        int at = key.second;
        while (at != 0 && tree.step(at, byte) < 0) at = back[static_cast<size_t>(at)];
        at = std::max(0, tree.step(at, byte));
        if (tree.ends[static_cast<size_t>(at)]) return std::nullopt;
        return Key{to, at};
      },
      [&](const Key& key) { return any.accepts(key.first); });
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kEscaped = "\b\t\n\f\r\"\\", kLetters = "btnfr\"\\";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (const size_t i = kEscaped.find(c); i != std::string_view::npos) {
      out += {'\\', kLetters[i]};
    } else if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace millrace::grammar
