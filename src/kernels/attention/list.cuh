// Attention on tensor cores that walks a list of work, without a launch. Class
// cuda.attention.mma256. The tokens of a sequence are cut into chunks of 256 at absolute positions.
// For one query vector and one chunk:
//   score[t] = (k16 tensor-core steps over ascending dimensions, K the M operand) * scale, -Inf for
//   tokens that the row does not see; max = the greatest
//   p[t] = exp(score[t] - max), rounded to bf16; where max is -Inf, 0 is subtracted in its place
//   sum, o[d] = k16 tensor-core steps over ascending tokens of p with ones and with v, ones and V
//   the M operand
// The chunks' (max, sum, o) are folded left in ascending order from (-Inf, 0, 0):
//   M' = max(M, max); a = exp(M - M'), 0 where M is -Inf; b = exp(max - M'), 0 where max is -Inf;
//   L = fma(L, a, sum * b); O[d] = fma(O[d], a, o[d] * b)
// and out[d] = O[d] / L. A zero is +0 before it is folded and before it is divided, so that steps
// over tokens that weigh nothing may be left out: they add zeros. Which other query vectors share
// the N operand, which block does a chunk and who folds is not in it.
//
// A block works on one chunk of one KV head for a tile of up to 32 query vectors. Scores: tokens
// are split over the warps, each 16 of them times all vectors. Values: dimensions are split, 16 a
// warp, over all tokens. So both kinds of operand are read once from shared memory whatever the
// tile, and a decode differs from a prefill in the number of columns alone. K of the next chunk is
// copied while V is multiplied, V of the next while K is.
#pragma once

#include "base/math_cuda.cuh"
#include "kernels/attention/args.h"
#include "kernels/attention/list.h"
#include "kernels/device.cuh"
#include "kernels/matmul/tile.cuh"
#include "kernels/shared_tiles.cuh"

namespace millrace::attention {

inline constexpr int kSlots = 32;  // records that are weighed together

__device__ __forceinline__ unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char shared[];
  return shared;
}

// The small things in shared memory. What belongs to a run lies there twice, since the next run's
// is brought in before this one ends: they take turns.
template <int kWarps>
struct Notes {
  float greatest[kTileVectors][kWarps];  // of a vector's scores, by warp
  float2 scales[kTileVectors];           // a and b of the fold
  float sum[kTileVectors];               // of the chunk
  float total[kTileVectors];             // L
  float max[kTileVectors];               // M, where records are folded
  int2 seen[2][kTileVectors];            // first and last token
  int tiles[2][kTileInts];
  int is_last;
};

// Where things lie in shared memory, in bytes.
template <int kDim, int kMaxColumns>
struct Layout {
  static constexpr int kVectors = kMaxColumns * 8;
  static constexpr int kWarps = kDim / 16, kThreads = 32 * kWarps;
  static constexpr int kTokenStride = kListChunk * 2 + 16;  // of a row of tokens: an odd number
  static constexpr int kDimStride = kDim * 2 + 16;          // of 16 bytes, against bank conflicts
  static constexpr int kKeyBytes = kDim * kTokenStride, kValueBytes = kListChunk * kDimStride;
  static constexpr int kWeights = (sizeof(Notes<kWarps>) + 15) / 16 * 16;
  static constexpr int kQueries = kWeights + kVectors * kTokenStride;
  static constexpr int kKeys = kQueries + kVectors * kDimStride;
  // K and V take turns in one buffer, for devices with little shared memory.
  static constexpr int kAliasedBytes = kKeys + (kKeyBytes > kValueBytes ? kKeyBytes : kValueBytes);
  static constexpr int kBytes = kKeys + kKeyBytes + kValueBytes;
};

__device__ __forceinline__ int log2_of(int power) {
  return 31 - __clz(power);
}

__device__ __forceinline__ float weight_under(float m, float greatest) {
  return m == -INFINITY ? 0.0f : math::cuda::exp(m - greatest);
}

// Where a share stands: a chunk of one KV head of a tile.
struct Stand {
  int turn;  // of the run it belongs to
  int tile, kv_head;
  int chunk;  // of the tile
  int left;   // chunks of the share, this one included
};

