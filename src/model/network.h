// A model loaded and ready to step: its weights packed, its activations and KV pages allocated, and
// a Program per shape of step, built when first needed. It belongs to the thread of its team.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "base/status.h"
#include "exec/program.h"
#include "files/model_file.h"
#include "kernels/pick.h"
#include "machine/team.h"
#include "model/builder.h"
#include "model/step.h"
#include "model/weights.h"

namespace millrace {

class Network {
 public:
  // `team` and what `from` refers to must outlive it.
  static Result<std::unique_ptr<Network>> load(ModelFile file, Team& team, const PickFrom& from,
                                               const StepLimits& limits,
                                               const LoadProgress& progress = {});

  const Config& config() const { return config_; }
  const ModelFile& file() const { return file_; }
  const Step& step() const { return step_; }
  size_t weight_bytes() const { return weights_.packed_bytes(); }
  // What a step of one row reads of them: of the experts those that it uses.
  size_t weight_bytes_of_a_row() const;

  // Runs the first n_rows rows of step(); the logits of row outputs()[i] are then row i of
  // logits(), for the first n_outputs.
  Status run(int64_t n_rows, int64_t n_outputs);

 private:
  Network(ModelFile file, const Config& config, Step step, Team& team, const PickFrom& from,
          const LoadProgress& progress);
  Result<Program> build(int64_t n_rows, int64_t n_outputs);
  Status make_frequencies();

  struct Built {
    int64_t n_rows, n_outputs;
    Program program;
  };

  const ModelFile file_;
  const Config config_;
  Step step_;
  Team& team_;
  const PickFrom from_;
  Weights weights_;
  Scratch scratch_;
  rope::Frequencies frequencies_;
  std::list<Built> programs_;  // most recently used first
};

}  // namespace millrace
