// bench MODEL: prefill and decode of a whole model, in tokens a second and as a share of what the
// memory allows. No sampling, no text: the steps alone. Measured and verified by lab/model_bench.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_session.h"
#include "cli/recorder.h"

namespace millrace::cli {

inline constexpr int64_t kPromptTokens = 512;

struct BenchModelOptions {
  std::string model;
  int threads = 0;
  std::vector<int64_t> prompts = {};  // none: kPromptTokens, but with --ops no prefill
  int64_t n_decode = 128;
  int64_t n_batch = 0;  // 0: what suits the model
  std::vector<int64_t> contexts = {0};
  int repeats = 6;  // the fewest that give the A/A difference an interval
  std::string device = "cpu";
  bool json = false;
  bool ops = false;   // time the ops of a step instead
  std::string trace;  // write a trace of some steps to this file instead
  Recording recording = {};
};

int bench_model(const BenchModelOptions& options);

}  // namespace millrace::cli
