#include "kernels/sample/rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/sample/plan.h"
#include "kernels/sample/ranked.h"
#include "kernels/topk/order.h"
#include "kernels/topk/row.h"

namespace millrace::sample {
namespace {

static_assert(kMaxTop <= kFirst);

// The first candidates of a part of a row, in topk's order.
struct Shortlist {
  int n = 0, next = 0;
  float value[kFirst];
  int index[kFirst];

  bool is_empty() const { return next == n; }
  topk::Candidate head() const { return {topk::key_of(value[next]), index[next]}; }
};

// What a lane found in its part of a row.
struct Part {
  Survey x, y;  // of the logits, and edited
  Shortlist first, top;
};

struct LaneParts {
  Part *begin, *end;

  float largest(Survey Part::*which) const {
    float out = kNever;
    for (const Part* p = begin; p < end; ++p) out = std::max(out, (p->*which).largest);
    return out;
  }
  bool is_bad() const {
    for (const Part* p = begin; p < end; ++p)
      if (p->x.is_bad) return true;
    return largest(&Part::x) == kNever;
  }
  // Calls put(value, index) for the first k of all parts together.
  template <class Put>
  void merge(Shortlist Part::*which, long long k, Put&& put) const {
    for (Part* p = begin; p < end; ++p) (p->*which).next = 0;
    for (long long j = 0; j < k; ++j) {
      Shortlist* best = nullptr;
      for (Part* p = begin; p < end; ++p) {
        Shortlist& list = p->*which;
        if (list.is_empty()) continue;
        if (best == nullptr || topk::before(list.head(), best->head())) best = &list;
      }
      if (best == nullptr) return;
      put(best->value[best->next], best->index[best->next]);
      ++best->next;
    }
  }
};

// Of a row under work: the edited logits where edits, or a long list of candidates, ask for a copy,
// and the sums of its blocks.
struct RowMemory {
  float* y;                 // [n]
  double *x_sums, *y_sums;  // [n_blocks]
};

// The workspace: per lane a row's memory and the lane's own, and parts: lane l's of the i-th shared
// row is number l + i, which no other pair has, since shares ascend with both.
class Workspace {
 public:
  Workspace(const Args& a, int n_lanes, std::byte* begin)
      : n_(a.n), n_blocks_((a.n + kBlock - 1) / kBlock), n_lanes_(n_lanes), begin_(begin) {}

  size_t bytes() const { return parts_bytes() + static_cast<size_t>(n_lanes_) * lane_bytes(); }
  Part* part(long long i) const { return reinterpret_cast<Part*>(begin_) + i; }
  RowMemory row(long long i) const {
    auto* sums = reinterpret_cast<double*>(lane(i));
    return {reinterpret_cast<float*>(sums + 2 * n_blocks_), sums, sums + n_blocks_};
  }
  RankedMemory ranked(long long i) const {
    auto* words = reinterpret_cast<int32_t*>(lane(i)) + 4 * n_blocks_ + even(n_);
    return {reinterpret_cast<float*>(words), words + even(n_), words + 2 * even(n_)};
  }
  long long n_blocks() const { return n_blocks_; }

 private:
  static long long even(long long n) { return (n + 1) / 2 * 2; }
  static size_t round_up(size_t bytes) { return (bytes + 127) / 128 * 128; }
  size_t parts_bytes() const { return round_up(2 * static_cast<size_t>(n_lanes_) * sizeof(Part)); }
  size_t lane_bytes() const {
    const long long words = 4 * n_blocks_ + 3 * even(n_) + RankedMemory::selection_words(n_);
    return round_up(static_cast<size_t>(words) * sizeof(int32_t));
  }
  std::byte* lane(long long i) const {
    return begin_ + parts_bytes() + static_cast<size_t>(i) * lane_bytes();
  }

  const long long n_, n_blocks_;
  const int n_lanes_;
  std::byte* const begin_;
};

// One row under work, by one lane or several. Each function is a phase.
class Job {
 public:
  Job(const Args& a, long long r, const Passes& passes, const RowMemory& memory)
      : a_(a),
        r_(r),
        passes_(passes),
        memory_(memory),
        plan_(plan_of(a, r)),
        edits_(edits_of(a, r)) {}

