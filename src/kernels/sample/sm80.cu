// Three kernels. survey: blocks of a grid over pieces of the rows look whether the logits are
// finite, edit them into the workspace, and find the first candidate. weigh: the sums of
// exponentials, 16 threads to each block of 1,024 entries. finish: one block of threads a row ranks
// the candidates and draws. The arithmetic is the CPU's, so tokens and log-probabilities are too.
#include <cuda_runtime.h>

#include "kernels/device.cuh"
#include "kernels/sample/device.h"
#include "kernels/sample/plan.h"
#include "kernels/sample/ranked.cuh"

namespace millrace::sample {
namespace {

constexpr int kSurveyThreads = 256;
constexpr int kEach = 16;  // entries of a thread
constexpr int kPiece = kSurveyThreads * kEach;
constexpr int kWeighThreads = 64;
constexpr int kBlocksAtOnce = kWeighThreads / 16;

__host__ __device__ long long divide_up(long long a, long long b) {
  return (a + b - 1) / b;
}

// What was found in a piece of a row: the first candidates of the logits and of the edited ones;
// 0 in x where a logit is NaN or +Inf.
struct Found {
  Candidate x, y;
};

struct Space {
  Found* found;             // [n_rows][n_pieces]
  double *x_sums, *y_sums;  // [n_rows][n_blocks]
  float* y;                 // [n_rows][n], the edited logits
  long long n_pieces, n_blocks;
};

bool has_edits(const Args& a) {
  return a.said_begin != nullptr || a.bias_begin != nullptr || a.mask != nullptr;
}

Space space_of(const Args& a, void* workspace) {
  Space s = {};
  s.n_pieces = divide_up(a.n, kPiece);
  s.n_blocks = divide_up(a.n, kBlock);
  s.found = static_cast<Found*>(workspace);
  s.x_sums = reinterpret_cast<double*>(s.found + a.n_rows * s.n_pieces);
  s.y_sums = s.x_sums + a.n_rows * s.n_blocks;
  s.y = reinterpret_cast<float*>(s.y_sums + a.n_rows * s.n_blocks);
  return s;
}

// One row for the threads that work on it.
struct Job {
  const Args& a;
  const Space& s;
  const long long r;
  const Plan plan;
  const Edits edits;

  __device__ Job(const Args& args, const Space& space, long long row)
      : a(args), s(space), r(row), plan(plan_of(args, row)), edits(edits_of(args, row)) {}

