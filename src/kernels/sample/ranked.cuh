// A row's candidates in topk's order, for one block of threads: a batch at a time in shared memory,
// as many batches as a draw asks for. A batch is what lies between the one before it and a bound,
// which is found by counting. For the first batch logits are counted by how far they are below the
// largest: that spreads a language model's over the bins. Where too many lie close together, and
// for further batches, the bound is found exactly: candidates are distinct integers, and 11 bits at
// a time narrow it down.
#pragma once

#include "kernels/topk/tile.cuh"

namespace millrace::sample {

inline constexpr int kRankThreads = 1024;
inline constexpr int kBatch = 2048;    // candidates at once
inline constexpr int kDigitBits = 11;  // of a candidate, counted at once
inline constexpr int kBins = 1 << kDigitBits;
inline constexpr float kBinsPerLogit = 64;  // 32 below the largest are counted
// Of the first batch: nearly all of a language model's mass. A draw that needs more needs many
// more.
inline constexpr unsigned kWantedFirst = 256, kWantedNext = 1536;
static_assert(kBins == 2 * kRankThreads);

using Candidate = topk::DeviceCandidate;

// Where enough have come, counting from the greatest bin down: which one, and how many before and
// after it. Fewer than enough in all: -1.
struct Cut {
  int bin;
  unsigned before, after;
};

struct RankedShared {
  Candidate batch[kBatch];
  float weight[kBatch];
  unsigned bins[kBins];
  unsigned warp_sums[kRankThreads / 32];
  Cut cut;
  int n;  // of the batch
};

// One block's walk over a row. All threads call every function.
class DeviceRanked {
 public:
  __device__ DeviceRanked(const float* y, long long n, float largest, RankedShared& shared)
      : y_(y), n_(n), largest_(largest), shared_(shared) {}

  // To the first batch.
  __device__ void rewind() {
    if (below_ != kAll && first_ == 0) return;
    __syncthreads();
    below_ = kAll;
    first_ = 0;
    shared_.n = 0;
    next();
  }
  // The next batch; at the end one of none.
  __device__ void next() {
    __syncthreads();
    first_ += shared_.n;
    Candidate bound = below_ == kAll ? first_bound() : next_bound();
    collect(bound);
    if (shared_.n > kBatch) {
      bound = next_bound();
      collect(bound);
    }
    below_ = bound;
    sort();
  }

  __device__ int n() const { return shared_.n; }
  __device__ long long first() const { return first_; }  // rank of the batch's first
  __device__ Candidate at(int i) const { return shared_.batch[i]; }

 private:
  static constexpr Candidate kAll = ~0ull;

  template <class See>
  __device__ void each(See see) const;
  template <class BinOf>
  __device__ Cut count(BinOf bin_of, unsigned wanted);
  __device__ Candidate first_bound();
  __device__ Candidate next_bound();
  __device__ unsigned sum_before(unsigned mine) const;
  __device__ void collect(Candidate bound);
  __device__ void sort();

  const float* const y_;
  const long long n_;
  const float largest_;
  RankedShared& shared_;
  Candidate below_ = kAll;
  long long first_ = 0;
};

// Calls see(y, index) for this thread's part of the row, with several loads in flight.
template <class See>
__device__ void DeviceRanked::each(See see) const {
  constexpr int kEach = 8;
  for (long long first = threadIdx.x; first < n_; first += kEach * kRankThreads) {
    float y[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (first + j * kRankThreads < n_) y[j] = __ldcg(y_ + first + j * kRankThreads);
#pragma unroll
    for (int j = 0; j < kEach; ++j)
      if (first + j * kRankThreads < n_) see(y[j], first + j * kRankThreads);
  }
}

// The sum of the other threads' before this one.
__device__ inline unsigned DeviceRanked::sum_before(unsigned mine) const {
  unsigned sum = mine;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const unsigned other = __shfl_up_sync(~0u, sum, d);
    if (threadIdx.x % 32 >= d) sum += other;
  }
  if (threadIdx.x % 32 == 31) shared_.warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  for (int w = 0; w < threadIdx.x / 32; ++w) sum += shared_.warp_sums[w];
  return sum - mine;
}

// How many of the row are in each bin; bin_of(y, index) is negative for what does not count.
template <class BinOf>
__device__ Cut DeviceRanked::count(BinOf bin_of, unsigned wanted) {
  for (int b = threadIdx.x; b < kBins; b += kRankThreads) shared_.bins[b] = 0;
  if (threadIdx.x == 0) shared_.cut = {-1, 0, 0};
  __syncthreads();
  each([&](float y, long long i) {
    if (const int bin = bin_of(y, i); bin >= 0) atomicAdd(&shared_.bins[bin], 1u);
  });
  __syncthreads();
  const int bin = kBins - 1 - 2 * static_cast<int>(threadIdx.x);
  const unsigned here[2] = {shared_.bins[bin], shared_.bins[bin - 1]};
  unsigned before = sum_before(here[0] + here[1]);
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const unsigned after = before + here[j];
    if (before < wanted && after >= wanted) shared_.cut = {bin - j, before, after};
    before = after;
  }
  __syncthreads();
  const Cut cut = shared_.cut;
  __syncthreads();  // the next count begins with another
  return cut;
}

