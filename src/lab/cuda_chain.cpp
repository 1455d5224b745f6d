#include "lab/cuda_chain.h"

#include <algorithm>
#include <array>

#include "base/philox.h"
#include "base/small_float.h"
#include "exec/program.h"
#include "kernels/matmul/op.h"
#include "lab/device_window.h"
#include "lab/poison.h"
#include "lab/target.h"

namespace millrace::lab {
namespace {

constexpr int kLayers = 28;
constexpr size_t kRoom = 8192;  // elements between two activations, more than any of them has

struct Shape {
  long long n, k;
};
// QKV, attention output, gate and up, down. A product reads the first k of what the last one wrote.
constexpr std::array<Shape, 4> kProducts = {
    {{4096, 1024}, {1024, 2048}, {6144, 1024}, {1024, 3072}}};

size_t layer_elems() {
  size_t elems = 0;
  for (const Shape& s : kProducts) elems += static_cast<size_t>(s.n * s.k);
  return elems;
}

class Chain {
 public:
  Status prepare(const Machine& machine) {
    MILLRACE_ASSIGN(window_, DeviceWindow::make(machine.gpus.at(0).l2_bytes));
    MILLRACE_TRY(fill_weights());
    MILLRACE_ASSIGN(activations_, DeviceBuffer::make((n_products() + 1) * kRoom * 2));
    MILLRACE_ASSIGN(outputs_, PinnedBuffer::make(activations_.bytes()));
    return choose(machine);
  }

  size_t n_products() const { return kLayers * kProducts.size(); }
  double read_bytes() const { return 2.0 * kLayers * static_cast<double>(layer_elems()); }
  const Variant& variant() const { return *variant_; }
  const Variant& witness() const { return *witness_; }

  // What the witness makes of it: the bits every sample must give.
  Status find_expected() {
    Program program;
    build(*witness_, program);
    MILLRACE_TRY(program.prepare_device());
    MILLRACE_TRY(reset());
    MILLRACE_TRY(program.launch(stream()));
    MILLRACE_TRY(fetch_outputs());
    expected_.assign(outputs_.data(), outputs_.data() + outputs_.bytes());
    build(*variant_, program_);
    MILLRACE_TRY(program_.prepare_device());
    MILLRACE_ASSIGN(graph_, program_.capture(stream(), 0, program_.n_calls()));
    return {};
  }

  Result<DeviceWindow::Timed> sample() {
    MILLRACE_TRY(reset());
    MILLRACE_TRY(window_.flush());
    MILLRACE_ASSIGN(const DeviceWindow::Timed timed,
                    window_.time([&] { return graph_.launch(stream()); }, /*held=*/true));
    MILLRACE_TRY(fetch_outputs());
    if (!std::equal(expected_.begin(), expected_.end(), outputs_.data()))
      return error(Code::wrong_result, "the chain of {} gave different bits from {}",
                   variant_->name, witness_->name);
    return timed;
  }

 private:
  // Packed weights are drawn directly: any bf16 values are some weight's. Layers take the same
  // draws from different places on, so all are distinct.
  Status fill_weights() {
    const size_t elems = layer_elems();
    MILLRACE_ASSIGN(weights_, DeviceBuffer::make(elems * kLayers * 2));
    std::vector<uint16_t> draws(2 * elems);
    Rng rng(1);
    for (size_t i = 0; i < elems; ++i) draws[i] = f32_to_bf16(rng.uniform(-0.054f, 0.054f));
    std::copy_n(draws.begin(), elems, draws.begin() + static_cast<ptrdiff_t>(elems));
    for (size_t layer = 0; layer < kLayers; ++layer)
      MILLRACE_TRY(stream().copy_to_device(weights_.data() + layer * elems * 2,
                                           draws.data() + layer * 65537, elems * 2));
    return stream().sync();
  }

  Status choose(const Machine& machine) {
    const Op* op = op_named("matmul");
    ArgsBox args;
    put_args(args, args_of(0, 0, weights_.data()));
    for (const Variant& v : op->variants()) {
      if (!is_cuda(v.isa) || !accepts(v, args.bytes, machine)) continue;
      if (variant_ == nullptr)
        variant_ = &v;
      else if (witness_ == nullptr && v.numerics == variant_->numerics)
        witness_ = &v;
    }
    if (witness_ == nullptr)
      return error(Code::unavailable, "this device has fewer than two variants of the bf16 matmul");
    return {};
  }

  matmul::Args args_of(size_t product, size_t shape, std::byte* weight) const {
    std::byte* x = activations_.data() + product * kRoom * 2;
    return {weight,      x,           x + kRoom * 2, 1, kProducts[shape].n, kProducts[shape].k,
            DType::bf16, DType::bf16, DType::bf16};
  }

  void build(const Variant& variant, Program& program) const {
    std::byte* weight = weights_.data();
    for (size_t i = 0; i < n_products(); ++i) {
      const size_t shape = i % kProducts.size();
      ArgsBox args;
      put_args(args, args_of(i, shape, weight));
      program.add(matmul::kOp, variant, args);
      weight += 2 * kProducts[shape].n * kProducts[shape].k;
    }
  }

  Status reset() {
    MILLRACE_TRY(
        stream().fill(activations_.data(), static_cast<int>(kPoison), activations_.bytes()));
    std::vector<uint16_t> x(kRoom);
    Rng rng(2);
    for (auto& value : x) value = f32_to_bf16(rng.normal());
    MILLRACE_TRY(stream().copy_to_device(activations_.data(), x.data(), 2 * x.size()));
    return stream().sync();
  }

  Status fetch_outputs() {
    MILLRACE_TRY(stream().copy_to_host(outputs_.data(), activations_.data(), outputs_.bytes()));
    return stream().sync();
  }

  const Stream& stream() const { return window_.stream(); }

  DeviceWindow window_;
  DeviceBuffer weights_, activations_;
  PinnedBuffer outputs_;
  const Variant *variant_ = nullptr, *witness_ = nullptr;
  Program program_;
  Graph graph_;
  std::vector<std::byte> expected_;
};

}  // namespace

Result<ChainRun> measure_chain(const Machine& machine, int n_samples) {
  Chain chain;
  MILLRACE_TRY(chain.prepare(machine));
  MILLRACE_TRY(chain.find_expected());
  Series series{&chain.variant(), "cold graph", {}}, twin = series;
  for (int i = 0; i < 2 * n_samples; ++i) {
    MILLRACE_ASSIGN(const DeviceWindow::Timed timed, chain.sample());
    (i % 2 == 0 ? series : twin).us.push_back(timed.us);
    if (i % 2 == 0) series.sm_mhz.push_back(timed.sm_mhz);
  }
  ChainRun result{.run = {}, .n_products = chain.n_products(), .witness = chain.witness().name};
  result.run.op = op_named("matmul");
  result.run.problem.name = "qwen3_0.6b_chain";
  result.run.problem.floor = {.read_bytes = chain.read_bytes(),
                              .bf16_macs = chain.read_bytes() / 2};
  result.run.key = fmt::format("rows=1 chain={}", result.n_products);
  result.run.series.push_back(std::move(series));
  result.run.twins.push_back(std::move(twin));
  result.run.mount = {.n_entries = 1, .cold_bytes = chain.read_bytes(), .checked = {}};
  return result;
}

}  // namespace millrace::lab