// kMaxColumns: 4, or 1 where no tile has more.
template <int kDim, int kMaxColumns>
struct Attend {
  using L = Layout<kDim, kMaxColumns>;
  static constexpr int kWarps = L::kWarps, kThreads = L::kThreads;
  static constexpr int kMyTokens = (kListChunk / 16 + kWarps - 1) / kWarps;  // 16s of a warp

  const Args& a;
  void* records;
  bool aliased;
  int group, page_shift;

  __device__ __forceinline__ Attend(const Args& args, void* workspace, bool is_aliased)
      : a(args),
        records(workspace),
        aliased(is_aliased),
        group(static_cast<int>(args.n_heads / args.n_kv_heads)),
        page_shift(log2_of(static_cast<int>(args.page_tokens))) {}

  static __device__ __forceinline__ Notes<kWarps>& notes() {
    return *reinterpret_cast<Notes<kWarps>*>(shared_memory());
  }
  static __device__ __forceinline__ unsigned char* weights() {
    return shared_memory() + L::kWeights;
  }
  static __device__ __forceinline__ unsigned char* queries() {
    return shared_memory() + L::kQueries;
  }
  static __device__ __forceinline__ unsigned char* keys() { return shared_memory() + L::kKeys; }
  __device__ __forceinline__ unsigned char* values() const {
    return keys() + (aliased ? 0 : L::kKeyBytes);
  }
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ __forceinline__ int warp() { return thread() / 32; }
  static __device__ __forceinline__ int lane() { return thread() % 32; }

  // --- the list

  __device__ __forceinline__ const ListShare& share() const {
    return reinterpret_cast<const ListShare*>(a.work.list)[blockIdx.x];
  }
  __device__ __forceinline__ ListCut* cuts() const {
    return reinterpret_cast<ListCut*>(a.work.list + a.work.n_shares * kShareInts);
  }
  // This thread's int of a tile, of the first eight threads.
  __device__ __forceinline__ int tile_int(int tile) const {
    return a.work.list[a.work.n_shares * (kShareInts + kCutInts) + tile * kTileInts + thread()];
  }
  __device__ __forceinline__ const ListTile& tile(const Stand& at) const {
    return *reinterpret_cast<const ListTile*>(notes().tiles[at.turn]);
  }
  __device__ __forceinline__ int n_vectors(const Stand& at) const {
    return tile(at).n_rows * group;
  }
  __device__ __forceinline__ int n_chunks(const Stand& at) const {
    return tile(at).last / kListChunk - tile(at).first / kListChunk + 1;
  }
  __device__ __forceinline__ int token0(const Stand& at) const {
    return (tile(at).first / kListChunk + at.chunk) * kListChunk;
  }
  // The 16s of the chunk's tokens that some row sees part of.
  __device__ __forceinline__ int first_16(const Stand& at) const {
    return max(0, tile(at).first - token0(at)) / 16;
  }
  __device__ __forceinline__ int last_16(const Stand& at) const {
    return min(kListChunk - 1, tile(at).last - token0(at)) / 16;
  }
  __device__ __forceinline__ Stand after(Stand at) const {
    --at.left;
    if (++at.chunk < n_chunks(at)) return at;
    at.chunk = 0;
    at.turn ^= 1;
    if (++at.kv_head < a.n_kv_heads) return at;
    at.kv_head = 0;
    ++at.tile;
    return at;
  }

  // --- bringing in

  // The KV head's block of the page that holds a token.
  __device__ __forceinline__ long long block_of(const Stand& at, int token) const {
    const int page = a.tables[tile(at).sequence * a.max_pages + (token >> page_shift)];
    return page * a.page_stride + at.kv_head * (kDim * a.page_tokens);
  }

  // Which of a chunk's tokens to bring in: all, or those before or from `fresh` on, which this
  // step's own rows have stored.
  enum class Part { all, old, fresh };

