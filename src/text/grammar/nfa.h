// A nondeterministic automaton over bytes, and how it becomes a Lexeme: subset construction within
// a budget, so that a pattern whose automaton explodes costs little time and is refused. It is
// written back to front: whoever adds a state knows the one that follows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/grammar/char_set.h"
#include "text/grammar/lexeme.h"

namespace millrace::grammar {

// How a character is written: as its UTF-8, or as a JSON string holds it. There, quotes and
// backslashes have their short escape, control characters any escape, and all others none: a
// pattern's text is written in one way.
enum class Spelling : unsigned char { plain, json };

class Nfa {
 public:
  // begin and end: assertions about the text, passed by finish() alone.
  enum class Kind : unsigned char { range, split, begin, end, accept };
  struct Node {
    Kind kind;
    uint8_t lo = 0, hi = 0;
    int32_t a = -1, b = -1;
  };

  // What states and subset construction may cost: about 15 ms.
  static constexpr size_t kMaxNodes = 150'000;
  static constexpr size_t kMaxWork = 1'000'000;

  Nfa() { add({Kind::accept}); }
  static constexpr int32_t kAccept = 0;

  int32_t add(Node node);
  int32_t bytes(uint8_t lo, uint8_t hi, int32_t next) { return add({Kind::range, lo, hi, next}); }
  int32_t split(int32_t a, int32_t b) { return add({Kind::split, 0, 0, a, b}); }
  int32_t text(std::string_view text, int32_t next);
  // One character of the set; -1 when it is empty.
  int32_t chars(const CharSet& set, Spelling spelling, int32_t next);
  Node& operator[](int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  bool full() const { return nodes_.size() > kMaxNodes; }

  // The bytes that lead from `start` to the end, within `quotes` (a JSON string's) if wanted.
  // `begin` nodes are passed at the start alone, `end` nodes at the end. Fails when that takes more
  // than the budget; nothing when no text is accepted. `work` grows by what it took.
  Result<std::optional<Lexeme>> finish(int32_t start, bool quotes, size_t& work) const;

 private:
  friend class Subsets;
  int32_t either(int32_t a, int32_t b) { return a < 0 ? b : b < 0 ? a : split(a, b); }
  int32_t utf8(uint32_t lo, uint32_t hi, int32_t next);
  int32_t control(uint32_t lo, uint32_t hi, int32_t next);
  int32_t escaped(uint32_t lo, uint32_t hi, int32_t next);
  std::vector<Node> nodes_;
};

}  // namespace millrace::grammar
