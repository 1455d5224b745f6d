#include "model/step_builder.h"

#include <algorithm>

#include "kernels/add/op.h"
#include "kernels/attention/op.h"
#include "kernels/embedding/op.h"
#include "kernels/expert_matmul/op.h"
#include "kernels/expert_sum/op.h"
#include "kernels/gelu_mul/op.h"
#include "kernels/kv_store/op.h"
#include "kernels/matmul/op.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/rope/op.h"
#include "kernels/silu_mul/op.h"
#include "kernels/softmax/op.h"
#include "kernels/topk/op.h"

namespace millrace {

int StepBuilder::new_value(const Value& value) {
  spec_.values.push_back(value);
  return static_cast<int>(spec_.values.size()) - 1;
}

int StepBuilder::weight(WeightRef ref) {
  const auto found = std::find(spec_.weights.begin(), spec_.weights.end(), ref);
  if (found != spec_.weights.end()) return static_cast<int>(found - spec_.weights.begin());
  spec_.weights.push_back(std::move(ref));
  return static_cast<int>(spec_.weights.size()) - 1;
}

template <class Args>
void StepBuilder::append(const Op& op, const Args& attrs, std::vector<int> in, std::vector<int> out,
                         std::vector<int> weights, int layer) {
  Node node{.op = &op,
            .in = std::move(in),
            .out = std::move(out),
            .weights = std::move(weights),
            .attrs = {},
            .layer = layer};
  put_args(node.attrs, attrs);
  __builtin_clear_padding(reinterpret_cast<Args*>(node.attrs.bytes));  // a model's hash reads it
  spec_.nodes.push_back(std::move(node));
}

int StepBuilder::embed(const std::string& name, float scale) {
  const int x = new_value({.kind = Kind::residual, .width = config_.n_embd});
  const int table = weight({.name = name + ".weight",
                            .form = WeightForm::table,
                            .shape = {config_.n_vocab, config_.n_embd}});
  embedding::Args attrs{};
  attrs.n = config_.n_embd;
  attrs.n_vocab = config_.n_vocab;
  attrs.scale = scale;
  append(embedding::kOp, attrs, {kTokens}, {x}, {table});
  return x;
}

int StepBuilder::norm(int x, const std::string& name, Kind kind) {
  const int64_t width = value(x).width;
  const int y = new_value({.kind = kind, .count = value(x).count, .width = width});
  const int w = weight({.name = name + ".weight",
                        .form = WeightForm::vector,
                        .shape = {width},
                        .plus = config_.norm_plus});
  rmsnorm::Args attrs{};
  attrs.n = width;
  attrs.eps = config_.rms_eps;
  append(rmsnorm::kOp, attrs, {x}, {y}, {w});
  return y;
}

int StepBuilder::norm_heads(int x, const std::string& name) {
  const int y = new_value(value(x));
  const int w = weight({.name = name + ".weight",
                        .form = WeightForm::vector,
                        .shape = {config_.head_dim},
                        .plus = config_.norm_plus});
  rmsnorm::Args attrs{};
  attrs.n = config_.head_dim;
  attrs.eps = config_.rms_eps;
  append(rmsnorm::kOp, attrs, {x}, {y}, {w});
  return y;
}

int StepBuilder::product(int x, const std::string& name, int64_t n, Kind kind) {
  const int y = new_value({.kind = kind, .count = value(x).count, .width = n});
  const int w = weight({.name = name + ".weight", .shape = {n, value(x).width}});
  matmul::Args attrs{};
  attrs.n = n;
  attrs.k = value(x).width;
  append(matmul::kOp, attrs, {x}, {y}, {w});
  return y;
}

int StepBuilder::add_bias(int x, const std::string& name) {
  const int y = new_value(value(x));
  const int w = weight({.name = name, .form = WeightForm::vector, .shape = {value(x).width}});
  add::Args attrs{};
  attrs.n = value(x).width;
  append(add::kOp, attrs, {x}, {y}, {w});
  return y;
}

int StepBuilder::linear(int x, const std::string& name, int64_t n, Kind kind, Bias bias) {
  const int y = product(x, name, n, kind);
  if (bias == Bias::if_there && !has(name + ".bias")) return y;
  return add_bias(y, name + ".bias");
}

int StepBuilder::rotate(int x, int64_t n_heads, const RopeParameters& rope,
                        const std::string& factors) {
  const int y = new_value(value(x));
  const int w = weight({.name = factors,
                        .form = WeightForm::turns,

                        .shape = {rope.rot_dim / 2},
                        .plus = 0,
                        .rope = rope});
  rope::Args attrs{};
  attrs.n_heads = n_heads;
  attrs.head_dim = config_.head_dim;
  attrs.rot_dim = rope.rot_dim;
  attrs.magnitude = rope::magnitude_of(rope.scaling);
  attrs.order = config_.rope_order;
  append(rope::kOp, attrs, {x, kPositions}, {y}, {w});
  return y;
}

// Keys and values by themselves: each is then stored by the lane that made it.
void StepBuilder::store(int layer, int k, int v) {
  kv_store::Args attrs{};
  attrs.n_kv_heads = config_.n_kv_heads;
  attrs.head_dim = config_.head_dim;
  attrs.what = kv_store::Stored::keys;
  append(kv_store::kOp, attrs, {k}, {}, {}, layer);
  attrs.what = kv_store::Stored::values;
  append(kv_store::kOp, attrs, {v}, {}, {}, layer);
}

int StepBuilder::attend(int layer, int q, int64_t window, float scale) {
  const int y = new_value(value(q));
  attention::Args attrs{};
  attrs.n_heads = config_.n_heads;
  attrs.n_kv_heads = config_.n_kv_heads;
  attrs.head_dim = config_.head_dim;
  attrs.window = window;
  attrs.scale = scale;
  append(attention::kOp, attrs, {q, kPositions, kSequences}, {y}, {}, layer);
  return y;
}

template <class Args>
int StepBuilder::gated(const Op& op, int gate, int up) {
  const int y = new_value(value(gate));
  Args attrs{};
  attrs.n = value(gate).width;
  append(op, attrs, {gate, up}, {y});
  return y;
}

int StepBuilder::silu_mul(int gate, int up) {
  return gated<silu_mul::Args>(silu_mul::kOp, gate, up);
}

int StepBuilder::gelu_mul(int gate, int up) {
  return gated<gelu_mul::Args>(gelu_mul::kOp, gate, up);
}

int StepBuilder::add(int x, int y) {
  const int sum = new_value(value(x));
  add::Args attrs{};
  attrs.n = value(x).width;
  append(add::kOp, attrs, {x, y}, {sum});
  return sum;
}

int StepBuilder::expert_linear(int x, int experts, const std::string& stem, int64_t n) {
  const int y = new_value({.width = n, .n_each = config_.n_experts_used});
  const int w = weight({.name = stem + ".weight",
                        .form = WeightForm::experts,
                        .shape = {config_.n_experts, n, value(x).width}});
  expert_matmul::Args attrs{};
  attrs.n_used = config_.n_experts_used;
  attrs.n_experts = config_.n_experts;
  attrs.n = n;
  attrs.k = value(x).width;
  append(expert_matmul::kOp, attrs, {x, experts}, {y}, {w});
  return y;
}

int StepBuilder::experts(int x, const std::string& block) {
  const int scores = product(x, block + "ffn_gate_inp", config_.n_experts, Kind::activation);
  const int shares = new_value(value(scores));
  softmax::Args soften{};
  soften.n = config_.n_experts;
  soften.scale = 1;
  append(softmax::kOp, soften, {scores}, {shares});
  const int weights = new_value({.width = config_.n_experts_used});
  const int chosen = new_value({.kind = Kind::index, .width = config_.n_experts_used});
  topk::Args best{};
  best.n = config_.n_experts;
  best.k = config_.n_experts_used;
  append(topk::kOp, best, {shares}, {weights, chosen});
  const int gate = expert_linear(x, chosen, block + "ffn_gate_exps", config_.n_ff);
  const int up = expert_linear(x, chosen, block + "ffn_up_exps", config_.n_ff);
  const int down =
      expert_linear(silu_mul(gate, up), chosen, block + "ffn_down_exps", config_.n_embd);
  const int y = new_value({.kind = Kind::residual, .width = config_.n_embd});
  expert_sum::Args sum{};
  sum.n_used = config_.n_experts_used;
  sum.n = config_.n_embd;
  sum.normalise = config_.norm_expert_weights;
  append(expert_sum::kOp, sum, {down, weights}, {y});
  return y;
}

void StepBuilder::output(int x, const std::string& norm_weight, const std::string& weight) {
  const int wanted =
      new_value({.kind = Kind::residual, .count = Count::outputs, .width = value(x).width});
  embedding::Args gather{};
  gather.n = value(x).width;
  gather.scale = 1;
  append(embedding::kOp, gather, {x, kWantedRows}, {wanted});
  spec_.logits = linear(norm(wanted, norm_weight), weight, config_.n_vocab, Kind::logits);
}

}  // namespace millrace
