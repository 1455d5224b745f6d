#include "text/grammar/lexeme.h"

#include <algorithm>
#include <map>

namespace millrace::grammar {

namespace {

using State = Lexeme::State;
using Row = Lexeme::Row;

// The states from which an accepting one can be reached.
std::vector<bool> useful(const std::vector<Row>& rows, const std::vector<bool>& accepts) {
  std::vector<std::vector<State>> from(rows.size());
  for (size_t s = 0; s < rows.size(); ++s) {
    State last = Lexeme::kDead;
    for (const State to : rows[s]) {
      if (to != Lexeme::kDead && to != last) from[to].push_back(static_cast<State>(s));
      last = to;
    }
  }
  std::vector<bool> seen(accepts);
  std::vector<State> work;
  for (size_t s = 0; s < rows.size(); ++s)
    if (seen[s]) work.push_back(static_cast<State>(s));
  while (!work.empty()) {
    const State to = work.back();
    work.pop_back();
    for (const State s : from[to])
      if (!seen[s]) {
        seen[s] = true;
        work.push_back(s);
      }
  }
  return seen;
}

// The new number of each useful state; the start stays first.
std::vector<State> renumbered(const std::vector<bool>& kept) {
  std::vector<State> number(kept.size(), Lexeme::kDead);
  State n = 0;
  for (size_t s = 0; s < kept.size(); ++s)
    if (kept[s]) number[s] = n++;
  return number;
}

}  // namespace

std::optional<Lexeme> Lexeme::make(const std::vector<Row>& rows, const std::vector<bool>& accepts) {
  if (rows.empty()) return std::nullopt;
  const std::vector<bool> kept = useful(rows, accepts);
  if (!kept[0]) return std::nullopt;
  const std::vector<State> number = renumbered(kept);
  const auto mapped = [&](State s) { return s == kDead ? kDead : number[s]; };

  Lexeme out;
  std::vector<size_t> old;
  for (size_t s = 0; s < rows.size(); ++s)
    if (kept[s]) old.push_back(s);
  std::map<std::vector<State>, uint8_t> columns;
  std::vector<const std::vector<State>*> in_order;
  for (size_t byte = 0; byte < 256; ++byte) {
    std::vector<State> column(old.size());
    for (size_t i = 0; i < old.size(); ++i) column[i] = mapped(rows[old[i]][byte]);
    const auto [at, fresh] =
        columns.emplace(std::move(column), static_cast<uint8_t>(in_order.size()));
    if (fresh) in_order.push_back(&at->first);
    out.class_of_[byte] = at->second;
  }
  out.n_classes_ = in_order.size();
  out.next_.resize(old.size() * in_order.size());
  out.flags_.resize(old.size());
  for (size_t i = 0; i < old.size(); ++i) {
    for (size_t c = 0; c < in_order.size(); ++c) {
      const State to = (*in_order[c])[i];
      out.next_[i * in_order.size() + c] = to;
      if (to != kDead) out.flags_[i] |= kGoesOn;
    }
    if (accepts[old[i]]) out.flags_[i] |= kAccepts;
  }
  return out;
}

}  // namespace millrace::grammar
