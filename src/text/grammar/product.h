// A Lexeme from keys: whatever can be stepped by a byte and compared becomes a state. How automata
// are combined: the key is then a pair of their states.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/status.h"
#include "text/grammar/lexeme.h"

namespace millrace::grammar {

// next(key, byte) -> std::optional<Key>; accepts(key) -> bool. Fails beyond Lexeme::kMaxStates;
// nothing when nothing is accepted.
template <class Key, class Next, class Accepts>
Result<std::optional<Lexeme>> lexeme_of_keys(const Key& start, Next next, Accepts accepts) {
  std::map<Key, Lexeme::State> numbers = {{start, Lexeme::kStart}};
  std::vector<Key> keys = {start};
  std::vector<Lexeme::Row> rows;
  std::vector<bool> ends;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Key key = keys[i];
    ends.push_back(accepts(key));
    rows.emplace_back().fill(Lexeme::kDead);
    for (size_t byte = 0; byte < 256; ++byte) {
      const std::optional<Key> to = next(key, static_cast<uint8_t>(byte));
      if (!to) continue;
      const auto [known, fresh] = numbers.emplace(*to, static_cast<Lexeme::State>(keys.size()));
      if (fresh) keys.push_back(*to);
      rows.back()[byte] = known->second;
    }
    if (keys.size() > Lexeme::kMaxStates)
      return error(Code::unsupported, "its automaton is too large");
  }
  return Lexeme::make(rows, ends);
}

}  // namespace millrace::grammar
