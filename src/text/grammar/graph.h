// A grammar as data: a graph of pieces over literals and lexemes. Sequences, alternatives and
// repeats have children; a reference makes recursion. Stacks (stacks.h) walks it directly: there is
// nothing to lower and nothing is unrolled, so a repeat of a million costs one node.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/grammar/lexemes.h"

namespace millrace::grammar {

struct Node {
  enum class Kind : unsigned char {
    literal,       // text[a, a + b)
    marker,        // a literal that one control token may stand for
    lexeme,        // lexemes[a]; b: 1 for free text, which is over nearly anywhere
    string,        // a JSON string of min to max characters
    sequence,      // children[a, a + b)
    alternatives,  // children[a, a + b); none of them: nothing matches
    repeat,        // children[a], then children[a + 1] again and again: min to max in all
    reference,     // to children[a]
  };
  Kind kind;
  uint32_t a = 0, b = 0;
  uint32_t min = 0, max = 0;  // max: kNoLimit without one
};

struct Graph {
  // Frames that a text may have open at once: JSON takes about three for a level of nesting.
  static constexpr uint32_t kMaxFrames = 384;
  static constexpr uint32_t kNever = UINT32_MAX / 4;

  std::vector<Node> nodes;
  std::vector<int32_t> children;
  std::string text;
  std::vector<const Lexeme*> lexemes;  // standard ones, or of `own`
  std::deque<Lexeme> own;
  // The fewest frames each node must open to be completed; kNever: it cannot be. By analyse().
  std::vector<uint32_t> need;
  int32_t root = -1;

  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const Node& operator[](int32_t node) const { return nodes[static_cast<size_t>(node)]; }
  std::string_view literal(const Node& node) const {
    return std::string_view(text).substr(node.a, node.b);
  }
  std::span<const int32_t> children_of(const Node& node) const;
};

// Fills `need`. Fails when nothing matches, when a cycle of references takes no input, or when
// something that may be empty repeats without end.
Status analyse(Graph& graph);

}  // namespace millrace::grammar
