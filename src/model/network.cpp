#include "model/network.h"

#include <fmt/format.h>

#include <map>

#include "base/hash.h"
#include "model/architecture.h"
#include "model/tensors.h"
#include "tensor/format.h"

namespace millrace {
Network::Network(ModelFile file, const Config& config) : file_(std::move(file)), config_(config) {}

Result<std::unique_ptr<Network>> Network::load(ModelFile file, const NetworkPlace& place,
                                               const NetworkLimits& limits, StepBindings bindings,
                                               const LoadProgress& progress) {
  MILLRACE_ASSIGN(CheckedModel checked, check_model(file));
  std::unique_ptr<Network> network(new Network(std::move(file), checked.config));
  network->spec_ = std::move(checked.spec);
  MILLRACE_TRY(network->load_weights(place, limits, std::move(bindings), progress));
  return network;
}

Status Network::load_weights(const NetworkPlace& place, const NetworkLimits& limits,
                             StepBindings bindings, const LoadProgress& progress) {
  MILLRACE_ASSIGN(const std::vector<DType> types, weight_types(spec_, file_, place.device.kind()));
  BoundKv kv = bindings.layers.at(0);
  const LowerFor how{.from = place.from,
                     .weight_types = types,
                     .max_rows = limits.max_rows,
                     .max_outputs = limits.max_outputs,
                     .kv = kv};
  MILLRACE_ASSIGN(Lowered lowered, lower(spec_, how));
  warnings_ = slow_calls(spec_, lowered, types);
  weights_ = std::make_unique<Weights>(file_, place.device, place.team, progress);
  MILLRACE_TRY(weights_->load(spec_, lowered, types));
  bindings.weights = weights_->bound();
  MILLRACE_ASSIGN(StepProgram program, StepProgram::make(spec_, std::move(lowered), how,
                                                         place.device, std::move(bindings)));
  program_ = std::make_unique<StepProgram>(std::move(program));
  return {};
}

size_t Network::weight_bytes_of_a_row() const {
  const size_t matrices = weight_bytes() - weights_->table_bytes();
  if (config_.n_experts == 0) return matrices;
  const auto n_experts = static_cast<size_t>(config_.n_experts);
  const size_t unused = n_experts - static_cast<size_t>(config_.n_experts_used);
  return matrices - weights_->expert_bytes() / n_experts * unused;
}

// The step with every constant of its calls: one that an architecture's file sets itself is in no
// configuration. Padding in them was cleared (StepBuilder).
std::string Network::model_hash() const {
  std::string all(config_.architecture->name);
  all += describe(config_) + describe(spec_);
  for (const Node& node : spec_.nodes)
    all.append(reinterpret_cast<const char*>(node.attrs.bytes), sizeof(node.attrs.bytes));
  return hash128(all + weights_->hash());
}

std::vector<std::string> slow_calls(const StepSpec& spec, const Lowered& lowered,
                                    std::span<const DType> weight_types) {
  struct Slow {
    int n = 0;
    std::string first;
  };
  std::map<std::string, Slow> slow;  // by op and type
  for (const LoweredCall& call : lowered.calls) {
    if (!call.is_slow) continue;
    std::string what(call.op->name);
    std::string name;
    if (!call.weights.empty()) {
      const auto w = static_cast<size_t>(call.weights[0]);
      what += fmt::format(" with {} weights", name_of(weight_types[w]));
      name = spec.weights[w].name;
    }
    Slow& s = slow[what];
    if (s.n++ == 0) s.first = name;
  }
  std::vector<std::string> out;
  for (const auto& [what, s] : slow)
    out.push_back(fmt::format(
        "{} of {}{} {} no fast variant here and will be many times slower{}",
        s.n == 1 ? "one call" : fmt::format("{} calls", s.n), what,
        s.first.empty() ? "" : fmt::format(" ({}{})", s.first, s.n > 1 ? ", ..." : ""),
        s.n == 1 ? "has" : "have",
        s.first.empty() ? ""
                        : "; 'millrace quantize' can write the model as q8_0, q4_0 or q4_k_m, "
                          "which have one"));
  return out;
}

}  // namespace millrace
