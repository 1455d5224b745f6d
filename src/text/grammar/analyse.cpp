// What must hold before a graph is walked: it can be completed, and no walk goes on without input.
#include <algorithm>

#include "text/grammar/graph.h"

namespace millrace::grammar {

namespace {

using Kind = Node::Kind;

// Values of nodes from those of their children, until nothing changes.
class Fixpoint {
 public:
  explicit Fixpoint(const Graph& graph) : graph_(graph), parents_(graph.nodes.size()) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const int32_t child : graph.children_of(graph.nodes[n]))
        parents_[static_cast<size_t>(child)].push_back(static_cast<int32_t>(n));
  }

  // `of(node, values)`; values only ever fall.
  template <class Of>
  void run(std::vector<uint32_t>& values, Of of) const {
    std::vector<int32_t> work;
    for (size_t n = graph_.nodes.size(); n > 0; --n) work.push_back(static_cast<int32_t>(n - 1));
    while (!work.empty()) {
      const int32_t n = work.back();
      work.pop_back();
      const uint32_t value = of(graph_[n], values);
      if (value >= values[static_cast<size_t>(n)]) continue;
      values[static_cast<size_t>(n)] = value;
      for (const int32_t parent : parents_[static_cast<size_t>(n)]) work.push_back(parent);
    }
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<int32_t>> parents_;
};

uint32_t need_of(const Graph& graph, const Node& node, const std::vector<uint32_t>& need) {
  const auto children = graph.children_of(node);
  const auto of = [&](int32_t child) { return need[static_cast<size_t>(child)]; };
  const auto above = [](uint32_t n) { return std::min(n + 1, Graph::kNever); };
  uint32_t out = 0;
  switch (node.kind) {
    case Kind::sequence:
      for (size_t i = 0; i < children.size(); ++i)
        out = std::max(out, i + 1 < children.size() ? above(of(children[i])) : of(children[i]));
      return out;
    case Kind::alternatives:
      out = Graph::kNever;
      for (const int32_t child : children) out = std::min(out, of(child));
      return out;
    case Kind::repeat:
      if (node.min > node.max) return Graph::kNever;
      if (node.min > 0) out = above(of(children[0]));
      if (node.min > 1) out = std::max(out, above(of(children[1])));
      return out;
    case Kind::reference:
      return of(children[0]);
    case Kind::string:
      return node.min <= node.max ? 0 : Graph::kNever;
    default:
      return 0;
  }
}

// 0: may be empty.
uint32_t emptiness(const Graph& graph, const Node& node, const std::vector<uint32_t>& empty) {
  const auto children = graph.children_of(node);
  const auto is = [&](int32_t child) { return empty[static_cast<size_t>(child)] == 0; };
  bool out = false;
  switch (node.kind) {
    case Kind::literal:
    case Kind::marker:
      out = node.b == 0;
      break;
    case Kind::lexeme:
      out = graph.lexemes[node.a]->accepts(Lexeme::kStart);
      break;
    case Kind::string:
      break;
    case Kind::sequence:
      out = std::all_of(children.begin(), children.end(), is);
      break;
    case Kind::alternatives:
      out = std::any_of(children.begin(), children.end(), is);
      break;
    case Kind::repeat:
      out = node.min == 0 || (is(children[0]) && (node.min == 1 || is(children[1])));
      break;
    case Kind::reference:
      out = is(children[0]);
      break;
  }
  return out ? 0 : 1;
}

// Looks for a way from a node back to itself that takes no input.
class Cycles {
 public:
  Cycles(const Graph& graph, const std::vector<uint32_t>& empty)
      : graph_(graph), empty_(empty), state_(graph.nodes.size(), State::fresh) {}

  bool found(int32_t from) {
    std::vector<std::pair<int32_t, size_t>> path;
    enter(path, from);
    while (!path.empty()) {
      auto& [node, at] = path.back();
      const int32_t next = follower(graph_[node], at++);
      if (next < 0) {
        state_[static_cast<size_t>(node)] = State::done;
        path.pop_back();
      } else if (state_[static_cast<size_t>(next)] == State::open) {
        return true;
      } else if (state_[static_cast<size_t>(next)] == State::fresh) {
        enter(path, next);
      }
    }
    return false;
  }
  bool fresh(size_t node) const { return state_[node] == State::fresh; }

 private:
  enum class State : unsigned char { fresh, open, done };

  void enter(std::vector<std::pair<int32_t, size_t>>& path, int32_t node) {
    state_[static_cast<size_t>(node)] = State::open;
    path.emplace_back(node, 0);
  }
  // The i-th node that can follow without input; -1: there are no more.
  int32_t follower(const Node& node, size_t i) const {
    const auto children = graph_.children_of(node);
    if (i >= children.size()) return -1;
    if (node.kind == Kind::sequence && i > 0 && empty_[static_cast<size_t>(children[i - 1])] != 0)
      return -1;
    return children[i];
  }

  const Graph& graph_;
  const std::vector<uint32_t>& empty_;
  std::vector<State> state_;
};

Status check_empty(const Graph& graph, const Fixpoint& fixpoint) {
  std::vector<uint32_t> empty(graph.nodes.size(), 1);
  fixpoint.run(empty, [&](const Node& n, const auto& v) { return emptiness(graph, n, v); });
  for (const Node& node : graph.nodes)
    if (node.kind == Kind::repeat && empty[static_cast<size_t>(graph.children[node.a + 1])] == 0)
      return error(Code::invalid_argument, "a repeat of something that may be empty has no end");
  Cycles cycles(graph, empty);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (cycles.fresh(n) && cycles.found(static_cast<int32_t>(n)))
      return error(Code::invalid_argument, "a cycle of $ref never takes any input");
  return {};
}

}  // namespace

std::span<const int32_t> Graph::children_of(const Node& node) const {
  switch (node.kind) {
    case Kind::sequence:
    case Kind::alternatives:
      return std::span(children).subspan(node.a, node.b);
    case Kind::repeat:
      return std::span(children).subspan(node.a, 2);
    case Kind::reference:
      return std::span(children).subspan(node.a, 1);
    default:
      return {};
  }
}

Status analyse(Graph& graph) {
  const Fixpoint fixpoint(graph);
  graph.need.assign(graph.nodes.size(), Graph::kNever);
  fixpoint.run(graph.need, [&](const Node& n, const auto& v) { return need_of(graph, n, v); });
  MILLRACE_TRY(check_empty(graph, fixpoint));
  const uint32_t need = graph.need[static_cast<size_t>(graph.root)];
  if (need >= Graph::kNever) return error(Code::invalid_argument, "no text can satisfy it");
  if (need > Graph::kMaxFrames)
    return error(Code::invalid_argument, "every text that satisfies it nests too deep");
  return {};
}

}  // namespace millrace::grammar
