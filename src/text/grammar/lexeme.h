// A lexeme: a regular set of byte strings (a JSON string, a number, what a pattern takes) as a
// deterministic automaton. Every state can still reach an accepting one, so whoever follows it
// never ends in a dead end. Immutable; made from an Nfa (nfa.h) or by a walk over keys (product.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::grammar {

class Lexeme {
 public:
  using State = uint16_t;
  using Row = std::array<State, 256>;
  static constexpr State kDead = 0xFFFF;
  static constexpr State kStart = 0;
  // A row takes 512 bytes while an automaton is made: 4 MiB at most.
  static constexpr size_t kMaxStates = 8192;

  // State 0 is the start. Nothing for an automaton that accepts no string at all.
  static std::optional<Lexeme> make(const std::vector<Row>& rows, const std::vector<bool>& accepts);

  State step(State state, uint8_t byte) const {
    return next_[size_t{state} * n_classes_ + class_of_[byte]];
  }
  bool accepts(State state) const { return (flags_[state] & kAccepts) != 0; }
  // Whether any byte may follow.
  bool goes_on(State state) const { return (flags_[state] & kGoesOn) != 0; }
  size_t n_states() const { return flags_.size(); }
  size_t n_cells() const { return next_.size(); }

 private:
  static constexpr uint8_t kAccepts = 1, kGoesOn = 2;
  // Bytes that no state tells apart share a class and a column of the table.
  std::array<uint8_t, 256> class_of_{};
  size_t n_classes_ = 0;
  std::vector<State> next_;
  std::vector<uint8_t> flags_;
};

}  // namespace millrace::grammar
