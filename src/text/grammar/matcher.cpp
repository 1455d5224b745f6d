#include "text/grammar/matcher.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/utf8.h"
#include "text/grammar/mask_writer.h"

namespace millrace::grammar {

namespace {

constexpr size_t kMaxForcedBytes = 1024;

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The one byte that a config can take; nothing: it is over, or there are several.
std::optional<uint8_t> only_byte(const Graph& graph, const Config& config) {
  if (config.node == Config::kDone) return std::nullopt;
  const Node& node = graph[config.node];
  if (node.kind == Node::Kind::literal || node.kind == Node::Kind::marker)
    return static_cast<uint8_t>(graph.literal(node)[config.state]);
  const auto state = static_cast<Lexeme::State>(config.state);
  const bool string = node.kind == Node::Kind::string;
  if (string && state != Lexeme::kStart) return std::nullopt;
  if (string) return uint8_t{'"'};
  const Lexeme& lexeme = *graph.lexemes[node.a];
  std::optional<uint8_t> only;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (lexeme.step(state, static_cast<uint8_t>(byte)) == Lexeme::kDead) continue;
    if (only) return std::nullopt;
    only = static_cast<uint8_t>(byte);
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
  for (Stacks::Set set = stacks_.now(); !ended_ && out.size() < kMaxForcedBytes;) {
    std::optional<uint8_t> only;
    for (size_t i = set.begin; i < set.end; ++i) {
      const auto byte = only_byte(stacks_.graph(), stacks_[i]);
      if (!byte || (only && *only != *byte)) {
        only.reset();
        break;
      }
      only = byte;
    }
    if (!only) break;
    out += static_cast<char>(*only);
    set = stacks_.step(set, *only);
  }
  stacks_.release(mark);
  return out;
}

}  // namespace millrace::grammar
