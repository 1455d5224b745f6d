// The first pass of lower.h: types, conversions, classes and layouts.
#include <algorithm>
#include <map>

#include "exec/lower.h"
#include "kernels/quantize/op.h"
#include "tensor/format.h"

namespace millrace {
namespace {

constexpr size_t kMaxPorts = 8;  // of one call

// Every number of rows at which some variant begins or ends to take a call, and the most.
std::vector<int64_t> probed_rows(int64_t most) {
  std::vector<int64_t> out;
  for (int64_t n = 1; n < most; n = n < 16 ? n + 1 : n * 2) out.push_back(n);
  out.push_back(most);
  return out;
}

class Chooser {
 public:
  Chooser(const StepSpec& spec, const LowerFor& how) : spec_(spec), how_(how) {
    for (const DType type : how.weight_types) weights_.push_back({nullptr, type});
    shape_ = {.weights = weights_, .kv = how.kv};
  }

  Result<std::vector<LoweredCall>> run() {
    MILLRACE_TRY(find_conversions());
    for (const Node& node : spec_.nodes) {
      if (on_cuda() && is_absorbed(node)) continue;
      calls_.push_back(call_of(node));
      for (const int value : node.out)
        if (is_converted(value)) calls_.push_back(conversion_of(value));
    }
    for (LoweredCall& call : calls_) MILLRACE_TRY(pick_class(call));
    return std::move(calls_);
  }

 private:
  bool on_cuda() const { return how_.from.device == DeviceKind::cuda; }
  DType kept_as(int value) const {
    return type_of(spec_.values[static_cast<size_t>(value)].kind, how_.from.device);
  }
  // What a node reads input i as.
  DType read_as(const Node& node, size_t i) const {
    if (i > 0 || node.op->input_type == nullptr) return kept_as(node.in[i]);
    return node.op->input_type(how_.weight_types[static_cast<size_t>(node.weights[0])], on_cuda());
  }
  bool is_converted(int value) const { return converted_[static_cast<size_t>(value)]; }

  Status find_conversions() {
    converted_.assign(spec_.values.size(), false);
    for (const Node& node : spec_.nodes)
      for (size_t i = 0; i < node.in.size(); ++i) {
        if (read_as(node, i) == kept_as(node.in[i])) continue;
        if (read_as(node, i) != DType::q8_row || kept_as(node.in[i]) != DType::f32)
          return error(Code::unsupported, "{} reads {} as {}, which no op converts", node.op->name,
                       name_of(kept_as(node.in[i])), name_of(read_as(node, i)));
        converted_[static_cast<size_t>(node.in[i])] = true;
      }
    return {};
  }

  // Whether the call before does this node too.
  bool is_absorbed(const Node& node) {
    if (calls_.empty() || calls_.back().op != node.op || node.op->absorb == nullptr) return false;
    LoweredCall& before = calls_.back();
    if (before.layer != node.layer || !node.op->absorb(before.attrs.bytes, node.attrs.bytes))
      return false;
    const LoweredCall call = call_of(node);
    before.in.insert(before.in.end(), call.in.begin(), call.in.end());
    before.out.insert(before.out.end(), call.out.begin(), call.out.end());
    before.weights.insert(before.weights.end(), call.weights.begin(), call.weights.end());
    return true;
  }

  LoweredCall call_of(const Node& node) const {
    LoweredCall call{.op = node.op,
                     .weights = node.weights,
                     .attrs = node.attrs,
                     .layer = node.layer,
                     .count = spec_.count_of(node)};
    for (size_t i = 0; i < node.in.size(); ++i) call.in.push_back({node.in[i], read_as(node, i)});
    for (const int value : node.out) call.out.push_back({value, kept_as(value)});
    return call;
  }

  // Once for all that read it, next to what wrote it.
  LoweredCall conversion_of(int value) const {
    LoweredCall call{.op = &quantize::kOp,
                     .in = {{value, kept_as(value)}},
                     .out = {{value, DType::q8_row}},
                     .count = spec_.values[static_cast<size_t>(value)].count};
    put_args(call.attrs, quantize::Args{});
    return call;
  }

