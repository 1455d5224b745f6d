#include "lab/cuda_chain.h"

#include <array>

#include "base/philox.h"
#include "base/small_float.h"
#include "exec/device_program.h"
#include "kernels/matmul/args.h"
#include "lab/bytes.h"
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
    MILLRACE_ASSIGN(stream_, Stream::make());
    MILLRACE_ASSIGN(start_, Event::make());
    MILLRACE_ASSIGN(stop_, Event::make());
    MILLRACE_ASSIGN(flusher_, DeviceBuffer::make(2 * machine.gpus.at(0).l2_bytes));
    MILLRACE_TRY(fill_weights());
    MILLRACE_ASSIGN(activations_, DeviceBuffer::make((n_products() + 1) * kRoom * 2));
    return choose(machine);
  }

  size_t n_products() const { return kLayers * kProducts.size(); }
  double read_bytes() const { return 2.0 * kLayers * static_cast<double>(layer_elems()); }
  std::string_view variant() const { return variant_->name; }
  std::string_view witness() const { return witness_->name; }

  // What the witness makes of it: the bits every sample must give.
  Status find_expected() {
    DeviceProgram program;
    build(*witness_, program);
    MILLRACE_TRY(program.prepare());
    MILLRACE_TRY(reset());
    MILLRACE_TRY(program.launch(stream_));
    MILLRACE_ASSIGN(expected_, outputs());
    build(*variant_, program_);
    MILLRACE_TRY(program_.prepare());
    MILLRACE_ASSIGN(graph_, program_.capture(stream_, 0, program_.n_calls()));
    return {};
  }

  Result<double> sample_us() {
    MILLRACE_TRY(reset());
    MILLRACE_TRY(flush_l2(stream_, flusher_));
    MILLRACE_TRY(start_.record(stream_));
    MILLRACE_TRY(graph_.launch(stream_));
    MILLRACE_TRY(stop_.record(stream_));
    MILLRACE_ASSIGN(const auto got, outputs());
    if (got != expected_)
      return error(Code::wrong_result, "the chain of {} gave other bits than {}", variant_->name,
                   witness_->name);
    return stop_.us_since(start_);
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
      MILLRACE_TRY(stream_.copy_to_device(weights_.data() + layer * elems * 2,
                                          draws.data() + layer * 65537, elems * 2));
    return stream_.sync();
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
      return error(Code::unavailable, "this device has no two variants of the bf16 product");
    return {};
  }

  matmul::Args args_of(size_t product, size_t shape, std::byte* weight) const {
    std::byte* x = activations_.data() + product * kRoom * 2;
    return {weight,      x,           x + kRoom * 2, 1, kProducts[shape].n, kProducts[shape].k,
            DType::bf16, DType::bf16, DType::bf16};
  }

  void build(const Variant& variant, DeviceProgram& program) const {
    std::byte* weight = weights_.data();
    for (size_t i = 0; i < n_products(); ++i) {
      const size_t shape = i % kProducts.size();
      ArgsBox args;
      put_args(args, args_of(i, shape, weight));
      program.add(variant, args);
      weight += 2 * kProducts[shape].n * kProducts[shape].k;
    }
  }

  Status reset() {
    MILLRACE_TRY(
        stream_.fill(activations_.data(), static_cast<int>(kPoison), activations_.bytes()));
    std::vector<uint16_t> x(kRoom);
    Rng rng(2);
    for (auto& value : x) value = f32_to_bf16(rng.normal());
    MILLRACE_TRY(stream_.copy_to_device(activations_.data(), x.data(), 2 * x.size()));
    return stream_.sync();
  }

  Result<std::vector<std::byte>> outputs() {
    std::vector<std::byte> bytes(activations_.bytes());
    MILLRACE_TRY(stream_.copy_to_host(bytes.data(), activations_.data(), bytes.size()));
    MILLRACE_TRY(stream_.sync());
    return bytes;
  }

  Stream stream_;
  Event start_, stop_;
  DeviceBuffer flusher_, weights_, activations_;
  const Variant *variant_ = nullptr, *witness_ = nullptr;
  DeviceProgram program_;
  Graph graph_;
  std::vector<std::byte> expected_;
};

}  // namespace

Result<ChainResult> measure_chain(const Machine& machine, int n_samples) {
  MILLRACE_ASSIGN(const auto target, make_target("cuda", machine, 0));
  MILLRACE_ASSIGN(const Roof before, target->measure_roof(Effort::full));
  Chain chain;
  MILLRACE_TRY(chain.prepare(machine));
  MILLRACE_TRY(chain.find_expected());
  ChainResult result{.read_bytes = chain.read_bytes(),
                     .n_products = chain.n_products(),
                     .variant = chain.variant(),
                     .witness = chain.witness()};
  for (int i = 0; i < n_samples; ++i) {
    MILLRACE_ASSIGN(const double us, chain.sample_us());
    result.us.push_back(us);
  }
  MILLRACE_ASSIGN(const Roof after, target->measure_roof(Effort::full));
  result.read_gbps = max_of(before, after).read_gbps;
  return result;
}

}  // namespace millrace::lab
