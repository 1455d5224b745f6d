#include <array>

#include "kernels/attention_input/op.h"
#include "kernels/kv_store/op.h"
#include "kernels/matmul/op.h"
#include "kernels/rmsnorm/op.h"
#include "kernels/rope/op.h"
#ifdef MILLRACE_CUDA
#include "kernels/attention_input/device.h"
#include "kernels/device.h"
#endif

namespace millrace::attention_input {
namespace {

constexpr FusedCall kNorm{&rmsnorm::kOp, "cuda.rmsnorm.lanes256"};
constexpr FusedCall kProduct{&matmul::kOp, matmul::kBf16Cuda, "mma16"};
constexpr FusedCall kTurn{&rope::kOp, "cuda.rope.turns"};
constexpr FusedCall kStore{&kv_store::kOp, "cuda.kv_store.round"};

constexpr std::array kCalls = {kNorm, kProduct, kProduct, kProduct, kTurn, kTurn, kStore};
constexpr std::array kLinks = {FusedLink{1, 0, 0}, FusedLink{2, 0, 0}, FusedLink{3, 0, 0},
                               FusedLink{4, 0, 1}, FusedLink{5, 0, 2}, FusedLink{6, 0, 5},
                               FusedLink{6, 1, 3}};

constexpr std::array kCallsWithNorms = {kNorm, kProduct, kProduct, kProduct, kNorm,
                                        kNorm, kTurn,    kTurn,    kStore};
constexpr std::array kLinksWithNorms = {FusedLink{1, 0, 0}, FusedLink{2, 0, 0}, FusedLink{3, 0, 0},
                                        FusedLink{4, 0, 1}, FusedLink{5, 0, 2}, FusedLink{6, 0, 4},
                                        FusedLink{7, 0, 5}, FusedLink{8, 0, 7}, FusedLink{8, 1, 3}};

bool is_product_of(const matmul::Args& p, const rmsnorm::Args& norm, long long n, DType w_type) {
  return p.w_type == w_type && p.y_type == DType::bf16 && p.k == norm.n && p.n == n;
}

bool turns_whole_heads(const rope::Args& r, const kv_store::Args& store, long long n_heads) {
  return r.type == DType::bf16 && r.n_heads == n_heads && r.head_dim == store.head_dim &&
         r.rot_dim == r.head_dim && r.x_stride == n_heads * r.head_dim && r.y_stride == r.x_stride;
}

// Everything but the norms of heads.
bool join_common(const rmsnorm::Args& norm, std::span<const ArgsBox> products,
                 std::span<const ArgsBox> rest, Args& out) {
  const auto& q = args_in<rope::Args>(rest[0]);
  const auto& k = args_in<rope::Args>(rest[1]);
  const auto& store = args_in<kv_store::Args>(rest[2]);
  const long long n_kv = store.n_kv_heads * store.head_dim;
  const long long widths[3] = {q.n_heads * q.head_dim, n_kv, n_kv};
  out.w_type = args_in<matmul::Args>(products[0]).w_type;
  out.v_type = args_in<matmul::Args>(products[2]).w_type;
  for (size_t i = 0; i < 3; ++i) {
    const auto& product = args_in<matmul::Args>(products[i]);
    if (!is_product_of(product, norm, widths[i], i < 2 ? out.w_type : out.v_type)) return false;
    out.w[i] = product.w;
  }
  const bool same_turns = q.turns == k.turns && q.magnitude == k.magnitude && q.order == k.order &&
                          q.positions == k.positions;
  const bool types_fit = norm.x_type == DType::f32 && norm.y_type == DType::bf16 &&
                         store.x_type == DType::bf16 && store.kv_type == DType::bf16;
  if (!same_turns || !types_fit || norm.n_groups != 1 || store.what != kv_store::Stored::both ||
      store.x_stride != n_kv || !turns_whole_heads(q, store, q.n_heads) ||
      !turns_whole_heads(k, store, store.n_kv_heads))
    return false;
  out.x = static_cast<const float*>(norm.x);
  out.norm = norm.weight;
  out.eps = norm.eps;
  out.embd = norm.n;
  out.n_rows = norm.n_rows;
  out.turns = q.turns;
  out.positions = q.positions;
  out.magnitude = q.magnitude;
  out.order = q.order;
  out.q = q.y;
  out.n_heads = q.n_heads;
  out.head_dim = q.head_dim;
  out.n_kv_heads = store.n_kv_heads;
  out.slots = store.slots;
  out.k_pages = store.k_pages;
  out.v_pages = store.v_pages;
  out.n_pages = store.n_pages;
  out.page_tokens = store.page_tokens;
  out.page_stride = store.page_stride;
  return !overlap(out.q, out.n_rows * widths[0] * 2, out.x, out.n_rows * out.embd * 4);
}

bool join(std::span<const ArgsBox> plain, ArgsBox& joined) {
  Args out = {};
  if (!join_common(args_in<rmsnorm::Args>(plain[0]), plain.subspan(1, 3), plain.subspan(4), out))
    return false;
  put_args(joined, out);
  return true;
}

bool join_with_norms(std::span<const ArgsBox> plain, ArgsBox& joined) {
  Args out = {};
  if (!join_common(args_in<rmsnorm::Args>(plain[0]), plain.subspan(1, 3), plain.subspan(6), out))
    return false;
  for (size_t i = 0; i < 2; ++i) {
    const auto& norm = args_in<rmsnorm::Args>(plain[4 + i]);
    if (norm.n != out.head_dim || norm.x_type != DType::bf16 || norm.y_type != DType::bf16)
      return false;
    out.head_norm[i] = norm.weight;
    out.head_eps = norm.eps;
  }
  const auto& q_norm = args_in<rmsnorm::Args>(plain[4]);
  if (q_norm.eps != out.head_eps) return false;
  put_args(joined, out);
  return true;
}

constexpr Variant kVariant = {
#ifdef MILLRACE_CUDA
    .name = "sm90",
    .isa = Isa::sm80,  // what it needs of Hopper its takes() asks for
    .numerics = "cuda.attention_input",
    .layout = "mma16",
    .takes = erase_takes<Args, takes_sm90>,
    .run = erase_launch<Args, launch_sm90>
#endif
};

}  // namespace

const Fusion kFusion = {.name = "attention_input",
                        .calls = kCalls,
                        .links = kLinks,
                        .kept = 4,
                        .join = join,
                        .cases = cases,
                        .variant = kVariant};
const Fusion kWithHeadNorms = {.name = "attention_input",
                               .calls = kCallsWithNorms,
                               .links = kLinksWithNorms,
                               .kept = 6,
                               .join = join_with_norms,
                               .cases = cases_with_head_norms,
                               .variant = kVariant};

}  // namespace millrace::attention_input
