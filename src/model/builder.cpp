#include "model/builder.h"

#include <cmath>

#include "kernels/add/op.h"
#include "kernels/attention/op.h"
#include "kernels/embedding/op.h"
#include "kernels/expert_matmul/op.h"
#include "kernels/expert_sum/op.h"
#include "kernels/kv_store/op.h"
#include "kernels/matmul/op.h"
#include "kernels/quantize/op.h"
#include "kernels/quantize/row.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/rope/op.h"
#include "kernels/silu_mul/op.h"
#include "kernels/softmax/op.h"
#include "kernels/topk/op.h"

namespace millrace {

Result<std::byte*> Scratch::rows(const std::string& name, size_t row_bytes) {
  auto found = buffers_.find(name);
  if (found == buffers_.end()) {
    MILLRACE_ASSIGN(HostBuffer memory,
                    HostBuffer::make(static_cast<size_t>(max_rows_) * row_bytes, Pages::small));
    found = buffers_.emplace(name, Buffer{std::move(memory), row_bytes}).first;
  }
  MILLRACE_CHECK(found->second.row_bytes >= row_bytes, "buffer {} has {} bytes a row, not {}", name,
                 found->second.row_bytes, row_bytes);
  return found->second.memory.data();
}

Builder::Builder(const Parts& parts, int64_t n_rows, int64_t n_outputs)
    : parts_(parts), n_rows_(n_rows), n_outputs_(n_outputs) {}

void Builder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void* Builder::buffer(const std::string& name, size_t row_bytes) {
  if (!status_.ok()) return nullptr;
  auto rows = parts_.scratch.rows(name, row_bytes);
  if (rows.ok()) return rows.value();
  fail(rows.status());
  return nullptr;
}

Rows Builder::float_rows(const std::string& name, int64_t width) {
  return {static_cast<float*>(buffer(name, static_cast<size_t>(width) * sizeof(float))), width};
}

const float* Builder::vector(const std::string& name, int64_t n) {
  if (!status_.ok()) return nullptr;
  auto values = parts_.weights.vector(name, n);
  if (values.ok()) return values.value();
  fail(values.status());
  return nullptr;
}

// A weight's layout was chosen when it was packed: among the variants that read it, the picked one
// if it is one of them, else the first.
template <class Args>
void Builder::call(const Op& op, const Args& args, std::string_view layout) {
  if (!status_.ok()) return;
  if (Status status = op.validate(&args); !status.ok()) return fail(std::move(status));
  auto choice = pick(op, &args, parts_.from);
  if (!choice.ok()) return fail(choice.status());
  const Variant* variant = choice.value().variant;
  if (!layout.empty() && variant->layout != layout) {
    variant = nullptr;
    for (const Variant& other : op.variants())
      if (variant == nullptr && other.layout == layout &&
          accepts(other, &args, parts_.from.machine))
        variant = &other;
    if (variant == nullptr)
      return fail(error(Code::unsupported, "no variant of {} reads layout {} for {}", op.name,
                        layout, op.key(&args)));
  }
  ArgsBox box;
  put_args(box, args);
  program_.add(*variant, box, together_ ? Program::Sync::none : Program::Sync::barrier);
}

Rows Builder::embed(const std::string& name) {
  const Config& c = config();
  auto table = parts_.weights.table(name + ".weight", c.n_vocab, c.n_embd);
  if (!table.ok()) fail(table.status());
  Rows x = float_rows("x", c.n_embd);
  if (status_.ok())
    call(embedding::kOp, embedding::Args{.table = table.value().data,
                                         .ids = parts_.step.tokens(),
                                         .y = x.data,
                                         .n_rows = n_rows_,
                                         .n = c.n_embd,
                                         .n_vocab = c.n_vocab,
                                         .scale = 1,
                                         .table_type = table.value().type});
  return x;
}

Rows Builder::norm(const Rows& x, const std::string& weight, const std::string& into) {
  Rows y = float_rows(into, x.width);
  call(rmsnorm::kOp, rmsnorm::Args{.x = x.data,
                                   .weight = vector(weight + ".weight", x.width),
                                   .y = y.data,
                                   .n_rows = n_rows_,
                                   .n = x.width,
                                   .eps = config().rms_eps,
                                   .x_type = DType::f32,
                                   .y_type = DType::f32});
  return y;
}

void Builder::norm_heads(const Rows& x, const std::string& weight) {
  const int64_t head_dim = config().head_dim;
  call(rmsnorm::kOp, rmsnorm::Args{.x = x.data,
                                   .weight = vector(weight + ".weight", head_dim),
                                   .y = x.data,
                                   .n_rows = n_rows_ * (x.width / head_dim),
                                   .n = head_dim,
                                   .eps = config().rms_eps,
                                   .x_type = DType::f32,
                                   .y_type = DType::f32});
}

// Once for all products that read these rows; each of them needs all of it.
void Builder::quantize(Rows& x) {
  if (x.q8 != nullptr) return;
  const bool together = std::exchange(together_, false);
  x.q8 = buffer(fmt::format("q8 of {} x {}", x.n_each, x.width),
                static_cast<size_t>(x.n_each * quantize::row_bytes(x.width)));
  call(quantize::kOp,
       quantize::Args{.x = x.data, .y = x.q8, .n_rows = n_rows_ * x.n_each, .k = x.width});
  together_ = together;
}

void Builder::product(const Linear& weight, Rows& x, float* y) {
  const bool is_q8 = weight.input_type() == DType::q8_row;
  if (is_q8) quantize(x);
  call(matmul::kOp,
       matmul::Args{.w = weight.data,
                    .x = is_q8 ? x.q8 : x.data,
                    .y = y,
                    .n_rows = n_rows_,
                    .n = weight.n,
                    .k = weight.k,
                    .w_type = weight.type,
                    .x_type = weight.input_type(),
                    .y_type = DType::f32},
       weight.layout);
}

Rows Builder::linear(Rows& x, const std::string& weight, int64_t n, const std::string& into) {
  Rows y = float_rows(into, n);
  if (!status_.ok()) return y;
  auto found = parts_.weights.linear(weight + ".weight", n, x.width);
  if (!found.ok()) {
    fail(found.status());
    return y;
  }
  product(found.value(), x, y.data);
  return y;
}

void Builder::need(const std::string& name) {
  if (!parts_.weights.has(name)) fail(error(Code::corrupt, "there is no tensor {}", name));
}

void Builder::add_bias(const Rows& x, const std::string& name) {
  const std::string bias = name + ".bias";
  if (!parts_.weights.has(bias)) return;
  call(add::kOp, add::Args{.a = x.data,
                           .b = vector(bias, x.width),
                           .y = x.data,
                           .n_rows = n_rows_,
                           .n = x.width,
                           .is_bias = true});
}

void Builder::rotate(const Rows& x, int64_t n_heads) {
  const Config& c = config();
  call(rope::kOp, rope::Args{.x = x.data,
                             .positions = parts_.step.positions(),
                             .turns = parts_.frequencies.turns.data(),
                             .y = x.data,
                             .n_rows = n_rows_,
                             .n_heads = n_heads,
                             .head_dim = c.head_dim,
                             .rot_dim = c.rot_dim,
                             .x_stride = x.width,
                             .y_stride = x.width,
                             .magnitude = parts_.frequencies.magnitude,
                             .order = c.rope_order,
                             .type = DType::f32});
}

void Builder::store_kv(int64_t layer, const Rows& k, const Rows& v) {
  const Config& c = config();
  const StepLimits& limits = parts_.step.limits();
  call(kv_store::kOp, kv_store::Args{.k = k.data,
                                     .v = v.data,
                                     .slots = parts_.step.slots(),
                                     .k_pages = parts_.step.k_pages(layer),
                                     .v_pages = parts_.step.v_pages(layer),
                                     .n_rows = n_rows_,
                                     .n_kv_heads = c.n_kv_heads,
                                     .head_dim = c.head_dim,
                                     .x_stride = k.width,
                                     .n_pages = limits.n_pages,
                                     .page_tokens = limits.page_tokens,
                                     .page_stride = c.n_kv_heads * c.head_dim * limits.page_tokens,
                                     .x_type = DType::f32,
                                     .kv_type = limits.kv_type});
}

Rows Builder::attend(int64_t layer, const Rows& q, const std::string& into) {
  const Config& c = config();
  const StepLimits& limits = parts_.step.limits();
  Rows out = float_rows(into, q.width);
  call(attention::kOp,
       attention::Args{.q = q.data,
                       .k_pages = parts_.step.k_pages(layer),
                       .v_pages = parts_.step.v_pages(layer),
                       .tables = parts_.step.tables(),
                       .sequences = parts_.step.sequences(),
                       .positions = parts_.step.positions(),
                       .out = out.data,
                       .n_rows = n_rows_,
                       .n_heads = c.n_heads,
                       .n_kv_heads = c.n_kv_heads,
                       .head_dim = c.head_dim,
                       .q_stride = q.width,
                       .n_pages = limits.n_pages,
                       .page_tokens = limits.page_tokens,
                       .page_stride = c.n_kv_heads * c.head_dim * limits.page_tokens,
                       .n_seqs = limits.max_seqs,
                       .max_pages = limits.max_pages,
                       .window = 0,
                       .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim))),
                       .q_type = DType::f32,
                       .kv_type = limits.kv_type});
  return out;
}

