// One to eight rows on Hopper: a block owns 32 outputs of a head, of q, k or v, a cluster a head.
// 32 is what the head norm's class folds as one part, so a block gives its cluster one number a
// row; where the rotation pairs elements of two halves, also its outputs to the block that holds
// the others. All of that goes straight into the shared memory where it is read, behind one cluster
// barrier. See rows_product.cuh.
#include <cuda_runtime.h>

#include "kernels/attention_input/args.h"
#include "kernels/attention_input/device.h"
#include "kernels/rope/tile.cuh"
#include "kernels/rows_product.cuh"

namespace millrace::attention_input {
namespace {

namespace rp = rows_product;

constexpr int kTiles = 2;
constexpr int kOutputs = kTiles * matmul::kTileM;
constexpr int kMaxParts = 8;  // blocks of a head
static_assert(kOutputs == 32, "a part of the head norm");

// What blocks of a cluster give each other.
struct Exchange {
  float parts[rp::kRows][kMaxParts];  // of a row's sum of squares
  float own[rp::kRows][kOutputs];
  float paired[rp::kRows][kOutputs];  // of the block that holds the other halves of the pairs
};

enum Kind : int { kQ, kK, kV };

// Which outputs are this block's.
struct Place {
  int rank, n_parts;  // in the cluster
  Kind kind;
  int head;  // of its kind
  int d;     // this lane's dimension
  int other_d;
  int pair;
  bool is_second;  // of its pair

  __device__ __forceinline__ explicit Place(const Args& a) {
    n_parts = static_cast<int>(a.head_dim) / kOutputs;
    rank = static_cast<int>(blockIdx.x) % n_parts;
    head = static_cast<int>(blockIdx.x) / n_parts;
    const auto n_q = static_cast<int>(a.n_heads), n_kv = static_cast<int>(a.n_kv_heads);
    kind = head < n_q ? kQ : head < n_q + n_kv ? kK : kV;
    head -= kind == kQ ? 0 : kind == kK ? n_q : n_q + n_kv;
    const auto dim = static_cast<int>(a.head_dim);
    d = rank * kOutputs + static_cast<int>(threadIdx.x & 31);
    const bool neox = a.order == rope::PairOrder::neox;
    other_d = neox ? (d + dim / 2) % dim : d ^ 1;
    pair = neox ? d % (dim / 2) : d / 2;
    is_second = neox ? d >= dim / 2 : (d & 1) != 0;
  }
  __device__ __forceinline__ long long first_tile(const Args& a) const {
    return (head * a.head_dim + rank * kOutputs) / matmul::kTileM;
  }
};

__device__ __forceinline__ float rounded(float value) {
  return widen_bf16(bf16_bits(value));
}

// What a warp needs for its row and knows before the previous kernel ends.
struct Constants {
  float weight = 1, other_weight = 1;
  float2 turn = {};

