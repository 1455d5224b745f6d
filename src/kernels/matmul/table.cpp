#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "kernels/matmul/cases.h"
#include "kernels/matmul/floor.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul/pack.h"
#include "kernels/matmul/pack_floats.h"
#include "kernels/matmul/pack_kquants.h"
#include "kernels/matmul/pack_mma.h"
#include "kernels/matmul/tile.cuh"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/matmul/device.h"
#endif

namespace millrace::matmul {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={} k={} w={} x={} y={}", a.n_rows, a.n, a.k, name_of(a.w_type),
                     name_of(a.x_type), name_of(a.y_type));
}

bool types_fit(const Args& a) {
  if (a.y_type != DType::f32 && a.y_type != DType::bf16) return false;
  if (is_real(a.w_type)) return a.x_type == DType::f32 || a.x_type == DType::bf16;
  return is_weight_format(a.w_type) &&
         (a.x_type == format_of(a.w_type).input || a.x_type == DType::bf16);
}

bool takes_kquants(const Args& a) {
  return is_kquant(a.w_type) && a.x_type == DType::q8_row && a.y_type == DType::f32;
}

bool takes_floats(const Args& a) {
  return is_real(a.w_type) && a.x_type == DType::f32 && a.y_type == DType::f32;
}

// Run is void(const Args&, const void* from, void* to), or nullptr where there is no way back. Its
// type is asked: under UBSan g++ 12 takes no comparison of functions as constant.
template <auto Run>
constexpr auto erase_repack() -> void (*)(const void*, const void*, void*) {
  if constexpr (std::is_null_pointer_v<decltype(Run)>)
    return nullptr;
  else
    return [](const void* args, const void* from, void* to) {
      Run(*static_cast<const Args*>(args), from, to);
    };
}

template <size_t (*Bytes)(const Args&), auto Pack, auto Unpack>
constexpr Layout make_layout(std::string_view name, int64_t row_grain) {
  return {name, row_grain, [](const void* args) { return Bytes(*static_cast<const Args*>(args)); },
          erase_repack<Pack>(), erase_repack<Unpack>()};
}

#ifdef MILLRACE_CUDA
// Block formats as bf16 weights, which they were made at load.
Args as_decoded(const Args& a) {
  Args out = a;
  out.w_type = DType::bf16;
  return out;
}
bool takes_decoded(const Args& a) {
  return is_block_format(a.w_type) && takes_sm80_tiles(as_decoded(a));
}
int launch_decoded(const Args& args, void* stream, void* workspace) {
  const Args a = as_decoded(args);
  if (takes_sm80_rows(a)) return launch_sm80_rows(a, stream, workspace);
  if (takes_sm80_batch(a)) return launch_sm80_batch(a, stream, workspace);
  return launch_sm80_tiles(a, stream, workspace);
}
#endif

constexpr std::array kLayouts = {
    make_layout<tiles16::packed_bytes, tiles16::pack, tiles16::unpack>("tiles16",
                                                                       tiles16::kOutputs),
    make_layout<kquant_bytes, pack_kquant, unpack_kquant>("tiles16_k", kTile),
    make_layout<floats_bytes, pack_floats, unpack_floats>("tiles16_f", kFloatTile),
    make_layout<mma16_bytes, pack_mma16, unpack_mma16>("mma16", kTileM),
    make_layout<decoded_mma16_bytes, pack_decoded_mma16, nullptr>("mma16_decoded", kTileM),
};

std::span<const Layout> layouts() {
  return kLayouts;
}

// Fastest first; the first that takes a problem is the default choice.
constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80_rows",
            .isa = Isa::sm80,
            .numerics = kBf16Cuda,
            .layout = "mma16",
            .takes = erase_takes<Args, takes_sm80_rows>,
            .run = erase_launch<Args, launch_sm80_rows>},
    Variant{.name = "sm80_rows_packed",
            .isa = Isa::sm80,
            .numerics = kBf16Cuda,
            .layout = "mma16",
            .takes = erase_takes<Args, takes_sm80_rows_packed>,
            .run = erase_launch<Args, launch_sm80_rows_packed>},
    Variant{.name = "sm80_batch",
            .isa = Isa::sm80,
            .numerics = kBf16Cuda,
            .layout = "mma16",
            .takes = erase_takes<Args, takes_sm80_batch>,
            .run = erase_launch<Args, launch_sm80_batch>},
    Variant{.name = "sm80_tiles",
            .isa = Isa::sm80,
            .numerics = kBf16Cuda,
            .layout = "mma16",
            .takes = erase_takes<Args, takes_sm80_tiles>,
            .run = erase_launch<Args, launch_sm80_tiles>},
    Variant{.name = "sm80_decoded",
            .isa = Isa::sm80,
            .numerics = kBf16Cuda,
            .layout = "mma16_decoded",
            .takes = erase_takes<Args, takes_decoded>,
            .run = erase_launch<Args, launch_decoded>},