  void survey(Span entries, Part& out, int32_t* scratch) const;
  void weigh(Span entries, const LaneParts& parts) const;
  void finish(const LaneParts& parts, const RankedMemory& memory) const;

 private:
  const float* y() const { return edits_.any() ? memory_.y : plan_.logits; }
  void edit(Span entries) const;
  int choose(const LaneParts& parts, const RankedMemory& memory) const;
  void put_logprobs(const LaneParts& parts) const;
  double sum(const double* sums) const;

  long long n_first() const {
    if (plan_.greedy) return 1;
    return std::min(kFirst, plan_.n_candidates);
  }
  // The sums over the vocabulary are most of the work, so each is made only where it is used.
  bool uses_mass() const { return !plan_.greedy && !plan_.limited; }
  bool is_mass_of_x() const { return plan_.wants_logprob && !edits_.any() && plan_.scale == 1.0f; }

  const Args& a_;
  const long long r_;
  const Passes& passes_;
  const RowMemory memory_;
  const Plan plan_;
  const Edits edits_;
};

void select(const float* row, Span entries, long long k, Shortlist& out, int32_t* scratch) {
  const long long n = entries.end - entries.begin;
  out.n = static_cast<int>(std::min(n, k));
  topk::avx2::select_row({row + entries.begin, n, out.n, out.value, out.index}, scratch);
  for (int j = 0; j < out.n; ++j) out.index[j] += static_cast<int>(entries.begin);
}

void Job::edit(Span entries) const {
  const float* x = plan_.logits + entries.begin;
  float* y = memory_.y + entries.begin;
  const long long n = entries.end - entries.begin;
  if (edits_.mask != nullptr)
    passes_.allow(x, edits_.mask + entries.begin / 32, y, n);
  else
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
  apply_lists(a_, edits_, {entries.begin, entries.end}, y);
}

void Job::survey(Span entries, Part& out, int32_t* scratch) const {
  const long long n = entries.end - entries.begin;
  out.x = out.y = passes_.survey(plan_.logits + entries.begin, n);
  if (!edits_.any()) {
    select(plan_.logits, entries, std::max(n_first(), plan_.n_top), out.first, scratch);
    return;
  }
  edit(entries);
  out.y = passes_.survey(memory_.y + entries.begin, n);
  select(memory_.y, entries, n_first(), out.first, scratch);
  if (plan_.n_top > 0) select(plan_.logits, entries, plan_.n_top, out.top, scratch);
}

void Job::weigh(Span entries, const LaneParts& parts) const {
  if (parts.is_bad()) return;
  const long long n = entries.end - entries.begin, block = entries.begin / kBlock;
  if (plan_.wants_logprob)
    passes_.weigh(plan_.logits + entries.begin, n, parts.largest(&Part::x), 1.0f,
                  memory_.x_sums + block);
  if (uses_mass() && !is_mass_of_x())
    passes_.weigh(y() + entries.begin, n, parts.largest(&Part::y), plan_.scale,
                  memory_.y_sums + block);
}

double Job::sum(const double* sums) const {
  double out = 0;
  for (long long i = 0; i < a_.n; i += kBlock) out += *sums++;
  return out;
}

int Job::choose(const LaneParts& parts, const RankedMemory& memory) const {
  const float largest = parts.largest(&Part::y);
  if (largest == kNever) return kNoneAllowed;
  Ranked ranked(plan_, passes_, largest, memory);
  parts.merge(&Part::first, n_first(), [&](float y, int index) { ranked.push(y, index); });
  if (plan_.greedy) return memory.indices[0];
  const double mass = uses_mass() ? sum(is_mass_of_x() ? memory_.x_sums : memory_.y_sums) : 0;
  int token = ranked.draw(mass);
  if (token < 0 && !edits_.any())
    std::memcpy(memory_.y, plan_.logits, static_cast<size_t>(a_.n) * sizeof(float));
  while (token < 0) {
    ranked.extend(memory_.y, a_.n);
    token = ranked.draw(mass);
  }
  return token;
}

void Job::put_logprobs(const LaneParts& parts) const {
  const float largest = parts.largest(&Part::x);
  const double mass = sum(memory_.x_sums);
  if (a_.token[r_] >= 0) a_.logprob[r_] = logprob_of(plan_.logits[a_.token[r_]], largest, mass);
  long long at = r_ * a_.max_top;
  parts.merge(edits_.any() ? &Part::top : &Part::first, plan_.n_top, [&](float x, int index) {
    a_.top_token[at] = index;
    a_.top_logprob[at++] = logprob_of(x, largest, mass);
  });
}

void Job::finish(const LaneParts& parts, const RankedMemory& memory) const {
  put_nothing(a_, r_, kNotFinite);
  if (parts.is_bad()) return;
  a_.token[r_] = choose(parts, memory);
  if (plan_.wants_logprob) put_logprobs(parts);
}

// The rows from `first` on, fewer than lanes: their blocks stand in one line, which is cut into a
// share per lane.
class SharedRows {
 public:
  SharedRows(const Args& a, const Exec& exec, const Passes& passes, const Workspace& workspace)
      : a_(a),
        exec_(exec),
        passes_(passes),
        workspace_(workspace),
        n_rows_(a.n_rows % exec.n_lanes),
        first_(a.n_rows - n_rows_),
        mine_(share(exec.lane)) {}

