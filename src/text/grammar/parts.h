// The inside of a Builder: nodes one by one, within the budget of a grammar. What goes past the
// budget is remembered and told at the end, so that pieces can be made without a Result each.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/graph.h"

namespace millrace::grammar {

struct Builder::Parts {
  // About 10 MB in all, and some 10 ms to analyse.
  static constexpr size_t kMaxNodes = 1 << 17;
  static constexpr size_t kMaxTextBytes = 1 << 21;
  static constexpr size_t kMaxCells = 1 << 21;

  Graph graph;
  std::vector<std::string> warnings;
  std::map<std::string, int32_t, std::less<>> by_pattern;  // nodes of lexemes made from text
  std::array<int32_t, 2> any = {-1, -1};                   // any JSON value; [1]: compact
  bool too_large = false;

  Parts();
  Status check() const;

  int32_t add(Node node);
  int32_t literal(std::string_view text, Node::Kind kind = Node::Kind::literal);
  int32_t lexeme(const Lexeme& standard);
  int32_t lexeme(Lexeme&& own, bool text = false);
  bool has_room(const Lexeme& lexeme) const;
  int32_t string(uint32_t min, uint32_t max);
  int32_t sequence(std::span<const int32_t> nodes);
  int32_t sequence(std::initializer_list<int32_t> nodes) { return sequence(std::span(nodes)); }
  int32_t alternatives(std::span<const int32_t> nodes);
  int32_t alternatives(std::initializer_list<int32_t> nodes) {
    return alternatives(std::span(nodes));
  }
  int32_t never() { return alternatives({}); }
  int32_t empty() { return sequence({}); }
  // `first`, then `more` again and again.
  int32_t repeat(int32_t first, int32_t more, uint32_t min, uint32_t max);
  int32_t reference();  // to be pointed at its node
  void point(int32_t reference, int32_t node);
  // One of some texts, by their common beginnings.
  int32_t one_of(std::vector<std::string> texts);
  // Bytes that match a pattern of ours, whole.
  int32_t pattern(const std::string& pattern);

  int32_t space(bool compact);
  // `[`, elements with commas in between, `]`; `elements` comes after white space.
  int32_t array(int32_t element, uint32_t min, uint32_t max, bool compact);
  int32_t json(bool compact);
  int32_t json_object(bool compact);

 private:
  int32_t with_children(Node::Kind kind, std::span<const int32_t> nodes);
  int32_t one_of_sorted(std::span<const std::string> texts, size_t from);
};

}  // namespace millrace::grammar