  // The first token of the tile's sequence that this step stores: what lies before it is in the
  // cache since earlier steps, and may be read before the previous kernel has ended. 0 where that
  // takes long to find out.
  __device__ __forceinline__ int first_fresh(const Stand& at) const {
    if (a.n_rows > 32) return 0;
    const int row = lane() < a.n_rows ? lane() : 0;
    int first = 0x7fffffff;
    if (a.sequences[row] == tile(at).sequence && a.positions[row] >= 0) first = a.positions[row];
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) first = min(first, __shfl_xor_sync(~0u, first, d));
    return first;
  }

  // Eight tokens a lane, a dimension a warp. Tokens that no row sees are left as they are: their
  // scores are not looked at.
  __device__ __forceinline__ void fetch_keys(const Stand& at, Part part = Part::all,
                                             int fresh = 0) const {
    const int token = token0(at) + 8 * lane();
    if (token + 7 < tile(at).first || token > tile(at).last) return;
    if (part != Part::all && (token + 7 < fresh) != (part == Part::old)) return;
    const auto page_tokens = static_cast<int>(a.page_tokens);
    const auto* from = static_cast<const unsigned short*>(a.k_pages) + block_of(at, token) +
                       warp() * page_tokens + (token & (page_tokens - 1));
    unsigned char* to = keys() + warp() * L::kTokenStride + lane() * 16;
#pragma unroll 4
    for (int i = 0; i < 16; ++i)
      copy_async(to + i * kWarps * L::kTokenStride, from + i * kWarps * page_tokens);
  }

  // Zeros for tokens outside [first, last]: what lies in the cache there may be NaN, and a weight
  // of zero would keep it.
  __device__ __forceinline__ void fetch_values(const Stand& at, int first, int last,
                                               Part part = Part::all, int fresh = 0) const {
    constexpr int kPieces = kDim / 8;
    const int piece = thread() % kPieces, token_of_16 = thread() / kPieces;
    const auto page_mask = static_cast<int>(a.page_tokens) - 1;
    const int end = last_16(at);
    const int begin =
        part == Part::fresh ? max(first_16(at), (fresh - token0(at)) / 16) : first_16(at);
#pragma unroll 4
    for (int j = begin; j <= end; ++j) {
      const int token = token0(at) + 16 * j + token_of_16;
      if (part != Part::all && (token < fresh) != (part == Part::old)) continue;
      const auto* from = static_cast<const unsigned short*>(a.v_pages) +
                         block_of(at, token0(at) + 16 * j) + (token & page_mask) * kDim + piece * 8;
      copy_async(values() + (16 * j + token_of_16) * L::kDimStride + piece * 16, from,
                 token >= first && token <= last);
    }
  }
  __device__ __forceinline__ void fetch_values(const Stand& at) const {
    fetch_values(at, tile(at).first, tile(at).last);
  }

  // A run's query vectors, row by row, and what each of them sees. Zeros fill the last column.
  __device__ __forceinline__ void fetch_queries(const Stand& at) const {
    note_seen(at);
    copy_queries(at);
  }
  __device__ __forceinline__ void copy_queries(const Stand& at) const {
    constexpr int kPieces = kDim / 8;
    const int n = n_vectors(at), n_places = tile(at).columns * 8;
    const auto* q = static_cast<const unsigned short*>(a.q);
    for (int i = thread(); i < n_places * kPieces; i += kThreads) {
      const int v = i / kPieces, piece = i % kPieces;
      const long long row = tile(at).row + v / group, head = at.kv_head * group + v % group;
      copy_async(queries() + v * L::kDimStride + piece * 16,
                 q + (v < n ? row * a.q_stride + head * kDim + piece * 8 : 0), v < n);
    }
  }
  __device__ __forceinline__ void note_seen(const Stand& at) const {
    const int n = n_vectors(at), n_places = tile(at).columns * 8;
    for (int v = thread(); v < n_places; v += kThreads) {
      int2 seen = make_int2(1, 0);
      if (v < n) {
        seen.y = a.positions[tile(at).row + v / group];
        seen.x = a.window == 0 ? 0 : static_cast<int>(max(0LL, seen.y + 1 - a.window));
      }
      notes().seen[at.turn][v] = seen;
    }
  }

  // --- scores

  // s[i][c]: tokens g and g + 8 of the warp's i-th 16, vectors 2 t and 2 t + 1 of column c.
  template <int kColumns>
  using Scores = float[kMyTokens][kColumns][4];

  // Whether the warp's i-th 16 of tokens are among [first, last].
  static __device__ __forceinline__ bool has(int i, int first, int last) {
    const int j = warp() + i * kWarps;
    return j >= first && j <= last;
  }

  template <int kColumns>
  __device__ __forceinline__ void multiply_keys(const Stand& at, Scores<kColumns>& s) const {
    const int l = lane(), first = first_16(at), last = last_16(at);
    const unsigned char* query =
        queries() + ((l & 7) + (l >> 4) * 8) * L::kDimStride + ((l >> 3) & 1) * 16;
    const unsigned char* key = keys() + ((l & 7) + (l >> 4) * 8) * L::kTokenStride +
                               (16 * warp() + ((l >> 3) & 1) * 8) * 2;
#pragma unroll 4
    for (int d = 0; d < kDim; d += 16) {
      unsigned b[(kColumns + 1) / 2][4];
#pragma unroll
      for (int c = 0; c < kColumns; c += 2)
        load_matrices(b[c / 2], query + c * 8 * L::kDimStride + d * 2);
#pragma unroll
      for (int i = 0; i < kMyTokens; ++i) {
        if (!has(i, first, last)) continue;
        unsigned k[4];
        load_transposed(k, key + d * L::kTokenStride + i * kWarps * 32);
        const uint4 fragment = make_uint4(k[0], k[1], k[2], k[3]);
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          matmul::mma_step(s[i][c], fragment, b[c / 2][c % 2 * 2], b[c / 2][c % 2 * 2 + 1]);
      }
    }
  }

  // Scales and masks the scores, and notes the greatest of each vector among this warp's.
  template <int kColumns>
  __device__ __forceinline__ void mask(const Stand& at, Scores<kColumns>& s) const {
    const int g = lane() >> 2, t = lane() & 3;
    const int first = first_16(at), last = last_16(at), token0_of_lane = token0(at) + g;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int2 seen = notes().seen[at.turn][c * 8 + 2 * t + e];
        float greatest = -INFINITY;
#pragma unroll
        for (int i = 0; i < kMyTokens; ++i) {
          if (!has(i, first, last)) continue;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int token = token0_of_lane + 16 * (warp() + i * kWarps) + 8 * half;
            float& score = s[i][c][2 * half + e];
            score = token >= seen.x && token <= seen.y ? score * a.scale : -INFINITY;
            greatest = fmaxf(greatest, score);
          }
        }