  Constants() = default;
  __device__ __forceinline__ Constants(const Args& a, const Place& at, int row) {
    if (at.kind == kV || row >= a.n_rows) return;
    if (const float* w = a.head_norm[at.kind]; w != nullptr) {
      weight = __ldg(w + at.d);
      other_weight = __ldg(w + at.other_d);
    }
    turn = rope::turn_of(a.positions[row], __ldg(a.turns + at.pair), a.magnitude);
  }
};

// Gives the cluster this block's outputs of a row.
__device__ __forceinline__ void give(const Args& a, const Place& at, Exchange& exchange, int row,
                                     float value) {
  const int lane = threadIdx.x & 31;
  exchange.own[row][lane] = value;
  if (at.kind == kV) return;
  const float part = rmsnorm::fold_part(value * value);
  if (lane < at.n_parts) *rp::at_block(&exchange.parts[row][at.rank], lane) = part;
  *rp::at_block(&exchange.paired[row][lane], at.other_d / kOutputs) = value;
}

// The head norm and the rotation of what give() brought together.
__device__ __forceinline__ float finish(const Args& a, const Place& at, const Exchange& exchange,
                                        const Constants& constants, int row) {
  const int lane = threadIdx.x & 31;
  float own = exchange.own[row][lane];
  if (at.kind == kV) return own;
  float other = a.order == rope::PairOrder::neox ? exchange.paired[row][at.other_d % kOutputs]
                                                 : exchange.own[row][lane ^ 1];
  if (a.head_norm[at.kind] != nullptr) {
    float sum = exchange.parts[row][0];
    for (int p = 1; p < at.n_parts; ++p) sum += exchange.parts[row][p];
    const float scale = rmsnorm::scale_of(sum, a.head_dim, a.head_eps);
    own = rounded(own * scale * constants.weight);
    other = rounded(other * scale * constants.other_weight);
  }
  return at.is_second ? rope::turned_second(other, own, constants.turn)
                      : rope::turned_first(own, other, constants.turn);
}

__device__ __forceinline__ void store(const Args& a, const Place& at, int row, float value) {
  const unsigned short bits = bf16_bits(value);
  if (at.kind == kQ) {
    static_cast<unsigned short*>(a.q)[(row * a.n_heads + at.head) * a.head_dim + at.d] = bits;
    return;
  }
  const auto page_tokens = static_cast<int>(a.page_tokens);
  const int slot = a.slots[row];
  if (slot < 0 || slot / page_tokens >= a.n_pages) return;
  const long long block = slot / page_tokens * a.page_stride + at.head * a.head_dim * a.page_tokens;
  const int place = slot % page_tokens;
  if (at.kind == kK)
    static_cast<unsigned short*>(a.k_pages)[block + at.d * a.page_tokens + place] = bits;
  else
    static_cast<unsigned short*>(a.v_pages)[block + place * a.head_dim + at.d] = bits;
}

// This block's outputs, given to the cluster; what the previous kernel made is there from then on.
template <class W>
__device__ __forceinline__ void project(const Args& a, const rp::Shape& shape, const Place& at,
                                        unsigned char* shared, Exchange& exchange,
                                        Constants& constants) {
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, n_warps = blockDim.x >> 5;
  const rp::Norm norm = {a.x, a.norm, a.embd, a.eps};
  const rp::Memory<W, kTiles> memory(shared, shape);
  auto* rows = reinterpret_cast<float*>(shared + memory.bytes(shape));
  const long long tile = at.first_tile(a);
  const unsigned char* w[kTiles] = {rp::tile_at<W>(a.w[at.kind], shape, tile),
                                    rp::tile_at<W>(a.w[at.kind], shape, tile + 1)};
  float4 first_weights;
  rp::run<W, kTiles>(
      w, shape, memory,
      [&] {
        first_weights = rp::norm_weights(norm, warp);
        constants = Constants(a, at, warp);
        wait_for_previous_kernel();
        rp::begin_norm(rows, norm, shape);
      },
      [&](int segment, int live) {
        const float4 weights = segment == warp ? first_weights : rp::norm_weights(norm, segment);
        rp::stage_norm(memory.x, rows, norm, weights, shape, segment, live);
      });
  rp::wait_for_cluster();  // all of its blocks have begun
  __syncthreads();
  for (int row = warp; row < shape.n_rows; row += n_warps)
    give(a, at, exchange, row,
         rounded(memory.folded(shape, lane / matmul::kTileM, row, lane % matmul::kTileM)));
}

// V: the format of the weights of v, W that of q and k.
template <class W, class V>
__global__ void __launch_bounds__(32 * rp::max_warps(kTiles), 1)
    attention_input_kernel(const __grid_constant__ Args a, rp::Shape shape) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Exchange exchange;
  let_next_kernel_start();
  rp::arrive_at_cluster();
  const int warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
  const Place at(a);
  Constants constants;
  if (W::kType == V::kType || at.kind != kV)
    project<W>(a, shape, at, shared, exchange, constants);
  else
    project<V>(a, shape, at, shared, exchange, constants);
  rp::arrive_at_cluster();
  rp::wait_for_cluster();
  for (int row = warp; row < shape.n_rows; row += n_warps)
    store(a, at, row,
          finish(a, at, exchange, row == warp ? constants : Constants(a, at, row), row));
}

size_t shared_bytes(const Args& a, const rp::Shape& s) {
  return max(rp::shared_bytes<kTiles>(a.w_type, s), rp::shared_bytes<kTiles>(a.v_type, s)) +
         rp::norm_bytes(s);
}

using Kernel = void (*)(Args, rp::Shape);

// All of one type; or as Q4_K_M files have it, in half of their layers.
bool are_of_kernel(DType w, DType v) {
  return w == v || (w == DType::q4_k && v == DType::q6_k);
}
Kernel kernel_for(DType w, DType v) {
  if (w != v) return attention_input_kernel<device_weights::Q4_K, device_weights::Q6_K>;
  return device_weights::with_format(w, [](auto format) -> Kernel {
    return attention_input_kernel<decltype(format), decltype(format)>;
  });
}

}  // namespace

bool takes_sm90(const Args& a) {
  bool hopper = false;
  const long long parts = a.head_dim / kOutputs;
  return a.n_rows >= 1 && a.n_rows <= rp::kRows && device_weights::takes(a.w_type, a.embd) &&
         are_of_kernel(a.w_type, a.v_type) && a.head_dim % kOutputs == 0 &&
         (parts == 1 || parts == 2 || parts == 4 || parts == kMaxParts) &&
         are_aligned(a.x, a.norm) && rp::fits(shared_bytes(a, rp::shape_of(a.n_rows, a.embd))) &&
         is_hopper_code(kernel_for(a.w_type, a.v_type), &hopper) == cudaSuccess && hopper;
}

int launch_sm90(const Args& a, void* stream, void*) {
  const rp::Shape shape = rp::shape_of(a.n_rows, a.embd);
  const long long parts = a.head_dim / kOutputs;
  return rp::launch(kernel_for(a.w_type, a.v_type),
                    {.grid = dim3(static_cast<unsigned>((a.n_heads + 2 * a.n_kv_heads) * parts)),
                     .n_threads = static_cast<unsigned>(32 * rp::warps_of(shape, kTiles)),
                     .shared_bytes = shared_bytes(a, shape),
                     .cluster = static_cast<unsigned>(parts)},
                    stream, a, shape);
}

}  // namespace millrace::attention_input
