// The notebook's records as JSON documents: what --json prints, and what a page or a tool reads.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lab/notebook/notebook.h"

namespace millrace::lab {

nlohmann::ordered_json to_json(const RunSummary& run);
nlohmann::ordered_json to_json(const Metric& metric);  // without its samples
nlohmann::ordered_json to_json(const Hypothesis& hypothesis);
nlohmann::ordered_json to_json(const HypothesisLine& line);
nlohmann::ordered_json to_json(const Experiment& experiment);
nlohmann::ordered_json to_json(const Verdict& verdict);
nlohmann::ordered_json to_json(const Strength& strength);
nlohmann::ordered_json to_json(const Learning& learning, const LearningState& state);
nlohmann::ordered_json to_json(const Post& post);
nlohmann::ordered_json to_json(const Claim& claim, const ClaimState& state);
nlohmann::ordered_json to_json(const Edge& edge);
nlohmann::ordered_json to_json(const Event& event);

}  // namespace millrace::lab