  Status pick_class(LoweredCall& call) {
    ArgsBox args;
    bind_args(spec_, call, {1, 1}, shape_, args);
    MILLRACE_TRY(call.op->validate(args.bytes));
    MILLRACE_ASSIGN(const Picked picked, pick(*call.op, args.bytes, how_.from));
    call.numerics = picked.variant->numerics;
    call.layout = picked.variant->layout;
    call.is_slow = is_slow(*picked.variant);
    const int64_t most = call.count == Count::rows ? how_.max_rows : how_.max_outputs;
    for (const int64_t n : probed_rows(most)) {
      bind_args(spec_, call, {n, n}, shape_, args);
      const Variant* variant = variant_for(call, args, how_.from);
      if (variant == nullptr)
        return error(Code::unsupported,
                     "no variant of {} in class {} and layout {} takes {} on this machine",
                     call.op->name, call.numerics, call.layout, call.op->key(args.bytes));
      call.is_slow |= is_slow(*variant);
    }
    return {};
  }

  const StepSpec& spec_;
  const LowerFor& how_;
  std::vector<BoundWeight> weights_;
  BindTo shape_;
  std::vector<bool> converted_;
  std::vector<LoweredCall> calls_;
};

}  // namespace

DType type_of(Kind kind, DeviceKind device) {
  if (kind == Kind::index) return DType::i32;
  return kind == Kind::activation && device == DeviceKind::cuda ? DType::bf16 : DType::f32;
}

void bind_args(const StepSpec& spec, const LoweredCall& call, CallSizes sizes, const BindTo& to,
               ArgsBox& args) {
  BoundValue in[kMaxPorts], out[kMaxPorts];
  BoundWeight weights[kMaxPorts];
  MILLRACE_CHECK(std::max({call.in.size(), call.out.size(), call.weights.size()}) <= kMaxPorts,
                 "{} has more than {} inputs, outputs or weights", call.op->name, kMaxPorts);
  const auto data_of = [&](const Operand& o) -> void* {
    if (o.value < kStepInputs) return to.inputs ? const_cast<int*>(to.inputs[o.value]) : nullptr;
    return to.arena ? to.arena + to.buffers[static_cast<size_t>(o.buffer)].at : nullptr;
  };
  const auto bound = [&](const Operand& o) {
    const Value& value = spec.values[static_cast<size_t>(o.value)];
    return BoundValue{data_of(o), o.type, sizes.of(value.count), value.n_each, value.width};
  };
  std::transform(call.in.begin(), call.in.end(), in, bound);
  std::transform(call.out.begin(), call.out.end(), out, bound);
  for (size_t i = 0; i < call.weights.size(); ++i)
    weights[i] = to.weights[static_cast<size_t>(call.weights[i])];
  args = call.attrs;
  call.op->bind(
      {{in, call.in.size()}, {out, call.out.size()}, {weights, call.weights.size()}, to.kv},
      args.bytes);
}

Result<std::vector<LoweredCall>> choose(const StepSpec& spec, const LowerFor& how) {
  return Chooser(spec, how).run();
}

const Variant* variant_for(const LoweredCall& call, const ArgsBox& args, const PickFrom& from) {
  const auto fits = [&](const Variant& variant) {
    return variant.numerics == call.numerics && variant.layout == call.layout &&
           is_cuda(variant.isa) == (from.device == DeviceKind::cuda) &&
           accepts(variant, args.bytes, from.machine);
  };
  const Variant* wanted = from.force.variant_for(*call.op);
  if (wanted == nullptr && from.profile.size() > 0)
    wanted =
        variant_named(*call.op, from.profile.variant_for(call.op->name, call.op->key(args.bytes)));
  if (wanted != nullptr && fits(*wanted)) return wanted;
  for (const Variant& variant : call.op->variants())
    if (fits(variant)) return &variant;
  return nullptr;
}

std::vector<std::string_view> Lowered::classes() const {
  std::vector<std::string_view> out;
  for (const LoweredCall& call : calls) out.push_back(call.numerics);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace millrace