#pragma unroll
        for (int d = 4; d < 32; d <<= 1)
          greatest = fmaxf(greatest, __shfl_xor_sync(~0u, greatest, d));
        if (g == 0) notes().greatest[c * 8 + 2 * t + e][warp()] = greatest;
      }
  }

  static __device__ __forceinline__ float greatest_of(int v) {
    float m = notes().greatest[v][0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) m = fmaxf(m, notes().greatest[v][w]);
    return m;
  }

  // Scores to weights, which the values' warps read by vector.
  template <int kColumns>
  __device__ __forceinline__ void soften(const Stand& at, const Scores<kColumns>& s) const {
    const int g = lane() >> 2, t = lane() & 3, first = first_16(at), last = last_16(at);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      float m[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        m[e] = greatest_of(c * 8 + 2 * t + e);
        if (m[e] == -INFINITY) m[e] = 0;
      }
#pragma unroll
      for (int i = 0; i < kMyTokens; ++i) {
        if (!has(i, first, last)) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned pair = pack_bf16(math::cuda::exp(s[i][c][2 * half] - m[0]),
                                          math::cuda::exp(s[i][c][2 * half + 1] - m[1]));
          const int token = 16 * (warp() + i * kWarps) + 8 * half + 2 * t;
          *reinterpret_cast<unsigned*>(weights() + (c * 8 + g) * L::kTokenStride + token * 2) =
              transpose_matrix(pair);
        }
      }
    }
  }

  // --- values

  // o[c]: dimensions g and g + 8 of the warp's 16, vectors 2 t and 2 t + 1 of column c.
  template <int kColumns>
  using Outputs = float[kColumns][4];

  // The column whose weights this warp adds up is that of its own number.
  template <int kColumns>
  __device__ __forceinline__ void multiply_values(const Stand& at, Outputs<kColumns>& o,
                                                  float (&sum)[4]) const {
    const int l = lane(), last = last_16(at);
    const uint4 ones = make_uint4(0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u);
    const unsigned char* value = values() + ((l & 7) + (l >> 4) * 8) * L::kDimStride +
                                 (16 * warp() + ((l >> 3) & 1) * 8) * 2;
    const unsigned char* weight =
        weights() + ((l & 7) + (l >> 4) * 8) * L::kTokenStride + ((l >> 3) & 1) * 16;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] = 0;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) o[c][i] = 0;
