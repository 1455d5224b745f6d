#include "model/network.h"

#include <algorithm>

namespace millrace {
namespace {

// Shapes of steps that recur: one row, a full chunk, the rests and batches around them.
constexpr size_t kMaxPrograms = 16;

using Build = void (*)(Builder&);

Build build_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::llama:
      return build_llama;
    case Architecture::qwen2:
      return build_qwen2;
    case Architecture::qwen3:
      return build_qwen3;
    case Architecture::qwen3_moe:
      return build_qwen3_moe;
  }
  return nullptr;
}

}  // namespace

Network::Network(ModelFile file, const Config& config, Step step, Team& team, const PickFrom& from,
                 const LoadProgress& progress)
    : file_(std::move(file)),
      config_(config),
      step_(std::move(step)),
      team_(team),
      from_(from),
      weights_(file_, team, from, progress),
      scratch_(step_.limits().max_rows) {}

Result<std::unique_ptr<Network>> Network::load(ModelFile file, Team& team, const PickFrom& from,
                                               const StepLimits& limits,
                                               const LoadProgress& progress) {
  MILLRACE_ASSIGN(const Config config, read_config(file));
  MILLRACE_TRY(validate(config));
  MILLRACE_ASSIGN(Step step, Step::make(config, limits));
  std::unique_ptr<Network> network(
      new Network(std::move(file), config, std::move(step), team, from, progress));
  MILLRACE_TRY(network->make_frequencies());
  // Building the step of one row asks for every weight.
  MILLRACE_ASSIGN(Program program, network->build(1, 1));
  network->programs_.push_front({1, 1, std::move(program)});
  return network;
}

Status Network::make_frequencies() {
  std::vector<float> factors;
  if (config_.llama3.original_context > 0) {
    factors = llama3_factors(config_);
  } else if (weights_.has("rope_freqs.weight")) {
    MILLRACE_ASSIGN(const float* values, weights_.vector("rope_freqs.weight", config_.rot_dim / 2));
    factors.assign(values, values + config_.rot_dim / 2);
  }
  MILLRACE_ASSIGN(frequencies_, rope::make_frequencies(config_.rot_dim, config_.rope, factors));
  return {};
}

Result<Program> Network::build(int64_t n_rows, int64_t n_outputs) {
  Builder builder({config_, weights_, step_, scratch_, frequencies_, from_}, n_rows, n_outputs);
  build_of(config_.architecture)(builder);
  MILLRACE_TRY(builder.status());
  Program program = builder.take_program();
  MILLRACE_TRY(program.prepare(team_.size()));
  return program;
}

size_t Network::weight_bytes_of_a_row() const {
  if (config_.n_experts == 0) return weight_bytes();
  const auto n_experts = static_cast<size_t>(config_.n_experts);
  const size_t unused = n_experts - static_cast<size_t>(config_.n_experts_used);
  return weight_bytes() - weights_.expert_bytes() / n_experts * unused;
}

Status Network::run(int64_t n_rows, int64_t n_outputs) {
  MILLRACE_CHECK(n_rows <= step_.limits().max_rows && n_outputs <= step_.limits().max_outputs,
                 "a step of {} rows and {} outputs", n_rows, n_outputs);
  auto found = std::find_if(programs_.begin(), programs_.end(), [&](const Built& built) {
    return built.n_rows == n_rows && built.n_outputs == n_outputs;
  });
  if (found == programs_.end()) {
    MILLRACE_ASSIGN(Program program, build(n_rows, n_outputs));
    programs_.push_front({n_rows, n_outputs, std::move(program)});
    if (programs_.size() > kMaxPrograms) programs_.pop_back();
  } else {
    programs_.splice(programs_.begin(), programs_, found);
  }
  return programs_.front().program.run(team_);
}

}  // namespace millrace
