#include <array>

#include "kernels/kv_store/cases.h"
#include "kernels/kv_store/floor.h"
#include "kernels/kv_store/op.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/kv_store/device.h"
#endif

namespace millrace::kv_store {
namespace {

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

std::string key(const Args& a) {
  return fmt::format("rows={} kv_heads={} dim={} page={} x={} kv={}", a.n_rows, a.n_kv_heads,
                     a.head_dim, a.page_tokens, name_of(a.x_type), name_of(a.kv_type));
}

bool takes_avx2(const Args& a) {
  return a.x_type == DType::f32 && a.head_dim % 8 == 0;
}

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.kv_store.round",
            .takes = erase_takes<Args, takes_sm80>,
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{.name = "avx2",
            .isa = Isa::avx2,
            .numerics = kRound,
            .takes = erase_takes<Args, takes_avx2>,
            .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

// Whole heads: what is stored then comes from the lane that made it.
int64_t grain(const void* args) {
  return static_cast<const Args*>(args)->head_dim;
}

void bind(const Bound& b, Args& a) {
  a.k = b.in.front().data;
  a.v = b.in.back().data;
  a.x_type = b.in[0].type;
  a.slots = b.kv.slots;
  a.k_pages = b.kv.k_pages;
  a.v_pages = b.kv.v_pages;
  a.kv_type = b.kv.type;
  a.n_rows = b.in[0].n_rows;
  a.x_stride = a.n_kv_heads * a.head_dim;
  a.n_pages = b.kv.n_pages;
  a.page_tokens = b.kv.page_tokens;
  a.page_stride = b.kv.page_stride;
}

// Keys and then values: both.
bool absorb(void* args, const void* next) {
  auto& a = *static_cast<Args*>(args);
  if (a.what != Stored::keys || static_cast<const Args*>(next)->what != Stored::values)
    return false;
  a.what = Stored::both;
  return true;
}

}  // namespace

Status validate(const Args& a) {
  if (a.n_rows < 0 || a.n_kv_heads < 1 || a.head_dim < 1)
    return error(Code::invalid_argument,
                 "kv_store: shape {} x {} x {} (rows >= 0, heads >= 1, dim >= 1)", a.n_rows,
                 a.n_kv_heads, a.head_dim);
  if (a.n_pages < 1 || a.page_tokens < 1 || a.n_pages > 0x7fffffff / a.page_tokens)
    return error(Code::invalid_argument, "kv_store: {} pages of {} tokens (at most 2^31 in all)",
                 a.n_pages, a.page_tokens);
  if (a.x_stride < a.n_kv_heads * a.head_dim)
    return error(Code::invalid_argument, "kv_store: stride {} is below a row of {}", a.x_stride,
                 a.n_kv_heads * a.head_dim);
  if (!is_float(a.x_type) || !(is_float(a.kv_type) || a.kv_type == DType::f16))
    return error(Code::unsupported, "kv_store: {} into {} (f32, bf16 into f32, f16, bf16)",
                 name_of(a.x_type), name_of(a.kv_type));
  if (const long long page = a.n_kv_heads * a.head_dim * a.page_tokens;
      a.page_stride < page || bytes_of(a.kv_type, a.page_stride) % 64 != 0)
    return error(Code::invalid_argument,
                 "kv_store: pages of {} elements {} apart (no less, and a multiple of 64 bytes)",
                 page, a.page_stride);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "kv_store",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_columns = true, .grain = grain},
                .bind = erase_bind<Args, bind>,
                .absorb = absorb};

}  // namespace millrace::kv_store