  __device__ const float* y() const { return edits.any() ? s.y + r * a.n : plan.logits; }
  // The sums over the vocabulary are most of the work, so each is made only where it is used.
  __device__ bool uses_mass() const { return !plan.greedy && !plan.limited; }
  __device__ bool is_mass_of_x() const {
    return plan.wants_logprob && !edits.any() && plan.scale == 1.0f;
  }
};

__global__ void __launch_bounds__(kSurveyThreads) survey_kernel(Args a, Space s) {
  __shared__ float piece[kPiece];
  let_next_kernel_start();
  wait_for_previous_kernel();
  const Job job(a, s, blockIdx.y);
  const long long begin = static_cast<long long>(blockIdx.x) * kPiece;
  const long long n = min(static_cast<long long>(kPiece), a.n - begin);
  const int mine = threadIdx.x;
  float x[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (const int i = mine + j * kSurveyThreads; i < n) x[j] = __ldcg(job.plan.logits + begin + i);
  Candidate best = 0;
  bool is_bad = false;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = mine + j * kSurveyThreads;
    if (i >= n) break;
    is_bad |= !(x[j] <= kMostFloat);
    best = max(best, topk::device_candidate(x[j], begin + i));
    if (job.edits.any()) piece[i] = job.edits.allows(begin + i) ? x[j] : kNever;
  }
  Found found = {topk::greatest_of_block<kSurveyThreads>(best), 0};
  found.y = found.x;
  if (job.edits.any()) {
    // A thread edits what it loaded, so that nobody waits and a list's order is kept.
    apply_lists(a, job.edits, {begin, begin + n, kSurveyThreads, mine}, piece);
    best = 0;
    for (int i = mine; i < n; i += kSurveyThreads) {
      s.y[job.r * a.n + begin + i] = piece[i];
      best = max(best, topk::device_candidate(piece[i], begin + i));
    }
    found.y = topk::greatest_of_block<kSurveyThreads>(best);
  }
  if (__syncthreads_or(is_bad)) found.x = 0;
  if (mine == 0) s.found[job.r * s.n_pieces + blockIdx.x] = found;
}

// What was found in all pieces of a row, by the threads of a warp together.
__device__ Found found_in(const Job& job) {
  Found all = {0, 0};
  bool is_bad = false;
  for (long long i = threadIdx.x % 32; i < job.s.n_pieces; i += 32) {
    const Found* piece = job.s.found + job.r * job.s.n_pieces + i;
    const Candidate x = __ldcg(&piece->x);
    is_bad |= x == 0;
    all.x = max(all.x, x);
    all.y = max(all.y, __ldcg(&piece->y));
  }
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
    all.x = max(all.x, __shfl_xor_sync(~0u, all.x, d));
    all.y = max(all.y, __shfl_xor_sync(~0u, all.y, d));
  }
  if (__any_sync(~0u, is_bad)) all.x = 0;
  return all;
}

// Whether nothing can be drawn from the logits.
__device__ bool is_unusable(const Found& all) {
  return all.x == 0 || topk::value_of(all.x) == kNever;
}

// The sum of a block in the class's order: this thread's of its 16 lanes, folded.
__device__ double block_sum(const float* x, long long n, float largest, float scale) {
  double sum = 0;
#pragma unroll 16
  for (int i = threadIdx.x % 16; i < kBlock; i += 16)
    if (i < n) sum += math::cuda::exp((__ldcg(x + i) - largest) * scale);
#pragma unroll
  for (int d = 8; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  return sum;
}

__global__ void __launch_bounds__(kWeighThreads) weigh_kernel(Args a, Space s) {
  let_next_kernel_start();
  wait_for_previous_kernel();
  const Job job(a, s, blockIdx.y);
  if (!job.plan.wants_logprob && !job.uses_mass()) return;
  const Found all = found_in(job);
  if (is_unusable(all)) return;
  const long long block = static_cast<long long>(blockIdx.x) * kBlocksAtOnce + threadIdx.x / 16;
  const long long begin = block * kBlock, n = a.n - begin;  // of none where it lies past the end
  const bool stores = threadIdx.x % 16 == 0 && n > 0;
  if (job.plan.wants_logprob) {
    const double sum = block_sum(job.plan.logits + begin, n, topk::value_of(all.x), 1.0f);
    if (stores) s.x_sums[job.r * s.n_blocks + block] = sum;
  }
  if (job.uses_mass() && !job.is_mass_of_x()) {
    const double sum = block_sum(job.y() + begin, n, topk::value_of(all.y), job.plan.scale);
    if (stores) s.y_sums[job.r * s.n_blocks + block] = sum;
  }
}

// The sums of a row's blocks, added from the first to the last by thread 0; all threads fetch them.
__device__ double sum_of_blocks(const Job& job, const double* sums) {
  __shared__ double fetched[kRankThreads];
  double out = 0;
  for (long long first = 0; first < job.s.n_blocks; first += kRankThreads) {
    const int n =
        static_cast<int>(min(job.s.n_blocks - first, static_cast<long long>(kRankThreads)));
    __syncthreads();
    if (threadIdx.x < n)
      fetched[threadIdx.x] = __ldcg(sums + job.r * job.s.n_blocks + first + threadIdx.x);
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < n; ++i) out += fetched[i];
  }
  return out;
}

// One row's draw, by a block of threads. All of them call every function; thread 0 adds up.
class Drawing {
 public:
  __device__ Drawing(const Job& job, float largest, DeviceRanked& ranked, RankedShared& shared)
      : job_(job), largest_(largest), ranked_(ranked), shared_(shared) {}

  __device__ int draw(double row_mass);

 private:
  // The candidates in order, until visit(weight, index, rank) says that it is over, or they are.
  template <class Visit>
  __device__ void walk(Visit visit);
  __device__ void weigh();
  // Before this one the list ends.
  __device__ bool ends(float weight, long long rank) const {
    return rank > 0 && (weight < job_.plan.min_p || weight == 0);
  }

