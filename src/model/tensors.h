// Which of a file's tensors a step reads. What is in the file and not in the step would change the
// result without a word, so it is refused by name; a few that text never touches are let be.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "exec/step.h"
#include "files/model_file.h"
#include "model/config.h"

namespace millrace {

struct UnusedTensors {
  std::vector<std::string> ignored;  // vision towers, blocks for several tokens at once, ...
  std::vector<std::string> unknown;
};

UnusedTensors unused_tensors(const ModelFile& file, const StepSpec& spec);

// Fails where the file lacks a tensor of the step, has it in another shape, or has one that the
// step does not read and that may change the result.
Status check_tensors(const ModelFile& file, const StepSpec& spec);

// What a file's model is and computes, or why it does not run here: asked before anything is loaded
// or promised.
struct CheckedModel {
  Config config;
  StepSpec spec;
};
Result<CheckedModel> check_model(const ModelFile& file);

}  // namespace millrace
