#include "lab/notebook/graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"
#include "lab/notebook/json.h"
#include "lab/notebook/rows.h"

namespace millrace::lab {
namespace {

constexpr int kSteps = 3;  // from a node: hypothesis, verdict, hypothesis that it refines

std::string status_of(const LearningState& state) {
  if (!state.evidence.empty()) return state.evidence;
  if (!state.stale.empty()) return "stale: " + state.stale;
  return state.strength.name;
}

class Reader {
 public:
  Reader(Notebook& notebook, const Machine& machine) : notebook_(notebook), machine_(machine) {}

  Result<Graph> around(const NodeRef& center) {
    MILLRACE_TRY(add_node(center));
    std::vector<NodeRef> front = {center};
    for (int step = 0; step < kSteps && !front.empty(); ++step) {
      std::vector<NodeRef> next;
      for (const NodeRef& node : front) {
        MILLRACE_ASSIGN(const auto edges, notebook_.edges_at(node));
        for (const Edge& edge : edges) MILLRACE_TRY(add_edge(edge, &next));
      }
      front = std::move(next);
    }
    return std::move(graph_);
  }

  Result<Graph> newest(int limit) {
    MILLRACE_ASSIGN(auto edges, read_all<Edge>(notebook_.store(),
                                               fmt::format("SELECT {} FROM edges ORDER BY id DESC"
                                                           " LIMIT ?",
                                                           kEdgeColumns),
                                               limit));
    std::reverse(edges.begin(), edges.end());
    MILLRACE_ASSIGN(auto lines, notebook_.hypotheses(0, limit));
    std::reverse(lines.begin(), lines.end());
    for (const HypothesisLine& line : lines) MILLRACE_TRY(add_node({"hyp", line.id}));
    for (const Edge& edge : edges) MILLRACE_TRY(add_edge(edge, nullptr));
    return std::move(graph_);
  }

 private:
  Status add_edge(const Edge& edge, std::vector<NodeRef>* next) {
    if (!edges_.insert(edge.id).second) return {};
    graph_.edges.push_back(edge);
    for (const NodeRef& end : {edge.from, edge.to}) {
      if (next != nullptr && nodes_.count(to_text(end)) == 0) next->push_back(end);
      MILLRACE_TRY(add_node(end));
    }
    return {};
  }

  Status add_node(const NodeRef& ref) {
    if (!nodes_.insert(to_text(ref)).second) return {};
    auto node = node_of(ref);
    if (node.status().code() == Code::not_found)
      graph_.nodes.push_back({ref, "", "missing: it was deleted"});
    else if (!node.ok())
      return node.status();
    else
      graph_.nodes.push_back(*std::move(node));
    return {};
  }

  Result<GraphNode> node_of(const NodeRef& ref) {
    if (ref.kind == "hyp") {
      MILLRACE_ASSIGN(const auto found, notebook_.hypotheses(ref.id + 1, 1));
      if (found.empty() || found[0].id != ref.id)
        return error(Code::not_found, "no {}", to_text(ref));
      return GraphNode{ref, found[0].text, found[0].status};
    }
    if (ref.kind == "learn") {
      MILLRACE_ASSIGN(const Learning l, notebook_.learning(ref.id));
      MILLRACE_ASSIGN(const LearningState state, notebook_.state_of(l, machine_));
      return GraphNode{ref, l.text, status_of(state)};
    }
    if (ref.kind == "verdict") {
      MILLRACE_ASSIGN(const Verdict v, notebook_.verdict(ref.id));
      return GraphNode{ref, fmt::format("run:{}", v.run), v.outcome};
    }
    if (ref.kind == "exp") {
      MILLRACE_ASSIGN(const Experiment e, notebook_.experiment(ref.id));
      return GraphNode{ref, e.command, e.role};
    }
    if (ref.kind == "post") {
      MILLRACE_ASSIGN(const Post p, notebook_.post(ref.id));
      return GraphNode{ref, p.title, p.state};
    }
    if (ref.kind == "claim") {
      MILLRACE_ASSIGN(const Claim c, notebook_.claim(ref.id));
      return GraphNode{ref, c.text, ""};
    }
    MILLRACE_ASSIGN(const RunSummary run, notebook_.store().run(ref.id));
    return GraphNode{ref, run.command, run.state};
  }

  Notebook& notebook_;
  const Machine& machine_;
  Graph graph_;
  std::set<std::string> nodes_;
  std::set<int64_t> edges_;
};

// Inside double quotes: Graphviz knows \" and escapes with a backslash of its own.
std::string dot_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text, 80)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<Graph> read_graph(Notebook& notebook, const NodeRef& around, int limit,
                         const Machine& machine) {
  Reader reader(notebook, machine);
  return around.id > 0 ? reader.around(around) : reader.newest(limit);
}

nlohmann::ordered_json to_json(const Graph& graph) {
  auto nodes = nlohmann::ordered_json::array(), edges = nlohmann::ordered_json::array();
  for (const GraphNode& node : graph.nodes)
    nodes.push_back({{"id", to_text(node.ref)}, {"status", node.status}, {"text", node.text}});
  for (const Edge& edge : graph.edges) edges.push_back(to_json(edge));
  return {{"nodes", nodes}, {"edges", edges}};
}

std::string to_dot(const Graph& graph) {
  std::string out = "digraph lab {\n  rankdir=LR;\n  node [shape=box];\n";
  for (const GraphNode& node : graph.nodes)
    out += fmt::format("  \"{}\" [label=\"{}\\n{}\\n{}\"];\n", dot_text(to_text(node.ref)),
                       dot_text(to_text(node.ref)), dot_text(node.status), dot_text(node.text));
  for (const Edge& edge : graph.edges)
    out += fmt::format("  \"{}\" -> \"{}\" [label=\"{}{}\"];\n", dot_text(to_text(edge.from)),
                       dot_text(to_text(edge.to)), dot_text(edge.type),
                       edge.run ? fmt::format(" run:{}", *edge.run) : "");
  return out + "}\n";
}

}  // namespace millrace::lab
