#include <array>
#include <bit>

#include "kernels/attention/cases.h"
#include "kernels/attention/floor.h"
#include "kernels/attention/op.h"
#include "kernels/attention/plan.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/attention/device.h"
#include "kernels/device.h"
#endif

namespace millrace::attention {
namespace {

// The greatest context stands for the contexts, which are data.
std::string key(const Args& a) {
  return fmt::format("rows={} heads={} kv_heads={} dim={} ctx={} page={} q={} kv={}{}", a.n_rows,
                     a.n_heads, a.n_kv_heads, a.head_dim, a.max_pages * a.page_tokens,
                     a.page_tokens, name_of(a.q_type), name_of(a.kv_type),
                     a.window == 0 ? "" : fmt::format(" window={}", a.window));
}

bool takes_avx2(const Args& a) {
  return a.q_type == DType::f32 && a.head_dim % 8 == 0;
}

bool takes_avx512(const Args& a) {
  return a.q_type == DType::f32 && a.head_dim % 16 == 0;
}

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80_list",
            .isa = Isa::sm80,
            .numerics = "cuda.attention.mma256",
            .takes = erase_takes<Args, takes_sm80_list>,
            .workspace_bytes = erase_workspace<Args, sm80_list_workspace_bytes>,
            .run = erase_launch<Args, launch_sm80_list>},
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.attention.chunk256",
            .takes = erase_takes<Args, takes_sm80>,
            .workspace_bytes = erase_workspace<Args, sm80_workspace_bytes>,
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx512",
            .isa = Isa::avx512,
            .numerics = kChunk256,
            .takes = erase_takes<Args, takes_avx512>,
            .workspace_bytes = erase_workspace<Args, workspace_bytes>,
            .run = erase_run<Args, avx512::run>},
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kChunk256,
            .takes = erase_takes<Args, takes_avx2>,
            .workspace_bytes = erase_workspace<Args, workspace_bytes>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

constexpr std::array kWitnesses = {
    Variant{.name = "plain",
            .numerics = kChunk256,
            .takes = erase_takes<Args, plain::takes>,
            .run = erase_run<Args, plain::run>},
};

std::span<const Variant> witnesses() {
  return kWitnesses;
}

Status validate_shape(const Args& a) {
  if (a.n_rows < 0 || a.n_heads < 1 || a.n_kv_heads < 1 || a.n_heads % a.n_kv_heads != 0)
    return error(Code::invalid_argument,
                 "attention: {} rows of {} heads over {} KV heads (the heads a multiple)", a.n_rows,
                 a.n_heads, a.n_kv_heads);
  if (a.head_dim < 1 || a.head_dim > kMaxHeadDim)
    return error(Code::invalid_argument, "attention: head_dim {} (1 to {})", a.head_dim,
                 kMaxHeadDim);
  if (a.q_stride < a.n_heads * a.head_dim)
    return error(Code::invalid_argument, "attention: stride {} is below a row of {}", a.q_stride,
                 a.n_heads * a.head_dim);
  return {};
}

Status validate_cache(const Args& a) {
  const auto tokens = static_cast<unsigned long long>(a.page_tokens);
  if (a.page_tokens < 16 || a.page_tokens > kChunkTokens || !std::has_single_bit(tokens))
    return error(Code::invalid_argument, "attention: pages of {} tokens (a power of two, 16 to {})",
                 a.page_tokens, kChunkTokens);
  if (a.n_pages < 1 || a.n_seqs < 1 || a.max_pages < 1 || a.max_pages > 0x7fffffff / a.page_tokens)
    return error(Code::invalid_argument, "attention: {} pages, {} sequences of up to {} pages",
                 a.n_pages, a.n_seqs, a.max_pages);
  if (const long long page = a.n_kv_heads * a.head_dim * a.page_tokens;
      a.page_stride < page || bytes_of(a.kv_type, a.page_stride) % 64 != 0)
    return error(Code::invalid_argument,
                 "attention: pages of {} elements {} apart (no less, and a multiple of 64 bytes)",
                 page, a.page_stride);
  if (a.window < 0)
    return error(Code::invalid_argument, "attention: a window of {} tokens (0: none)", a.window);
  return {};
}

void bind(const Bound& b, Args& a) {
  a.q = b.in[0].data;
  a.q_type = b.in[0].type;
  a.positions = static_cast<const int*>(b.in[1].data);
  a.sequences = static_cast<const int*>(b.in[2].data);
  a.out = b.out[0].data;
  a.n_rows = b.in[0].n_rows;
  a.q_stride = a.n_heads * a.head_dim;
  a.k_pages = b.kv.k_pages;
  a.v_pages = b.kv.v_pages;
  a.kv_type = b.kv.type;
  a.tables = b.kv.tables;
  a.n_pages = b.kv.n_pages;
  a.page_tokens = b.kv.page_tokens;
  a.page_stride = b.kv.page_stride;
  a.n_seqs = b.kv.n_seqs;
  a.max_pages = b.kv.max_pages;
  a.work = {.list = b.kv.work, .n_shares = b.kv.n_shares, .n_records = b.kv.n_records};
}

}  // namespace

Status validate(const Args& a) {
  MILLRACE_TRY(validate_shape(a));
  const bool q_ok = a.q_type == DType::f32 || a.q_type == DType::bf16;
  const bool kv_ok = a.kv_type == DType::f16 || a.kv_type == DType::bf16 || a.kv_type == DType::f32;
  if (!q_ok || !kv_ok)
    return error(Code::unsupported, "attention: q in {}, KV in {} (f32 or bf16; f16, bf16 or f32)",
                 name_of(a.q_type), name_of(a.kv_type));
  if (!(a.scale > 0))
    return error(Code::invalid_argument, "attention: scale {} (above 0)", a.scale);
  return validate_cache(a);
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "attention",
                .variants = variants,
                .witnesses = witnesses,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .bind = erase_bind<Args, bind>};

}  // namespace millrace::attention
