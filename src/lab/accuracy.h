// Accuracy as a measurement: what ways to run a model (int8 or bf16 activations, a KV type) cost
// against f32 activations and f32 KV of the same weights, over texts. All engines compute the same
// tokens side by side, some rows at a time, so that memory does not grow with the text.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "lab/metric.h"

namespace millrace::lab {

// Texts that are part of the program: made by cmake/SampleTexts.cmake from tests/data.
struct SampleText {
  std::string_view name, text;
};
std::span<const SampleText> sample_texts();

// Rows of logits at once: what the engines must be able to give (EngineOptions::max_outputs).
inline constexpr int64_t kAccuracyRows = 64;

struct AccuracyPath {
  std::string activations, kv;  // their types
  Engine* engine = nullptr;

  std::string name() const;  // "int8 activations, f16 KV"
};

// Of one path on one text.
struct Accuracy {
  std::string text;
  std::string activations, kv;
  int64_t n_tokens = 0;  // whose next token was compared
  double mean_kl = 0;    // of the reference's distribution from the path's, in nats
  double same_top = 0;   // share of positions with the same most likely token
  double perplexity = 0, reference_perplexity = 0;
};

struct AccuracyText {
  std::string name;
  std::vector<int32_t> tokens;
};

struct AccuracyOptions {
  int64_t window = 512;  // tokens; each window starts with an empty context
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share, std::string_view text)> progress = {};
};

// One row per path for each text, in that order. Every text has two tokens at least.
Result<std::vector<Accuracy>> measure_accuracy(Engine& reference,
                                               std::span<const AccuracyPath> paths,
                                               std::span<const AccuracyText> texts,
                                               const AccuracyOptions& options);

// What the store keeps of it; `subject` has the model's name, device and lanes.
std::vector<Metric> metrics_of(const std::vector<Accuracy>& rows, const Subject& subject);

// Two distributions after the same token, from their logits.
struct Divergence {
  double kl = 0;
  bool same_top = false;
};
Divergence divergence_of(std::span<const float> reference, std::span<const float> path);

}  // namespace millrace::lab