  const Job& job_;
  const float largest_;
  DeviceRanked& ranked_;
  RankedShared& shared_;
  long long weighed_ = -1;  // the batch whose weights are there, by its first rank
};

__device__ void Drawing::weigh() {
  if (weighed_ == ranked_.first()) return;
  weighed_ = ranked_.first();
  for (int i = threadIdx.x; i < ranked_.n(); i += kRankThreads)
    shared_.weight[i] =
        math::cuda::exp((topk::value_of(ranked_.at(i)) - largest_) * job_.plan.scale);
  __syncthreads();
}

template <class Visit>
__device__ void Drawing::walk(Visit visit) {
  __shared__ int is_over;  // of this walk alone: each visit has a function of its own
  for (ranked_.rewind(); ranked_.n() > 0; ranked_.next()) {
    weigh();
    if (threadIdx.x == 0) {
      is_over = 0;
      const long long most = job_.plan.n_candidates - ranked_.first();
      for (int i = 0; i < ranked_.n() && is_over == 0; ++i)
        is_over = i >= most ||
                  visit(shared_.weight[i], topk::index_of(ranked_.at(i)), ranked_.first() + i);
    }
    __syncthreads();
    if (is_over != 0) return;
  }
}

// As Ranked::draw of ranked.cpp: what top-k keeps adds up to the total, top-p and min-p end the
// list, and the draw falls on one of what is left.
__device__ int Drawing::draw(double row_mass) {
  const Plan& plan = job_.plan;
  double total = row_mass;
  if (plan.limited) {
    Running running;
    walk([&](float weight, int, long long) { return running.add(weight), weight == 0; });
    total = running.sum();
  }
  double mass = row_mass;
  long long n_kept = plan.n_candidates;
  if (plan.cuts()) {
    Running running;
    walk([&](float weight, int, long long rank) {
      n_kept = rank;
      if (ends(weight, rank)) return true;
      n_kept = rank + 1;
      return running.add(weight) >= plan.top_p * total && plan.top_p < 1;
    });
    mass = running.sum();
  }
  int token = -1;
  Running running;
  walk([&](float weight, int index, long long rank) {
    if (rank >= n_kept || ends(weight, rank)) return true;
    token = index;
    return running.add(weight) > plan.u * mass;
  });
  return token;
}

// The first n_top of the logits, with their log-probabilities, by thread 0.
__device__ void put_most_likely(const Job& job, DeviceRanked& ranked, float largest, double mass) {
  const Args& a = job.a;
  for (ranked.rewind(); ranked.n() > 0 && ranked.first() < job.plan.n_top; ranked.next())
    for (int i = 0; threadIdx.x == 0 && i < ranked.n(); ++i) {
      const long long rank = ranked.first() + i;
      if (rank >= job.plan.n_top) break;
      a.top_token[job.r * a.max_top + rank] = topk::index_of(ranked.at(i));
      a.top_logprob[job.r * a.max_top + rank] =
          logprob_of(topk::value_of(ranked.at(i)), largest, mass);
    }
  __syncthreads();
}

__global__ void __launch_bounds__(kRankThreads) finish_kernel(Args a, Space s) {
  __shared__ RankedShared shared;
  let_next_kernel_start();
  wait_for_previous_kernel();
  const Job job(a, s, blockIdx.x);
  const bool writes = threadIdx.x == 0;
  if (writes) put_nothing(a, job.r, kNotFinite);
  const Found all = found_in(job);
  if (is_unusable(all)) return;
  const float x_largest = topk::value_of(all.x), y_largest = topk::value_of(all.y);
  const double x_mass = job.plan.wants_logprob ? sum_of_blocks(job, s.x_sums) : 0;
  int token = y_largest == kNever ? kNoneAllowed : topk::index_of(all.y);
  DeviceRanked ranked(job.y(), a.n, y_largest, shared);
  if (token >= 0 && !job.plan.greedy) {
    const double mass = !job.uses_mass()     ? 0
                        : job.is_mass_of_x() ? x_mass
                                             : sum_of_blocks(job, s.y_sums);
    token = Drawing(job, y_largest, ranked, shared).draw(mass);
  }
  if (writes) a.token[job.r] = token;
  if (writes && job.plan.wants_logprob && token >= 0)
    a.logprob[job.r] = logprob_of(__ldcg(job.plan.logits + token), x_largest, x_mass);
  if (job.plan.n_top == 0) return;
  DeviceRanked of_logits(job.plan.logits, a.n, x_largest, shared);
  put_most_likely(job, job.edits.any() ? of_logits : ranked, x_largest, x_mass);
}

}  // namespace

bool takes_sm80(const Args& a) {
  return a.n_rows <= 65535;
}

size_t sm80_workspace_bytes(const Args& a, int) {
  const Space s = space_of(a, nullptr);
  const long long each = s.n_pieces * static_cast<long long>(sizeof(Found)) +
                         2 * s.n_blocks * static_cast<long long>(sizeof(double)) +
                         (has_edits(a) ? a.n * static_cast<long long>(sizeof(float)) : 0);
  return static_cast<size_t>(a.n_rows * each);
}

int launch_sm80(const Args& a, void* stream, void* workspace) {
  if (a.n_rows == 0) return cudaSuccess;
  const Space s = space_of(a, workspace);
  const auto n_rows = static_cast<unsigned>(a.n_rows);
  const dim3 pieces(static_cast<unsigned>(s.n_pieces), n_rows);
  const dim3 blocks(static_cast<unsigned>(divide_up(s.n_blocks, kBlocksAtOnce)), n_rows);
  if (int e = overlapped_launch(survey_kernel, {pieces, kSurveyThreads, 0}, stream, a, s);
      e != cudaSuccess)
    return e;
  if (int e = overlapped_launch(weigh_kernel, {blocks, kWeighThreads, 0}, stream, a, s);
      e != cudaSuccess)
    return e;
  return overlapped_launch(finish_kernel, {dim3(n_rows), kRankThreads, 0}, stream, a, s);
}

}  // namespace millrace::sample