  void run() const {
    survey();
    exec_.sync();
    for (long long i = row_of(mine_.begin); i < end_row(); ++i) job(i).weigh(entries(i), parts(i));
    exec_.sync();
    if (exec_.lane < n_rows_)
      job(exec_.lane).finish(parts(exec_.lane), workspace_.ranked(exec_.lane));
  }

 private:
  Share share(int lane) const {
    return share_of(n_rows_ * workspace_.n_blocks(), lane, exec_.n_lanes);
  }
  long long row_of(long long block) const { return block / workspace_.n_blocks(); }
  // After the last row that this lane has a block of; none where there are more lanes than blocks.
  long long end_row() const { return mine_.begin == mine_.end ? 0 : row_of(mine_.end - 1) + 1; }
  long long begin(long long i) const { return i * workspace_.n_blocks(); }  // its first block
  Job job(long long i) const { return {a_, first_ + i, passes_, workspace_.row(i)}; }
  // What of row i is this lane's.
  Span entries(long long i) const {
    const long long from = std::max<long long>(mine_.begin, begin(i));
    const long long to = std::min<long long>(mine_.end, begin(i + 1));
    return {(from - begin(i)) * kBlock, std::min((to - begin(i)) * kBlock, a_.n)};
  }
  // A lane without a block still says so, since others look at its part.
  void survey() const {
    if (mine_.begin == mine_.end) {
      Part& part = *workspace_.part(exec_.lane + row_of(mine_.begin));
      part.x = part.y = {kNever, false};
      part.first.n = part.top.n = 0;
    }
    int32_t* scratch = workspace_.ranked(exec_.lane).selection;
    for (long long i = row_of(mine_.begin); i < end_row(); ++i)
      job(i).survey(entries(i), *workspace_.part(exec_.lane + i), scratch);
  }
  LaneParts parts(long long i) const {
    int lane = 0;
    while (share(lane).end <= begin(i)) ++lane;
    const int first = lane;
    while (share(lane).end < begin(i + 1)) ++lane;
    return {workspace_.part(first + i), workspace_.part(lane + i) + 1};
  }

  const Args& a_;
  const Exec& exec_;
  const Passes& passes_;
  const Workspace& workspace_;
  const long long n_rows_, first_;
  const Share mine_;
};

}  // namespace

size_t rows_workspace_bytes(const Args& a, int n_lanes) {
  return Workspace(a, n_lanes, nullptr).bytes();
}

Status run_rows(const Args& a, Exec& exec, const Passes& passes) {
  const Workspace workspace(a, exec.n_lanes, exec.workspace);
  const long long n_shared = a.n_rows % exec.n_lanes;
  const Share mine = exec.share(a.n_rows - n_shared);
  Part& part = *workspace.part(exec.lane);
  const RankedMemory memory = workspace.ranked(exec.lane);
  for (long long r = mine.begin; r < mine.end; ++r) {
    const Job job(a, r, passes, workspace.row(exec.lane));
    job.survey({0, a.n}, part, memory.selection);
    job.weigh({0, a.n}, {&part, &part + 1});
    job.finish({&part, &part + 1}, memory);
  }
  if (n_shared == 0) return {};
  if (n_shared < a.n_rows) exec.sync();  // the memory of lanes becomes that of rows
  SharedRows(a, exec, passes, workspace).run();
  return {};
}

}  // namespace millrace::sample