#endif
    Variant{.name = "avx512_vnni",
            .isa = Isa::avx512_vnni,
            .numerics = kI8B32,
            .layout = "tiles16",
            .takes = erase_takes<Args, tiles16::takes>,
            .workspace_bytes = erase_workspace<Args, avx512_vnni::workspace_bytes>,
            .run = erase_run<Args, avx512_vnni::run>},
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kI8B32,
            .layout = "tiles16",
            .takes = erase_takes<Args, tiles16::takes>,
            .workspace_bytes = erase_workspace<Args, avx2::workspace_bytes>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "avx512_vnni_kquants",
            .isa = Isa::avx512_vnni,
            .numerics = kI8B32,
            .layout = "tiles16_k",
            .takes = erase_takes<Args, takes_kquants>,
            .workspace_bytes = erase_workspace<Args, avx512_vnni::workspace_bytes_kquants>,
            .run = erase_run<Args, avx512_vnni::run_kquants>},
    Variant{.name = "avx2_kquants",
            .isa = Isa::avx2,
            .numerics = kI8B32,
            .layout = "tiles16_k",
            .takes = erase_takes<Args, takes_kquants>,
            .workspace_bytes = erase_workspace<Args, avx2::workspace_bytes_kquants>,
            .run = erase_run<Args, avx2::run_kquants>},
    Variant{.name = "avx512_floats",
            .isa = Isa::avx512,
            .numerics = kF32,
            .layout = "tiles16_f",
            .takes = erase_takes<Args, takes_floats>,
            .run = erase_run<Args, avx512::run_floats>},
    Variant{.name = "avx2_floats",
            .isa = Isa::avx2,
            .numerics = kF32,
            .layout = "tiles16_f",
            .takes = erase_takes<Args, takes_floats>,
            .run = erase_run<Args, avx2::run_floats>},
    Variant{.name = "scalar",
            .numerics = kI8B32,
            .takes = erase_takes<Args, scalar::takes>,
            .run = erase_run<Args, scalar::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

constexpr std::array kWitnesses = {
    Variant{.name = "plain_blocks",
            .numerics = kI8B32,
            .takes = erase_takes<Args, scalar::takes>,
            .run = erase_run<Args, scalar::run>},
    Variant{.name = "plain_floats",
            .numerics = kF32,
            .takes = erase_takes<Args, plain::takes>,
            .run = erase_run<Args, plain::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

int64_t grain(const void*) {
  return tiles16::kOutputs;
}

void bind(const Bound& b, Args& a) {
  a.w = b.weights[0].data;
  a.w_type = b.weights[0].type;
  a.x = b.in[0].data;
  a.x_type = b.in[0].type;
  a.y = b.out[0].data;
  a.y_type = b.out[0].type;
  a.n_rows = b.in[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (!types_fit(a))
    return error(Code::unsupported,
                 "matmul: {} weights, {} activations, {} outputs (block formats take q8_row or "
                 "bf16, float weights f32 or bf16; outputs are f32 or bf16)",
                 name_of(a.w_type), name_of(a.x_type), name_of(a.y_type));
  if (a.n_rows < 0 || a.n < 1 || a.k < 1)
    return error(Code::invalid_argument, "matmul: {} rows of {} to {} outputs", a.n_rows, a.k, a.n);
  if (a.k % format_of(a.w_type).block_elems != 0 || a.k % format_of(a.x_type).block_elems != 0)
    return error(Code::invalid_argument,
                 "matmul: k = {} is not a whole number of blocks of {} and {}", a.k,
                 name_of(a.w_type), name_of(a.x_type));
  return {};
}

DType input_type(DType weight, bool on_cuda) {
  return on_cuda ? DType::bf16 : format_of(weight).input;
}

DType device_weight_type(DType file) {
  const bool is_packed =
      file == DType::q8_0 || file == DType::q4_0 || file == DType::q4_k || file == DType::q6_k;
  return is_packed ? file : DType::bf16;
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "matmul",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .layouts = layouts,
                .splits = {.by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .input_type = input_type};

}  // namespace millrace::matmul
