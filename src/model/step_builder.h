// What an architecture's file is written in: each call appends one op to the StepSpec and returns
// the value it makes. Weights are named as in the file, without ".weight".
#pragma once

#include <functional>
#include <string>

#include "exec/step.h"
#include "model/config.h"

namespace millrace {

// Whether the model has a tensor of this name: what is optional in a file is asked for.
using HasTensor = std::function<bool(const std::string& name)>;

class StepBuilder {
 public:
  StepBuilder(const Config& config, HasTensor has) : config_(config), has_(std::move(has)) {}

  const Config& config() const { return config_; }
  bool has(const std::string& name) const { return has_(name); }
  StepSpec take() { return std::move(spec_); }

  // The rows of the step's tokens, each times `scale`.
  int embed(const std::string& name, float scale = 1);
  // Of the whole row.
  int norm(int x, const std::string& weight, Kind kind = Kind::activation);
  // Of every head by itself.
  int norm_heads(int x, const std::string& weight);
  // x times a weight of n outputs, plus its bias where the model has one or must.
  enum class Bias : unsigned char { if_there, required };
  int linear(int x, const std::string& weight, int64_t n, Kind kind = Kind::activation,
             Bias bias = Bias::if_there);
  int rotate(int x, int64_t n_heads, const RopeParameters& rope, const std::string& factors);
  void store(int layer, int k, int v);
  // window: 0 for none.
  int attend(int layer, int q, int64_t window, float scale);
  int silu_mul(int gate, int up);
  int gelu_mul(int gate, int up);
  int add(int x, int y);
  // The rows' experts, chosen by a router among config().n_experts: each is a SwiGLU part.
  int experts(int x, const std::string& block);
  // The wanted rows' logits, from the last layer's rows.
  void output(int x, const std::string& norm_weight, const std::string& weight);

 private:
  const Value& value(int id) const { return spec_.values[static_cast<size_t>(id)]; }
  int new_value(const Value& value);
  int weight(WeightRef ref);
  template <class Args>
  void append(const Op& op, const Args& attrs, std::vector<int> in, std::vector<int> out,
              std::vector<int> weights = {}, int layer = -1);
  int product(int x, const std::string& weight, int64_t n, Kind kind);
  int add_bias(int x, const std::string& name);
  template <class Args>
  int gated(const Op& op, int gate, int up);
  int expert_linear(int x, int experts, const std::string& stem, int64_t n);

  const Config& config_;
  const HasTensor has_;
  StepSpec spec_;
};

}  // namespace millrace
