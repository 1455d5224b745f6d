#include "text/grammar/token_grammar.h"

#include "text/grammar/graph.h"

namespace millrace::grammar {

namespace {

// A walk over fewer nodes of the trie is repeated rather than kept: it takes about a microsecond.
constexpr size_t kShortWalk = 256;
// Past this nothing more is kept for a grammar: masks are then slower, not wrong.
constexpr size_t kMaxKeptBytes = 16 << 20;

}  // namespace

TokenGrammar::TokenGrammar(Grammar grammar, const Vocabulary& vocabulary)
    : grammar_(std::move(grammar)), vocabulary_(vocabulary) {
  const Graph& graph = grammar_.graph();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].kind != Node::Kind::marker) continue;
    const int32_t token = vocabulary.trie.control(graph.literal(graph.nodes[n]));
    if (token >= 0) markers_.emplace(static_cast<int32_t>(n), token);
  }
}

int32_t TokenGrammar::token_of_marker(int32_t node) const {
  const auto at = markers_.find(node);
  return at == markers_.end() ? -1 : at->second;
}

const Reach* TokenGrammar::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = kept_.find(key);
  return at == kept_.end() ? nullptr : at->second.get();
}

const Reach& TokenGrammar::reach(const Key& key, Reach& scratch) const {
  if (const Reach* kept = find(key)) return *kept;
  scratch = reach_of(*key.lexeme, key.state, vocabulary_.trie, key.trie_node, key.follow);
  if (scratch.visited <= kShortWalk) return scratch;
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ > kMaxKeptBytes) return scratch;
  kept_bytes_ += scratch.heap_bytes();
  const auto [at, _] = kept_.emplace(key, std::make_unique<Reach>(std::move(scratch)));
  return *at->second;
}

}  // namespace millrace::grammar
