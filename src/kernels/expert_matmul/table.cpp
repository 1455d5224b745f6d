#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/expert_matmul/cases.h"
#include "kernels/expert_matmul/choices.h"
#include "kernels/expert_matmul/floor.h"
#include "kernels/expert_matmul/op.h"
#include "kernels/matmul/op.h"
#include "tensor/format.h"

namespace millrace::expert_matmul {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} used={} experts={} n={} k={} w={} x={}", a.n_rows, a.n_used,
                     a.n_experts, a.n, a.k, name_of(a.w_type), name_of(a.x_type));
}

constexpr long long kMaxChoices = std::numeric_limits<int>::max();

// Matmul's layouts, of the stack.
enum Packing : size_t { kBlocks, kKquants, kFloats, kPlain };
constexpr std::array<std::string_view, 4> kLayoutNames = {"tiles16", "tiles16_k", "tiles16_f",
                                                          "plain"};

// What matmul's variants of that layout take.
template <Packing kPacking>
bool takes(const Args& a) {
  const matmul::Args stack = stack_of(a);
  return std::ranges::any_of(matmul::variants(), [&](const Variant& variant) {
    return variant.layout == kLayoutNames[kPacking] && variant.takes != nullptr &&
           variant.takes(&stack);
  });
}

const Layout* stack_layout(size_t packing) {
  return layout_named(matmul::kOp, kLayoutNames[packing]);
}

matmul::Args stack_at(const void* args) {
  return stack_of(*static_cast<const Args*>(args));
}

template <Packing kPacking>
constexpr Layout make_layout() {
  return {kLayoutNames[kPacking], kOutputs,
          [](const void* args) {
            const matmul::Args stack = stack_at(args);
            return stack_layout(kPacking)->bytes(&stack);
          },
          [](const void* args, const void* plain, void* packed) {
            const matmul::Args stack = stack_at(args);
            stack_layout(kPacking)->pack(&stack, plain, packed);
          },
          [](const void* args, const void* packed, void* plain) {
            const matmul::Args stack = stack_at(args);
            stack_layout(kPacking)->unpack(&stack, packed, plain);
          }};
}

constexpr std::array kLayouts = {make_layout<kBlocks>(), make_layout<kKquants>(),
                                 make_layout<kFloats>()};

std::span<const Layout> layouts() {
  return kLayouts;
}

// The most that any of matmul's wants for so many rows: it grows with them.
size_t workspace_bytes(const Args& a, int n_lanes) {
  if (a.n_rows < 2) return 0;
  // Who shares the columns out may give one lane all of them.
  const long long n_tiles = a.n / kOutputs;
  const matmul::Args product = tiles_of(a, std::min(a.n_rows * a.n_used, kMaxRows), n_tiles);
  size_t bytes = 0;
  for (const Variant& variant : matmul::variants())
    if (variant.workspace_bytes != nullptr && variant.takes(&product))
      bytes = std::max(bytes, variant.workspace_bytes(&product, 1));
  const size_t lane_bytes = static_cast<size_t>(LaneSpace::of(a, n_tiles).product) + bytes;
  return (lane_bytes + 63) / 64 * 64 * static_cast<size_t>(n_lanes);
}

template <Matmul kMatmul, Packing kPacking>
Status run(const Args& a, Exec& exec) {
  return LaneProducts(a, exec, stack_layout(kPacking), kMatmul).run();
}

// Every choice by itself, over the file's rows.
template <Matmul kMatmul>
Status run_plain(const Args& a, Exec& exec) {
  for (long long choice = 0; choice < a.n_rows * a.n_used; ++choice)
    MILLRACE_TRY(kMatmul(product_of(a, choice), exec));
  return {};
}

template <Matmul kMatmul, Packing kPacking>
constexpr Variant make_variant(std::string_view name, Isa isa, std::string_view numerics) {
  return {.name = name,
          .isa = isa,
          .numerics = numerics,
          .layout = kLayoutNames[kPacking],
          .takes = erase_takes<Args, takes<kPacking>>,
          .workspace_bytes = erase_workspace<Args, workspace_bytes>,
          .run = erase_run<Args, run<kMatmul, kPacking>>};
}

constexpr std::array kVariants = {
    make_variant<matmul::avx512_vnni::run, kBlocks>("avx512_vnni", Isa::avx512_vnni,
                                                    matmul::kI8B32),
    make_variant<matmul::avx2::run, kBlocks>("avx2", Isa::avx2, matmul::kI8B32),
    make_variant<matmul::avx512_vnni::run_kquants, kKquants>("avx512_vnni_kquants",
                                                             Isa::avx512_vnni, matmul::kI8B32),
    make_variant<matmul::avx2::run_kquants, kKquants>("avx2_kquants", Isa::avx2, matmul::kI8B32),
    make_variant<matmul::avx512::run_floats, kFloats>("avx512_floats", Isa::avx512, matmul::kF32),
    make_variant<matmul::avx2::run_floats, kFloats>("avx2_floats", Isa::avx2, matmul::kF32),
    make_variant<matmul::scalar::run, kPlain>("scalar", Isa::generic, matmul::kI8B32),
    Variant{.name = "reference",
            .numerics = kReference,
            .run = erase_run<Args, run_plain<matmul::reference::run>>},
};

// What matmul's witnesses take.
bool takes_blocks(const Args& a) {
  return matmul::scalar::takes(stack_of(a));
}
bool takes_floats(const Args& a) {
  return matmul::plain::takes(stack_of(a));
}

constexpr std::array kWitnesses = {
    Variant{.name = "plain_blocks",
            .numerics = matmul::kI8B32,
            .takes = erase_takes<Args, takes_blocks>,
            .run = erase_run<Args, run_plain<matmul::scalar::run>>},
    Variant{.name = "plain_floats",
            .numerics = matmul::kF32,
            .takes = erase_takes<Args, takes_floats>,
            .run = erase_run<Args, run_plain<matmul::plain::run>>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

int64_t grain(const void*) {
  return kOutputs;
}

void bind(const Bound& b, Args& a) {
  a.w = b.weights[0].data;
  a.w_type = b.weights[0].type;
  a.x = b.in[0].data;
  a.x_type = b.in[0].type;
  a.x_per_choice = b.in[0].n_each > 1;
  a.experts = static_cast<const int*>(b.in[1].data);
  a.y = static_cast<float*>(b.out[0].data);
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n_used < 1 || a.n_experts < 1 || a.n < 1 || a.n % kOutputs != 0)
    return error(Code::invalid_argument,
                 "expert_matmul: {} rows of {} choices among {} experts of {} outputs (a multiple "
                 "of 16)",
                 a.n_rows, a.n_used, a.n_experts, a.n);
  if (a.n_used > kMaxChoices || a.n_rows > kMaxChoices / a.n_used)
    return error(Code::invalid_argument, "expert_matmul: {} rows of {} choices are more than {}",
                 a.n_rows, a.n_used, kMaxChoices);
  return matmul::validate(stack_of(a));
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "expert_matmul",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .layouts = layouts,
                .splits = {.by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .input_type = matmul::input_type};

}  // namespace millrace::expert_matmul
