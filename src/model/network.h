// A model loaded onto a device and ready to step: its configuration, the step it computes, its
// weights as the step's calls read them, and the StepProgram. The rows of a step and the KV pages
// belong to the engine, which binds them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "exec/device.h"
#include "exec/step_program.h"
#include "files/model_file.h"
#include "model/config.h"
#include "model/weights.h"

namespace millrace {

// What a network is loaded on and with; all must outlive it.
struct NetworkPlace {
  Device& device;
  Team& team;  // whose lanes pack the weights
  const PickFrom& from;
};

struct NetworkLimits {
  int64_t max_rows = 512;
  int64_t max_outputs = 16;
};

class Network {
 public:
  // `kv` and `inputs` of the bindings are bound; the weights are loaded here.
  static Result<std::unique_ptr<Network>> load(ModelFile file, const NetworkPlace& place,
                                               const NetworkLimits& limits, StepBindings bindings,
                                               const LoadProgress& progress = {});

  const Config& config() const { return config_; }
  const ModelFile& file() const { return file_; }
  const StepSpec& spec() const { return spec_; }
  StepProgram& program() { return *program_; }
  const StepProgram& program() const { return *program_; }
  size_t weight_bytes() const { return weights_->bytes(); }
  // What a step of one row reads of them: of a table a row, which is left out, and of the experts
  // those that it uses.
  size_t weight_bytes_of_a_row() const;
  // What a user should know: slow_calls().
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Of the file's metadata that a result depends on, and of all its tensors.
  std::string model_hash() const;

 private:
  Network(ModelFile file, const Config& config);
  Status load_weights(const NetworkPlace& place, const NetworkLimits& limits, StepBindings bindings,
                      const LoadProgress& progress);

  const ModelFile file_;
  const Config config_;
  StepSpec spec_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<StepProgram> program_;
  std::vector<std::string> warnings_;
};

// Every kind of call that has no fast variant, in a sentence: which tensors, which type, what to
// do.
std::vector<std::string> slow_calls(const StepSpec& spec, const Lowered& lowered,
                                    std::span<const DType> weight_types);

}  // namespace millrace
