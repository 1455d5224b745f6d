// The notebook as a graph: hypotheses, experiments, verdicts, learnings and posts, and the typed
// edges between them with the runs they rest on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/notebook/notebook.h"

namespace millrace::lab {

struct GraphNode {
  NodeRef ref;
  std::string text, status;  // status: a hypothesis's, a verdict's outcome, why a learning is stale
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<Edge> edges;
};

// Everything within three steps of a node; without one (id 0), of the newest `limit` edges and the
// hypotheses that have none.
Result<Graph> read_graph(Notebook& notebook, const NodeRef& around, int limit,
                         const Machine& machine);

nlohmann::ordered_json to_json(const Graph& graph);
std::string to_dot(const Graph& graph);  // for Graphviz

}  // namespace millrace::lab
