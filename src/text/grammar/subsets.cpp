// Subset construction: from an Nfa to a Lexeme.
#include <algorithm>
#include <map>
#include <set>

#include "text/grammar/nfa.h"

namespace millrace::grammar {

using Set = std::vector<int32_t>;

// Sets of nodes that can be told apart: those that take a byte, an `end`, or the acceptance. Nodes
// in between are passed at once.
class Subsets {
 public:
  explicit Subsets(const Nfa& nfa) : nfa_(nfa), seen_(nfa.nodes_.size()) {}

  // What is reached from `from` without a byte; `at_begin`, `at_end`: where in the text this is.
  Set closure(const Set& from, bool at_begin, bool at_end) {
    Set out, work = from;
    ++round_;
    while (!work.empty()) {
      const int32_t n = work.back();
      work.pop_back();
      if (n < 0 || seen_[static_cast<size_t>(n)] == round_) continue;
      seen_[static_cast<size_t>(n)] = round_;
      ++work_;
      const Nfa::Node& node = nfa_.nodes_[static_cast<size_t>(n)];
      if (node.kind == Nfa::Kind::split) {
        work.push_back(node.b);
        work.push_back(node.a);
      } else if (node.kind == Nfa::Kind::begin) {
        if (at_begin) work.push_back(node.a);
      } else {
        if (node.kind == Nfa::Kind::end && at_end) work.push_back(node.a);
        out.push_back(n);
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  bool ends(const Set& set) {
    const Set end = closure(set, false, true);
    return !end.empty() && end.front() == Nfa::kAccept;
  }

  // By the first byte of each run of bytes that leads to the same nodes.
  std::map<int, Set> steps(const Set& set) {
    std::set<int> borders = {0, 256};
    for (const int32_t n : set) {
      const Nfa::Node& node = nfa_.nodes_[static_cast<size_t>(n)];
      if (node.kind != Nfa::Kind::range) continue;
      borders.insert(node.lo);
      borders.insert(node.hi + 1);
    }
    std::map<int, Set> out;
    for (const int border : borders) out[border];
    for (const int32_t n : set) {
      const Nfa::Node& node = nfa_.nodes_[static_cast<size_t>(n)];
      if (node.kind != Nfa::Kind::range) continue;
      for (auto at = out.find(node.lo); at->first <= node.hi; ++at) {
        at->second.push_back(node.a);
        ++work_;
      }
    }
    return out;
  }

  void spend(size_t work) { work_ += work; }
  bool spent() const { return work_ > Nfa::kMaxWork; }
  size_t work() const { return work_; }

 private:
  const Nfa& nfa_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
  size_t work_ = 0;
};

namespace {

class Determinizer {
 public:
  Determinizer(const Nfa& nfa, bool quotes) : subsets_(nfa), quotes_(quotes) {}

  size_t work() const { return subsets_.work() + 16 * rows_.size(); }

  Result<std::optional<Lexeme>> run(int32_t start) {
    const Set first = subsets_.closure({start}, true, false);
    if (quotes_) {
      add_row();
      rows_[0]['"'] = 1;
      // The string's end is a state of its own, made when first needed.
    }
    numbers_.emplace(first, static_cast<Lexeme::State>(rows_.size()));
    queue_.push_back(first);
    add_row();
    for (size_t i = 0; i < queue_.size(); ++i) MILLRACE_TRY(expand(i));
    return Lexeme::make(rows_, accepts_);
  }

 private:
  void add_row() {
    rows_.emplace_back();
    rows_.back().fill(Lexeme::kDead);
    accepts_.push_back(false);
  }

  Status expand(size_t i) {
    const Set set = queue_[i];
    const Lexeme::State at = numbers_.at(set);
    const auto steps = subsets_.steps(set);
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      if (step->second.empty()) continue;
      const Set to = subsets_.closure(step->second, false, false);
      if (to.empty()) continue;
      subsets_.spend(to.size());
      const auto [known, fresh] = numbers_.emplace(to, static_cast<Lexeme::State>(rows_.size()));
      if (fresh) {
        queue_.push_back(to);
        add_row();
      }
      for (int byte = step->first; byte < std::next(step)->first; ++byte)
        rows_[at][static_cast<size_t>(byte)] = known->second;
    }
    if (subsets_.ends(set)) end_at(at);
    if (subsets_.spent() || rows_.size() >= Lexeme::kMaxStates)
      return error(Code::unsupported, "its automaton is too large");
    return {};
  }

  void end_at(Lexeme::State at) {
    if (!quotes_) {
      accepts_[at] = true;
      return;
    }
    if (closed_ == Lexeme::kDead) {
      closed_ = static_cast<Lexeme::State>(rows_.size());
      add_row();
      accepts_[closed_] = true;
    }
    rows_[at]['"'] = closed_;
  }

  Subsets subsets_;
  bool quotes_;
  std::vector<Lexeme::Row> rows_;
  std::vector<bool> accepts_;
  std::map<Set, Lexeme::State> numbers_;
  std::vector<Set> queue_;
  Lexeme::State closed_ = Lexeme::kDead;
};

}  // namespace

Result<std::optional<Lexeme>> Nfa::finish(int32_t start, bool quotes, size_t& work) const {
  work += nodes_.size();
  if (full()) return error(Code::unsupported, "it is too large");
  if (start < 0) return std::optional<Lexeme>();
  Determinizer determinizer(*this, quotes);
  auto lexeme = determinizer.run(start);
  work += determinizer.work();
  return lexeme;
}

}  // namespace millrace::grammar