#pragma unroll 2
    for (int j = first_16(at); j <= last; ++j) {
      unsigned v[4];
      load_transposed(v, value + 16 * j * L::kDimStride);
      const uint4 fragment = make_uint4(v[0], v[1], v[2], v[3]);
#pragma unroll
      for (int c = 0; c < kColumns; c += 2) {
        unsigned b[4];
        load_matrices(b, weight + c * 8 * L::kTokenStride + j * 32);
        matmul::mma_step(o[c], fragment, b[0], b[1]);
        if (warp() == c) matmul::mma_step(sum, ones, b[0], b[1]);
        if (c + 1 == kColumns) continue;
        matmul::mma_step(o[c + 1 < kColumns ? c + 1 : c], fragment, b[2], b[3]);
        if (warp() == c + 1) matmul::mma_step(sum, ones, b[2], b[3]);
      }
    }
  }

  // Whether a token that only some rows see has a value that is not finite: then its weight of zero
  // would make it NaN for the others.
  __device__ __forceinline__ bool is_spoilt(const Stand& at) const {
    const int first_all = tile(at).first_all, last_all = tile(at).last_all, token = token0(at);
    const int begin = token + 16 * first_16(at), end = token + 16 * last_16(at) + 16;
    if (tile(at).n_rows == 1 || (first_all <= begin && last_all >= end - 1)) return false;
    constexpr int kPieces = kDim / 8;
    int found = 0;
    for (int i = thread(); i < (end - begin) * kPieces; i += kThreads) {
      const int t = begin + i / kPieces;
      if (t >= first_all && t <= last_all) continue;
      const uint4 raw = *reinterpret_cast<const uint4*>(values() + (t - token) * L::kDimStride +
                                                        i % kPieces * 16);
      const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
      for (int w = 0; w < 4; ++w)
        found |= (words[w] & 0x7f80u) == 0x7f80u || (words[w] >> 16 & 0x7f80u) == 0x7f80u;
    }
    return __syncthreads_or(found) != 0;
  }

  // The same a row at a time, each over the values that it sees.
  template <int kColumns>
  __device__ __forceinline__ void multiply_by_row(const Stand& at, Outputs<kColumns>& o) const {
    for (int r = 0; r < tile(at).n_rows; ++r) {
      __syncthreads();
      const int2 seen = notes().seen[at.turn][r * group];
      fetch_values(at, seen.x, seen.y);
      close_copies();
      wait_copies<0>();
      __syncthreads();
      Outputs<kColumns> own;
      float unused[4];
      multiply_values<kColumns>(at, own, unused);
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if ((c * 8 + 2 * (lane() & 3) + (i & 1)) / group == r) o[c][i] = own[c][i];
    }
  }

  // --- results

  template <int kColumns>
  static __device__ __forceinline__ void fold(Outputs<kColumns>& total, int c, const float (&o)[4],
                                              const float4& scales) {
    total[c][0] = __fmaf_rn(total[c][0], scales.x, (o[0] + 0.0f) * scales.y);
    total[c][1] = __fmaf_rn(total[c][1], scales.z, (o[1] + 0.0f) * scales.w);
    total[c][2] = __fmaf_rn(total[c][2], scales.x, (o[2] + 0.0f) * scales.y);
    total[c][3] = __fmaf_rn(total[c][3], scales.z, (o[3] + 0.0f) * scales.w);
  }

  // A cut's records: o as the threads hold it, two vectors each, and (max, sum) of every vector.
  // Pairs that the tile does not have are not kept.
  __device__ __forceinline__ long long record_of(const Stand& at, const ListCut& cut,
                                                 int slot) const {
    return cut.record + static_cast<long long>(slot) * ((n_vectors(at) + 1) / 2 * 2);
  }
  __device__ __forceinline__ float2* record_max(const Stand& at, const ListCut& cut,
                                                int slot) const {
    return reinterpret_cast<float2*>(static_cast<float*>(records) + a.work.n_records * kDim) +
           record_of(at, cut, slot);
  }
  __device__ __forceinline__ float4* record_o(const Stand& at, const ListCut& cut, int slot,
                                              int c) const {
    const int n_pairs = min(4, (n_vectors(at) + 1) / 2 - 4 * c);
    return reinterpret_cast<float4*>(static_cast<float*>(records) +
                                     record_of(at, cut, slot) * kDim) +
           c * kWarps * 32 + (warp() * 8 + (lane() >> 2)) * n_pairs + (lane() & 3);
  }
  __device__ __forceinline__ bool holds(const Stand& at, int c) const {
    return c * 8 + 2 * (lane() & 3) < n_vectors(at);
  }

  template <int kColumns>
  __device__ __forceinline__ void keep(const Stand& at, const ListCut& cut, int slot,
                                       const Outputs<kColumns>& o, float max, float sum) const {
    if (thread() < n_vectors(at)) record_max(at, cut, slot)[thread()] = make_float2(max, sum);
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (holds(at, c))
        *record_o(at, cut, slot, c) = make_float4(o[c][0], o[c][1], o[c][2], o[c][3]);
  }

  // The vectors' L is in notes().total, seen by all.
  template <int kColumns>
  __device__ __forceinline__ void write_out(const Stand& at, const Outputs<kColumns>& o) const {
    const int g = lane() >> 2, t = lane() & 3, n = n_vectors(at);
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int v = c * 8 + 2 * t + e;
        if (v >= n) continue;
        const long long row = tile(at).row + v / group, head = at.kv_head * group + v % group;
        auto* out =
            static_cast<unsigned short*>(a.out) + (row * a.n_heads + head) * kDim + 16 * warp() + g;
        out[0] = bf16_bits(__fdiv_rn(o[c][e] + 0.0f, notes().total[v]));
        out[8] = bf16_bits(__fdiv_rn(o[c][2 + e] + 0.0f, notes().total[v]));
      }
  }

  // Whether this block is the last to bring in results of the cut, all of which are then there.
  __device__ __forceinline__ bool arrive(const Stand& at, ListCut* cut, int n) const {
    __syncthreads();
    if (thread() == 0) {
      __threadfence();
      const bool is_last = atomicAdd(&cut->n_done, n) + n == n_chunks(at);
      if (is_last) cut->n_done = 0;
      notes().is_last = is_last;
      __threadfence();
    }
    __syncthreads();
    return notes().is_last != 0;
  }

  // The scales of kSlots records from slot0 on, a vector a warp and a record a lane, and each one's
  // sum under its scale; M goes on in notes().max. They lie where the weights were: [slot][vector].
  template <int kColumns>
  __device__ __forceinline__ void weigh(const Stand& at, const ListCut& cut, int slot0,
                                        int n_slots) const {
    auto* scales = reinterpret_cast<float2*>(weights());
    auto* sums = reinterpret_cast<float*>(scales + kSlots * kColumns * 8);
    const int l = lane();
    for (int v = warp(); v < n_vectors(at); v += kWarps) {
      const float2 record = slot0 + l < n_slots ? __ldcg(record_max(at, cut, slot0 + l) + v)
                                                : make_float2(-INFINITY, 0.0f);
      const float before_all = notes().max[v];
      float upto = record.x;
#pragma unroll
      for (int d = 1; d < 32; d <<= 1) {
        const float other = __shfl_up_sync(~0u, upto, d);
        if (l >= d) upto = fmaxf(upto, other);
      }
      const float previous = __shfl_up_sync(~0u, upto, 1);
      const float before = l == 0 ? before_all : fmaxf(before_all, previous);
      upto = fmaxf(before_all, upto);
      const float b = weight_under(record.x, upto);
      scales[l * kColumns * 8 + v] = make_float2(weight_under(before, upto), b);
      sums[l * kColumns * 8 + v] = record.y * b;
      if (l == 31) notes().max[v] = upto;
    }
  }

  // Adds up n records from slot0 on, several in flight.
  template <int kColumns>
  __device__ __forceinline__ void add_records(const Stand& at, const ListCut& cut, int slot0, int n,
                                              Outputs<kColumns>& total) const {
    // As many as leave registers for the rest: a decode may have hundreds, a tile has few.
    constexpr int kBatch = kColumns > 1 ? 2 : kDim > 128 ? 8 : 16;
    const auto* scales = reinterpret_cast<const float4*>(weights());
    for (int r0 = 0; r0 < n; r0 += kBatch) {
      float4 batch[kBatch][kColumns];
#pragma unroll
      for (int r = 0; r < kBatch; ++r)
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          if (r0 + r < n && holds(at, c))
            batch[r][c] = __ldcg(record_o(at, cut, slot0 + r0 + r, c));
#pragma unroll
      for (int r = 0; r < kBatch; ++r)
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          if (r0 + r >= n || !holds(at, c)) continue;
          const float o[4] = {batch[r][c].x, batch[r][c].y, batch[r][c].z, batch[r][c].w};
          fold<kColumns>(total, c, o, scales[((r0 + r) * kColumns + c) * 4 + (lane() & 3)]);
        }
    }
  }

  // Folds all records of the cut and writes the output.
  template <int kColumns>
  __device__ __forceinline__ void fold_records(const Stand& at, const ListCut& cut) const {
    const auto* scales = reinterpret_cast<const float2*>(weights());
    const auto* sums = reinterpret_cast<const float*>(scales + kSlots * kColumns * 8);
    const int n_slots = n_chunks(at) - cut.head_chunks + 1, v = thread();
    if (v < kTileVectors) notes().max[v] = -INFINITY;
    Outputs<kColumns> total = {};
    float total_sum = 0;
    __syncthreads();
    for (int slot0 = 0; slot0 < n_slots; slot0 += kSlots) {
      weigh<kColumns>(at, cut, slot0, n_slots);
      __syncthreads();
      const int n = min(kSlots, n_slots - slot0);
      add_records<kColumns>(at, cut, slot0, n, total);
      if (v < n_vectors(at))
        for (int r = 0; r < n; ++r) {
          const int i = r * kColumns * 8 + v;
          total_sum = __fmaf_rn(total_sum, scales[i].x, sums[i]);
        }
      __syncthreads();
    }
    if (v < n_vectors(at)) notes().total[v] = total_sum;
    __syncthreads();
    write_out<kColumns>(at, total);
  }

  // --- the walk

  // What a vector's own thread keeps between chunks.
  struct State {
    float max = -INFINITY, sum = 0;  // M and L
    float chunk_max = 0;
  };

  static __device__ __forceinline__ void scale_fold(int n_places, State& state) {
    const int v = thread();
    if (v >= n_places) return;
    state.chunk_max = greatest_of(v);
    const float greatest = fmaxf(state.max, state.chunk_max);
    notes().scales[v] =
        make_float2(weight_under(state.max, greatest), weight_under(state.chunk_max, greatest));
    state.max = greatest;
  }

  // Half of what comes next: queries and keys, or values.
  __device__ __forceinline__ void fetch_scored(const Stand& next) const {
    if (next.chunk == 0) fetch_queries(next);
    fetch_keys(next);
  }

  // From scores to the chunk's o, with the copies of what comes next on the way.
  template <int kColumns>
  __device__ __forceinline__ void attend(const Stand& at, const Stand& next, State& state,
                                         Outputs<kColumns>& o) const {
    const bool more = next.left > 0, new_run = more && next.chunk == 0;
    Scores<kColumns> s = {};
    int next_tile = 0;
    if (new_run && thread() < kTileInts) next_tile = tile_int(next.tile);
    if (aliased)
      wait_copies<0>();
    else
      wait_copies<1>();
    __syncthreads();
    if (new_run && thread() < kTileInts) notes().tiles[next.turn][thread()] = next_tile;
    multiply_keys<kColumns>(at, s);
    mask<kColumns>(at, s);
    __syncthreads();
    if (aliased)
      fetch_values(at);
    else if (more)
      fetch_scored(next);
    close_copies();
    soften<kColumns>(at, s);
    scale_fold(kColumns * 8, state);
    if (aliased)
      wait_copies<0>();
    else
      wait_copies<1>();
    __syncthreads();
    float sum[4];
    multiply_values<kColumns>(at, o, sum);
    if (warp() < kColumns && lane() < 4) {
      notes().sum[warp() * 8 + 2 * lane()] = sum[0];
      notes().sum[warp() * 8 + 2 * lane() + 1] = sum[1];
    }
    if (is_spoilt(at)) multiply_by_row<kColumns>(at, o);
    __syncthreads();
    if (more && aliased)
      fetch_scored(next);
    else if (more)
      fetch_values(next);
    close_copies();
  }

  // The chunks of one KV head of a tile that fall to this share; leaves `at` behind them.
  template <int kColumns>
  __device__ __forceinline__ void run(Stand& at) const {
    const Stand begin = at;
    const int n = min(at.left, n_chunks(at) - at.chunk), v = thread();
    const bool is_head = at.chunk == 0, is_whole = is_head && n == n_chunks(at);
    ListCut* cut = is_whole ? nullptr : cuts() + (is_head ? share().last_cut : share().first_cut);
    Outputs<kColumns> total = {};
    State state;
    for (int i = 0; i < n; ++i) {
      const Stand next = after(at);
      Outputs<kColumns> o;
      attend<kColumns>(at, next, state, o);
      const float sum = v < kColumns * 8 ? notes().sum[v] : 0.0f;
      if (is_head) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          fold<kColumns>(total, c, o[c],
                         reinterpret_cast<const float4*>(notes().scales)[c * 4 + (lane() & 3)]);
        if (v < kColumns * 8)
          state.sum = __fmaf_rn(state.sum, notes().scales[v].x, sum * notes().scales[v].y);
      } else {
        keep<kColumns>(at, *cut, at.chunk - cut->head_chunks + 1, o, state.chunk_max, sum);
      }
      at = next;
    }
    if (is_whole) {
      if (v < kColumns * 8) notes().total[v] = state.sum;
      __syncthreads();
      write_out<kColumns>(begin, total);
      return;
    }
    if (is_head) keep<kColumns>(begin, *cut, 0, total, state.max, state.sum);
    if (arrive(begin, cut, n)) fold_records<kColumns>(begin, *cut);
  }

  __device__ __forceinline__ void clear_padding() const {
    const long long width = a.n_heads * kDim;
    for (long long row = blockIdx.x; row < a.n_rows; row += gridDim.x)
      if (a.positions[row] < 0)
        for (long long i = thread(); i < width; i += kThreads)
          static_cast<unsigned short*>(a.out)[row * width + i] = 0;
  }

  // Everything a block does. The list is read, and of the first chunk all that earlier steps left
  // in the cache, before the previous kernel has ended.
  __device__ __forceinline__ void walk() const {
    const ListShare mine = share();
    Stand at{0, mine.tile, mine.kv_head, mine.chunk, mine.n_chunks};
    if (at.left == 0 && blockIdx.x >= a.n_rows) return;
    if (at.left > 0 && thread() < kTileInts) notes().tiles[0][thread()] = tile_int(at.tile);
    __syncthreads();
    int fresh = 0;
    if (at.left > 0) note_seen(at);
    if (at.left > 0 && !aliased) {
      fresh = first_fresh(at);
      fetch_keys(at, Part::old, fresh);
      close_copies();
      fetch_values(at, tile(at).first, tile(at).last, Part::old, fresh);
      close_copies();
    }
    wait_for_previous_kernel();
    if (at.left > 0) {
      copy_queries(at);
      fetch_keys(at, Part::fresh, fresh);
      close_copies();
      if (!aliased) fetch_values(at, tile(at).first, tile(at).last, Part::fresh, fresh);
      close_copies();
    }
    clear_padding();  // looks up positions while the copies are on their way
    while (at.left > 0) {
      if (kMaxColumns == 1 || tile(at).columns == 1)
        run<1>(at);
      else
        run<kMaxColumns>(at);
    }
  }
};

}  // namespace millrace::attention