void Builder::silu_mul(const Rows& gate, const Rows& up) {
  call(silu_mul::kOp, silu_mul::Args{.gate = gate.data,
                                     .up = up.data,
                                     .y = gate.data,
                                     .n_rows = n_rows_ * gate.n_each,
                                     .n = gate.width});
}

void Builder::add(const Rows& x, const Rows& y) {
  call(add::kOp, add::Args{.a = x.data,
                           .b = y.data,
                           .y = x.data,
                           .n_rows = n_rows_,
                           .n = x.width,
                           .is_bias = false});
}

Builder::Choices Builder::choose_experts(Rows& h, const std::string& block) {
  const Config& c = config();
  const int64_t used = c.n_experts_used;
  const Rows scores = linear(h, block + "ffn_gate_inp", c.n_experts, "scores");
  const Rows weights = float_rows("expert weights", used);
  auto* experts = static_cast<int*>(buffer("experts", static_cast<size_t>(used) * sizeof(int)));
  call(softmax::kOp,
       softmax::Args{
           .x = scores.data, .y = scores.data, .n_rows = n_rows_, .n = c.n_experts, .scale = 1});
  call(topk::kOp, topk::Args{.x = scores.data,
                             .values = weights.data,
                             .indices = experts,
                             .n_rows = n_rows_,
                             .n = c.n_experts,
                             .k = used});
  return {weights.data, experts};
}

