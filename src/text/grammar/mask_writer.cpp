#include "text/grammar/mask_writer.h"

#include <algorithm>
#include <vector>

namespace millrace::grammar {

namespace {

// A subtree with more nodes is worth one kept walk per lexeme; a set with more stacks is not split.
constexpr int32_t kLargeSubtree = 256;
constexpr size_t kFewConfigs = 8;

struct Counted {
  Lexeme::State state;
  uint32_t count;
};

// Of the bytes that a config may take next.
uint64_t kinds_of(const Graph& graph, const Config& config) {
  if (config.node == Config::kDone) return 0;
  const Node& node = graph[config.node];
  if (node.kind == Node::Kind::string) return TokenTrie::kind_of('"');  // it has just begun
  if (node.kind != Node::Kind::lexeme)
    return TokenTrie::kind_of(static_cast<uint8_t>(graph.text[node.a + config.state]));
  uint64_t kinds = 0;
  const auto state = static_cast<Lexeme::State>(config.state);
  for (unsigned byte = 0; byte < 256; ++byte)
    if (graph.lexemes[node.a]->step(state, static_cast<uint8_t>(byte)) != Lexeme::kDead)
      kinds |= TokenTrie::kind_of(static_cast<uint8_t>(byte));
  return kinds;
}

}  // namespace

MaskWriter::MaskWriter(const TokenGrammar& grammar, Stacks& stacks, std::span<uint32_t> mask)
    : grammar_(grammar), trie_(grammar.vocabulary().trie), stacks_(stacks), mask_(mask) {}

void MaskWriter::write() {
  const Stacks::Set now = stacks_.now();
  for (size_t i = now.begin; i < now.end; ++i) {
    const Config config = stacks_[i];
    if (config.node == Config::kDone) {
      for (const int32_t token : trie_.end_tokens()) allow(token);
      continue;
    }
    if (config.state == 0 && stacks_.graph()[config.node].kind == Node::Kind::marker) {
      const int32_t token = grammar_.token_of_marker(config.node);
      if (token >= 0) allow(token);
    }
    below(TokenTrie::kRoot, config);
  }
}

void MaskWriter::below(int32_t trie_node, const Config& config) {
  if (config.node == Config::kDone) return;
  const Node& node = stacks_.graph()[config.node];
  if (node.kind == Node::Kind::string)
    string(trie_node, config);
  else if (node.kind == Node::Kind::lexeme)
    lexeme(trie_node, config, *stacks_.graph().lexemes[node.a], node.b != 0);
  else
    literal(trie_node, config);
}

void MaskWriter::below(int32_t trie_node, Stacks::Set set) {
  if (!trie_.has_children(trie_node) || set.empty()) return;
  if (trie_.end(trie_node) - trie_node <= kLargeSubtree || set.size() > kFewConfigs)
    return walk(trie_node, set);
  for (size_t i = set.begin; i < set.end; ++i) {
    const Config config = stacks_[i];
    below(trie_node, config);
  }
}

void MaskWriter::walk(int32_t trie_node, Stacks::Set set) {
  for (int32_t c = trie_node + 1; c < trie_.end(trie_node); c = trie_.end(c)) {
    const Stacks::Mark mark = stacks_.mark();
    const Stacks::Set next = stacks_.step(set, trie_.byte(c));
    if (!next.empty()) {
      allow_tokens_of(c);
      below(c, next);
    }
    stacks_.release(mark);
  }
}

void MaskWriter::literal(int32_t trie_node, const Config& config) {
  const Node& node = stacks_.graph()[config.node];
  const std::string_view rest = stacks_.graph().literal(node).substr(config.state);
  for (const char c : rest) {
    trie_node = trie_.child(trie_node, static_cast<uint8_t>(c));
    if (trie_node < 0) return;
    allow_tokens_of(trie_node);
  }
  if (!trie_.has_children(trie_node)) return;
  const Stacks::Mark mark = stacks_.mark();
  below(trie_node, stacks_.after(config));
  stacks_.release(mark);
}

// Free text is over nearly anywhere: there, only what can follow is worth looking for.
void MaskWriter::lexeme(int32_t trie_node, const Config& config, const Lexeme& lexeme, bool text) {
  const uint64_t follow = text ? kinds_after(config) : kAnyKind;
  Reach scratch;
  const auto state = static_cast<Lexeme::State>(config.state);
  const Reach& reach = grammar_.reach({&lexeme, state, trie_node, follow}, scratch);
  reach.add_to(mask_);
  exits(config, reach, {}, 0, kNoLimit);
}

uint64_t MaskWriter::kinds_after(const Config& config) {
  const Stacks::Mark mark = stacks_.mark();
  const Stacks::Set after = stacks_.after(config);
  uint64_t kinds = 0;
  for (size_t i = after.begin; i < after.end; ++i) kinds |= kinds_of(stacks_.graph(), stacks_[i]);
  stacks_.release(mark);
  return kinds;
}

// `chars`: of each exit, where only those between `least` and `most` count.
void MaskWriter::exits(const Config& config, const Reach& reach, std::span<const uint8_t> chars,
                       uint32_t least, uint32_t most) {
  if (reach.exits.empty()) return;
  const Stacks::Mark mark = stacks_.mark();
  const Stacks::Set after = stacks_.after(config);
  for (size_t g = 0; g + 1 < reach.groups.size(); ++g) {
    const Stacks::Mark inner = stacks_.mark();
    const Stacks::Set next = stacks_.step(after, reach.groups[g].byte);
    for (size_t i = reach.groups[g].begin; i < reach.groups[g + 1].begin && !next.empty(); ++i) {
      if (!chars.empty() && (chars[i] < least || chars[i] > most)) continue;
      allow_tokens_of(reach.exits[i]);
      below(reach.exits[i], next);
    }
    stacks_.release(inner);
  }
  stacks_.release(mark);
}

void MaskWriter::string(int32_t trie_node, const Config& config) {
  const Standard& json = standard();
  const Node& node = stacks_.graph()[config.node];
  if (trie_node == TokenTrie::kRoot && config.state == json.body) return string_body(config);
  const bool free = config.count >= node.min &&
                    (node.max == kNoLimit || node.max - config.count > trie_.max_token_bytes());
  if (free)
    lexeme(trie_node, config, json.string, false);
  else
    counted(trie_node, config);
}

void MaskWriter::string_body(const Config& config) {
  const Node& node = stacks_.graph()[config.node];
  const StringReach& in = grammar_.vocabulary().in_string;
  const uint32_t least = node.min > config.count ? node.min - config.count : 0;
  const uint32_t left = node.max == kNoLimit ? kNoLimit : node.max - config.count;
  const bool unlimited = left > trie_.max_token_bytes();
  const uint32_t most = unlimited ? kNoLimit : std::min<uint32_t>(left, StringReach::kMost - 1);
  if (least == 0 && unlimited) {
    in.reach.add_to(mask_);
    return exits(config, in.reach, {}, 0, kNoLimit);
  }
  std::vector<uint32_t> allowed(mask_.size());
  in.reach.add_to(allowed);
  if (!unlimited)
    for (size_t token = 0; token < in.chars.size(); ++token)
      if (in.chars[token] > most) allowed[token / 32] &= ~(1u << (token % 32));
  for (const int32_t token : in.closing)
    if (in.chars[static_cast<size_t>(token)] < least)
      allowed[static_cast<size_t>(token) / 32] &= ~(1u << (static_cast<uint32_t>(token) % 32));
  for (size_t i = 0; i < mask_.size(); ++i) mask_[i] |= allowed[i];
  exits(config, in.reach, in.exit_chars, least, most);
}

// A walk that counts, for the few places inside a string where its next character does not begin.
void MaskWriter::counted(int32_t trie_node, const Config& config) {
  const Stacks::Mark mark = stacks_.mark();
  const Standard& json = standard();
  const Node& node = stacks_.graph()[config.node];
  const Stacks::Set after = stacks_.after(config);
  const size_t top = trie_.depth(trie_node);
  std::vector<Counted> path(trie_.max_token_bytes() + 1);
  path[0] = {static_cast<Lexeme::State>(config.state), config.count};
  for (int32_t n = trie_node + 1; n < trie_.end(trie_node);) {
    const size_t depth = trie_.depth(n) - top;
    const auto [from, count] = path[depth - 1];
    const Lexeme::State to = json.string.step(from, trie_.byte(n));
    const bool closed = to == json.closed;
    if (to == Lexeme::kDead || (closed && count < node.min) ||
        (from == json.body && !closed && count >= node.max)) {
      n = trie_.end(n);
      continue;
    }
    const bool whole = to == json.body && from != Lexeme::kStart;
    path[depth] = {to, count + (whole ? 1 : 0)};
    allow_tokens_of(n);
    if (closed) below(n, after);
    n = closed ? trie_.end(n) : n + 1;
  }
  stacks_.release(mark);
}

}  // namespace millrace::grammar
