#include "text/grammar/parts.h"

#include <algorithm>

#include "base/check.h"
#include "text/grammar/pattern.h"

namespace millrace::grammar {

namespace {

using Kind = Node::Kind;

uint32_t size32(size_t n) {
  return static_cast<uint32_t>(n);
}

}  // namespace

Builder::Parts::Parts() {
  graph.lexemes = {&standard().space, &standard().number, &standard().integer,
                   &standard().plain_string};
}

Status Builder::Parts::check() const {
  if (!too_large) return {};
  return error(Code::invalid_argument,
               "the grammar is too large: more than {} pieces, {} bytes of text or {} cells of "
               "automata; give fewer or smaller schemas",
               kMaxNodes, kMaxTextBytes, kMaxCells);
}

int32_t Builder::Parts::add(Node node) {
  if (graph.nodes.size() >= kMaxNodes || graph.children.size() >= 4 * kMaxNodes) too_large = true;
  if (too_large && !graph.nodes.empty()) return 0;
  graph.nodes.push_back(node);
  return static_cast<int32_t>(graph.nodes.size() - 1);
}

int32_t Builder::Parts::literal(std::string_view text, Kind kind) {
  if (graph.text.size() + text.size() > kMaxTextBytes) {
    too_large = true;
    text = {};
  }
  const uint32_t at = size32(graph.text.size());
  graph.text += text;
  return add({kind, at, size32(text.size())});
}

int32_t Builder::Parts::lexeme(const Lexeme& standard) {
  const auto at = std::find(graph.lexemes.begin(), graph.lexemes.end(), &standard);
  MILLRACE_CHECK(at != graph.lexemes.end(), "not a standard lexeme");
  return add({Kind::lexeme, size32(static_cast<size_t>(at - graph.lexemes.begin()))});
}

int32_t Builder::Parts::lexeme(Lexeme&& own, bool text) {
  if (!has_room(own)) {
    too_large = true;
    return 0;
  }
  graph.own.push_back(std::move(own));
  graph.lexemes.push_back(&graph.own.back());
  return add({Kind::lexeme, size32(graph.lexemes.size() - 1), text ? 1u : 0u});
}

bool Builder::Parts::has_room(const Lexeme& lexeme) const {
  size_t cells = lexeme.n_cells();
  for (const Lexeme& other : graph.own) cells += other.n_cells();
  return cells <= kMaxCells;
}

int32_t Builder::Parts::string(uint32_t min, uint32_t max) {
  return add({Kind::string, 0, 0, min, max});
}

int32_t Builder::Parts::with_children(Kind kind, std::span<const int32_t> nodes) {
  const uint32_t at = size32(graph.children.size());
  const int32_t node = add({kind, at, size32(nodes.size())});
  if (!too_large) graph.children.insert(graph.children.end(), nodes.begin(), nodes.end());
  return node;
}

int32_t Builder::Parts::sequence(std::span<const int32_t> nodes) {
  if (nodes.size() == 1) return nodes[0];
  return with_children(Kind::sequence, nodes);
}

int32_t Builder::Parts::alternatives(std::span<const int32_t> nodes) {
  if (nodes.size() == 1) return nodes[0];
  return with_children(Kind::alternatives, nodes);
}

int32_t Builder::Parts::repeat(int32_t first, int32_t more, uint32_t min, uint32_t max) {
  const int32_t node = with_children(Kind::repeat, std::array{first, more});
  if (too_large) return node;
  graph.nodes.back().min = min;
  graph.nodes.back().max = max;
  return node;
}

int32_t Builder::Parts::reference() {
  return with_children(Kind::reference, std::array{int32_t{0}});
}

void Builder::Parts::point(int32_t reference, int32_t node) {
  if (!too_large) graph.children[graph[reference].a] = node;
}

int32_t Builder::Parts::one_of(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts.empty() ? never() : one_of_sorted(texts, 0);
}

// Texts that agree in their first `from` bytes.
int32_t Builder::Parts::one_of_sorted(std::span<const std::string> texts, size_t from) {
  if (too_large) return 0;
  const std::string_view first = texts.front(), last = texts.back();
  size_t same = from;
  while (same < std::min(first.size(), last.size()) && first[same] == last[same]) ++same;
  if (texts.size() == 1) return literal(first.substr(from));
  std::vector<int32_t> branches;
  for (size_t i = 0; i < texts.size();) {
    size_t end = i + 1;
    if (texts[i].size() == same) {
      branches.push_back(empty());
    } else {
      while (end < texts.size() && texts[end][same] == texts[i][same]) ++end;
      branches.push_back(one_of_sorted(texts.subspan(i, end - i), same));
    }
    i = end;
  }
  const int32_t rest = alternatives(branches);
  return same == from ? rest : sequence({literal(first.substr(from, same - from)), rest});
}

int32_t Builder::Parts::pattern(const std::string& pattern) {
  const auto [at, fresh] = by_pattern.emplace(pattern, -1);
  if (!fresh) return at->second;
  auto compiled = whole_pattern(pattern);
  MILLRACE_CHECK(compiled.ok() && compiled->lexeme, "the pattern {} does not compile", pattern);
  return at->second = lexeme(std::move(*compiled->lexeme));
}

int32_t Builder::Parts::space(bool compact) {
  return compact ? empty() : lexeme(standard().space);
}

int32_t Builder::Parts::array(int32_t element, uint32_t min, uint32_t max, bool compact) {
  const int32_t more = sequence({literal(","), space(compact), element});
  const int32_t elements = repeat(element, more, std::max(min, 1u), max);
  const int32_t filled = sequence({elements, space(compact), literal("]")});
  std::vector<int32_t> ways = {filled};
  if (min == 0) ways.push_back(literal("]"));
  return sequence({literal("["), space(compact), alternatives(ways)});
}

int32_t Builder::Parts::json(bool compact) {
  int32_t& any_json = any[compact ? 1 : 0];
  if (any_json >= 0) return any_json;
  any_json = reference();
  const int32_t itself = any_json;
  point(itself,
        alternatives({string(0, kNoLimit), lexeme(standard().number), json_object(compact),
                      array(itself, 0, kNoLimit, compact), one_of({"true", "false", "null"})}));
  return itself;
}

int32_t Builder::Parts::json_object(bool compact) {
  const int32_t value = json(compact);
  const int32_t member = sequence({string(0, kNoLimit), literal(":"), space(compact), value});
  const int32_t more = sequence({literal(","), space(compact), member});
  const int32_t members = repeat(member, more, 1, kNoLimit);
  const int32_t filled = sequence({members, space(compact), literal("}")});
  return sequence({literal("{"), space(compact), alternatives({filled, literal("}")})});
}

}  // namespace millrace::grammar