Rows Builder::expert_linear(Rows& x, const Choices& choices, const std::string& stem, int64_t n,
                            const std::string& into) {
  const Config& c = config();
  const bool x_per_choice = x.n_each > 1;
  Rows y = float_rows(into, c.n_experts_used * n);
  y.width = n;
  y.n_each = c.n_experts_used;
  if (!status_.ok()) return y;
  auto found = parts_.weights.experts(stem, c.n_experts, n, x.width);
  if (!found.ok()) {
    fail(found.status());
    return y;
  }
  const Linear& weight = found.value();
  const bool is_q8 = weight.input_type() == DType::q8_row;
  if (is_q8) quantize(x);
  call(expert_matmul::kOp,
       expert_matmul::Args{.w = weight.data,
                           .x = is_q8 ? x.q8 : x.data,
                           .experts = choices.experts,
                           .y = y.data,
                           .n_rows = n_rows_,
                           .n_used = c.n_experts_used,
                           .n_experts = c.n_experts,
                           .n = n,
                           .k = x.width,
                           .w_type = weight.type,
                           .x_type = weight.input_type(),
                           .x_per_choice = x_per_choice},
       weight.layout);
  return y;
}

Rows Builder::experts(Rows& h, const std::string& block, const std::string& into) {
  const Config& c = config();
  const Choices choices = choose_experts(h, block);
  Rows gate = expert_linear(h, choices, block + "ffn_gate_exps", c.n_ff, "gate");
  const Rows up = expert_linear(h, choices, block + "ffn_up_exps", c.n_ff, "up");
  silu_mul(gate, up);
  const Rows down = expert_linear(gate, choices, block + "ffn_down_exps", c.n_embd, "down");
  Rows y = float_rows(into, c.n_embd);
  call(expert_sum::kOp, expert_sum::Args{.x = down.data,
                                         .weights = choices.weights,
                                         .y = y.data,
                                         .n_rows = n_rows_,
                                         .n_used = c.n_experts_used,
                                         .n = c.n_embd,
                                         .normalise = c.norm_expert_weights});
  return y;
}

void Builder::output(const Rows& x, const std::string& norm_weight, const std::string& weight) {
  if (n_outputs_ == 0) return;
  const int64_t n_all = std::exchange(n_rows_, n_outputs_);
  Rows wanted = float_rows("wanted", x.width);
  call(embedding::kOp, embedding::Args{.table = x.data,
                                       .ids = parts_.step.outputs(),
                                       .y = wanted.data,
                                       .n_rows = n_rows_,
                                       .n = x.width,
                                       .n_vocab = n_all,
                                       .scale = 1,
                                       .table_type = DType::f32});
  Rows last = norm(wanted, norm_weight, "last");
  if (!status_.ok()) return;
  auto found = parts_.weights.linear(weight + ".weight", config().n_vocab, x.width);
  if (!found.ok()) return fail(found.status());
  product(found.value(), last, parts_.step.logits());
}

}  // namespace millrace
