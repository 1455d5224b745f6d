#include "text/grammar/matcher.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/grammar/mask_writer.h"

namespace millrace::grammar {

namespace {

constexpr size_t kMaxForcedBytes = 1024;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

constexpr int kNoByte = -1;

// The one byte that a config can take; kNoByte: it is over, or there are several.
int only_byte(const Graph& graph, const Config& config) {
  if (config.node == Config::kDone) return kNoByte;
  const Node& node = graph[config.node];
  if (node.kind == Node::Kind::literal || node.kind == Node::Kind::marker)
    return static_cast<uint8_t>(graph.literal(node)[config.state]);
  const auto state = static_cast<Lexeme::State>(config.state);
  if (node.kind == Node::Kind::string) return state == Lexeme::kStart ? '"' : kNoByte;
  int only = kNoByte;
  for (int byte = 0; byte < 256; ++byte) {
    if (graph.lexemes[node.a]->step(state, static_cast<uint8_t>(byte)) == Lexeme::kDead) continue;
    if (only != kNoByte) return kNoByte;
    only = byte;
  }
  return only;
}

int only_byte(const Stacks& stacks, Stacks::Set set) {
  int only = kNoByte;
  for (size_t i = set.begin; i < set.end; ++i) {
    const int byte = only_byte(stacks.graph(), stacks[i]);
    if (byte == kNoByte || (only != kNoByte && only != byte)) return kNoByte;
    only = byte;
  }
  return only;
}

}  // namespace

Matcher::Matcher(const TokenGrammar& grammar) : grammar_(&grammar), stacks_(grammar.graph()) {}

void Matcher::mask(std::span<uint32_t> bits) {
  const auto n_tokens = static_cast<size_t>(grammar_->vocabulary().trie.n_tokens());
  MILLRACE_CHECK(bits.size() * 32 >= n_tokens, "a mask of {} words for {} tokens", bits.size(),
                 n_tokens);
  std::fill(bits.begin(), bits.end(), 0);
  if (!ended_) MaskWriter(*grammar_, stacks_, bits.first((n_tokens + 31) / 32)).write();
}

Status Matcher::accept(int32_t token) {
  const TokenTrie& trie = grammar_->vocabulary().trie;
  if (ended_) return error(Code::invalid_argument, "token {} follows the end", token);
  if (trie.is_end(token)) {
    if (!is_complete())
      return error(Code::invalid_argument, "the end token {} comes before the end", token);
    ended_ = true;
    return {};
  }
  const std::string_view piece = trie.piece(token);
  if (!piece.empty()) return accept_text(piece);
  std::vector<int32_t> markers;
  for (size_t i = 0; i < stacks_.now().end; ++i)
    if (token >= 0 && grammar_->token_of_marker(stacks_[i].node) == token)
      markers.push_back(stacks_[i].node);
  if (stacks_.advance_markers(markers)) return {};
  return error(Code::invalid_argument, "the grammar does not take token {}", token);
}

Status Matcher::accept_text(std::string_view text) {
  if (ended_) return error(Code::invalid_argument, "\"{}\" follows the end", printable(text, 40));
  if (stacks_.advance(bytes_of(text))) return {};
  return error(Code::invalid_argument, "the grammar does not take \"{}\" here",
               printable(text, 40));
}

bool Matcher::is_complete() const {
  for (size_t i = 0; i < stacks_.now().end; ++i)
    if (stacks_[i].node == Config::kDone) return true;
  return false;
}

bool Matcher::must_end() const {
  return !ended_ && stacks_.now().size() == 1 && stacks_[0].node == Config::kDone;
}

std::string Matcher::forced() {
  std::string out;
  const Stacks::Mark mark = stacks_.mark();
  Stacks::Set set = stacks_.now();
  while (!ended_ && out.size() < kMaxForcedBytes) {
    const int byte = only_byte(stacks_, set);
    if (byte == kNoByte) break;
    out += static_cast<char>(byte);
    set = stacks_.step(set, static_cast<uint8_t>(byte));
  }
  stacks_.release(mark);
  return out;
}

}  // namespace millrace::grammar