// Rounding moves what lies at the edge of a bin, so the batch may have more or fewer than were
// counted: whoever collects looks.
__device__ inline Candidate DeviceRanked::first_bound() {
  const Cut cut = count(
      [&](float y, long long) {
        const float down = (largest_ - y) * kBinsPerLogit;
        return down < kBins ? kBins - 1 - static_cast<int>(down) : -1;
      },
      kWantedFirst);
  const float n_bins = static_cast<float>(cut.bin < 0 ? kBins : kBins - cut.bin);
  const unsigned key = topk::device_key(largest_ - n_bins / kBinsPerLogit);
  return static_cast<Candidate>(key) << 32;
}

// The bin where enough have come ends the batch, if it fits; if not, the one before does; and if
// there is none before, the next digit decides. The last two digits overlap by two bits: 64 are not
// a multiple of 11.
__device__ inline Candidate DeviceRanked::next_bound() {
  Candidate prefix = 0;
  for (int shift = 64 - kDigitBits;; shift = shift > kDigitBits ? shift - kDigitBits : 0) {
    const int above = shift + kDigitBits;
    prefix = above >= 64 ? 0 : prefix >> above << above;
    const Cut cut = count(
        [&](float y, long long i) {
          const Candidate c = topk::device_candidate(y, i);
          const bool counts = c < below_ && (above >= 64 || c >> above == prefix >> above);
          return counts ? static_cast<int>(c >> shift & (kBins - 1)) : -1;
        },
        below_ == kAll ? kWantedFirst : kWantedNext);
    if (cut.bin < 0) return prefix;
    const Candidate begin = prefix | static_cast<Candidate>(cut.bin) << shift;
    if (cut.after <= kBatch) return begin;
    if (cut.before > 0) return begin + (Candidate{1} << shift);
    prefix = begin;
  }
}

// What is at least the bound, as far as it fits; n says how many there are.
__device__ inline void DeviceRanked::collect(Candidate bound) {
  __syncthreads();
  if (threadIdx.x == 0) shared_.n = 0;
  __syncthreads();
  each([&](float y, long long i) {
    const Candidate c = topk::device_candidate(y, i);
    if (c < bound || c >= below_) return;
    if (const int at = atomicAdd(&shared_.n, 1); at < kBatch) shared_.batch[at] = c;
  });
  __syncthreads();
}

// Descending, by a bitonic network over the next power of two.
__device__ inline void DeviceRanked::sort() {
  int size = 1;
  while (size < shared_.n) size *= 2;
  for (int i = shared_.n + threadIdx.x; i < size; i += kRankThreads) shared_.batch[i] = 0;
  __syncthreads();
  for (int run = 2; run <= size; run *= 2)
    for (int gap = run / 2; gap > 0; gap /= 2) {
      for (int t = threadIdx.x; t < size / 2; t += kRankThreads) {
        const int low = 2 * gap * (t / gap) + t % gap, high = low + gap;
        const Candidate a = shared_.batch[low], b = shared_.batch[high];
        const bool descends = (low & run) == 0;
        if ((a < b) == descends) {
          shared_.batch[low] = b;
          shared_.batch[high] = a;
        }
      }
      __syncthreads();
    }
}

}  // namespace millrace::sample
