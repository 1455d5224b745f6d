#include "machine/ceilings.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "machine/cpu.h"

namespace millrace {
namespace {

// A round must be short enough to fall between two interruptions, and long enough that starting the
// lanes (under a microsecond) does not show.
constexpr int64_t kMacRoundNs = 300'000;
constexpr int64_t kReadRoundNs = 1'000'000;
constexpr size_t kReadBytes = size_t{16} << 20;  // what a lane reads a round: 1 ms at 16 GB/s
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kBarriersPerRound = 500;

struct Rounds {
  int mac, read, barrier;
};

Rounds rounds_of(Effort effort) {
  return effort == Effort::quick ? Rounds{15, 12, 10} : Rounds{60, 48, 30};
}

// Calls round() n times; on a machine that is not quiet it stops early, once some were made and
// they took four times what n rounds should.
template <class Round>
void repeat(int n, int64_t round_ns, Round round) {
  constexpr int kAtLeast = 8;
  const int64_t late = now_ns() + 4 * n * round_ns;
  for (int i = 0; i < n && (i < kAtLeast || now_ns() < late); ++i) round();
}

// The best and the median of what was measured.
class Best {
 public:
  void add(double value) { values_.push_back(value); }
  double best() const { return *std::max_element(values_.begin(), values_.end()); }
  double spread() {
    const auto middle = values_.begin() + static_cast<ptrdiff_t>(values_.size() / 2);
    std::nth_element(values_.begin(), middle, values_.end());
    const double median = *middle;
    return (best() - median) / best();
  }

 private:
  std::vector<double> values_;
};

// The lanes that measure: lane 0 alone, and all of them.
struct Lanes {
  Team one, all;
  Lanes(int n, const std::vector<int>& cpus) : one(1), all(n, cpus) {}
};

int64_t turns_per_round(const MacLoop& loop) {
  constexpr int64_t kTrial = 2000;
  int64_t best_ns = kMacRoundNs;
  for (int i = 0; i < 10; ++i) {  // the first ones wake the wide units
    const int64_t begin = now_ns();
    loop.run(kTrial);
    best_ns = std::min(best_ns, now_ns() - begin);
  }
  return kTrial * kMacRoundNs / std::max<int64_t>(1, best_ns) + 1;
}

double mac_round(Team& team, const MacLoop& loop, int64_t n_turns) {
  const int64_t begin = now_ns();
  team.run([&](Lane&) { loop.run(n_turns); });
  const double macs = static_cast<double>(n_turns) * loop.macs_per_turn * team.size();
  return macs / static_cast<double>(now_ns() - begin);
}

// Adds the loop's rate to `rates`, or raises the one there from another loop of its type and ISA.
// Returns the spread of its rounds.
double measure_macs(Lanes& lanes, const MacLoop& loop, int n_rounds, std::vector<Rate>& rates) {
  Best one, all;
  const int64_t n_turns = turns_per_round(loop);
  // One after the other: between rounds of their own the other lanes spin.
  repeat(n_rounds, kMacRoundNs, [&] { one.add(mac_round(lanes.one, loop, n_turns)); });
  repeat(n_rounds, kMacRoundNs, [&] { all.add(mac_round(lanes.all, loop, n_turns)); });
  const auto same = [&](const Rate& r) { return r.type == loop.type && r.isa == loop.isa; };
  auto at = std::find_if(rates.begin(), rates.end(), same);
  if (at == rates.end()) at = rates.insert(at, Rate{loop.type, loop.isa, 0, 0});
  at->gmacs_one = std::max(at->gmacs_one, one.best());
  at->gmacs_all = std::max(at->gmacs_all, all.best());
  return all.spread();
}

// Eight times the last-level cache, so that no byte is still there when the ring comes round; less
// where memory is short. Written once, by the lane that will read it: untouched pages would all
// read as the one page of zeros, and on several NUMA nodes a page lives where it was first written.
class ReadRing {
 public:
  ReadRing(const Machine& machine, Team& team) {
    const auto n_lanes = static_cast<size_t>(team.size());
    const size_t wanted = 8 * machine.llc_bytes, allowed = machine.memory_available_bytes / 4;
    const size_t n = std::min(wanted, allowed) / kReadBytes;
    n_units_ = n >= n_lanes ? n / n_lanes * n_lanes : n;
    if (n_units_ == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, n_units_ * kReadBytes)));
    if (data_ == nullptr) return;
    (void)madvise(data_.get(), n_units_ * kReadBytes, MADV_HUGEPAGE);
    team.run([&](Lane& lane) {
      for (auto i = static_cast<size_t>(lane.index); i < n_units_; i += n_lanes)
        std::memset(data_.get() + i * kReadBytes, 1, kReadBytes);
    });
  }
  bool ok() const { return data_ != nullptr; }

  // The next n units, as lanes 0 to n - 1 are to read them.
  size_t take(size_t n) {
    const size_t first = (next_ + n - 1) / n * n;
    next_ = first + n;
    return first;
  }
  const std::byte* unit(size_t i) const { return data_.get() + i % n_units_ * kReadBytes; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t n_units_ = 1, next_ = 0;
};

double read_round(Team& team, const ReadLoop& loop, ReadRing& ring) {
  const auto n_lanes = static_cast<size_t>(team.size());
  const size_t first = ring.take(n_lanes);
  const int64_t begin = now_ns();
  team.run([&](Lane& lane) {
    loop.run(ring.unit(first + static_cast<size_t>(lane.index)), kReadBytes);
  });
  return static_cast<double>(n_lanes * kReadBytes) / static_cast<double>(now_ns() - begin);
}

double measure_reads(Lanes& lanes, const Machine& machine, int n_rounds, Ceilings& out) {
  ReadRing ring(machine, lanes.all);
  if (!ring.ok()) return 0;
  double spread = 0;
  for (const ReadLoop& loop : read_loops()) {
    if (!machine.has(loop.isa)) continue;
    Best one, all;
    repeat(n_rounds / 2, kReadRoundNs, [&] { one.add(read_round(lanes.one, loop, ring)); });
    repeat(n_rounds, kReadRoundNs, [&] { all.add(read_round(lanes.all, loop, ring)); });
    out.read_gbps_one = std::max(out.read_gbps_one, one.best());
    if (all.best() <= out.read_gbps_all) continue;
    out.read_gbps_all = all.best();
    out.read_loop = loop.name;
    spread = all.spread();
  }
  return spread;
}

// What a few rounds reach together, after one that wakes lanes and wide units. All rounds do the
// same work, so the mean rate is the harmonic one.
template <class Round>
double mean_of_few(Round round) {
  constexpr int kFew = 4;
  (void)round();
  double sum = 0;
  for (int i = 0; i < kFew; ++i) sum += 1 / round();
  return kFew / sum;
}

// Of several forms of a loop, the fastest here; null when there is none.
template <class Loop, class Rate>
const Loop* fastest(std::span<const Loop> loops, const Machine& machine, Rate rate) {
  const Loop* fastest = nullptr;
  double most = 0;
  for (const Loop& loop : loops) {
    const double reached = machine.has(loop.isa) ? mean_of_few([&] { return rate(loop); }) : 0;
    if (reached <= most) continue;
    most = reached;
    fastest = &loop;
  }
  return fastest;
}

double measure_barrier(Team& team, int n_rounds) {
  if (team.size() == 1) return 0;
  double best = 1e9;
  for (int i = 0; i < n_rounds; ++i) {
    const int64_t begin = now_ns();
    team.run([](Lane& lane) {
      for (int k = 0; k < kBarriersPerRound; ++k) lane.sync();
    });
    best = std::min(best, static_cast<double>(now_ns() - begin) / kBarriersPerRound);
  }
  return best;
}

}  // namespace

const Rate* Ceilings::rate(MacType type, Isa isa) const {
  for (const Rate& r : rates)
    if (r.type == type && r.isa == isa) return &r;
  return nullptr;
}

const Rate* Ceilings::best_rate(MacType type) const {
  const Rate* best = nullptr;
  for (const Rate& r : rates)
    if (r.type == type && (best == nullptr || r.gmacs_all > best->gmacs_all)) best = &r;
  return best;
}

struct CeilingProbe::Loops {
  struct Mac {
    const MacLoop* loop;
    int64_t n_turns;
  };
  ReadRing ring;
  const ReadLoop* read = nullptr;
  std::vector<Mac> macs;  // one for each type and ISA

  Loops(const Machine& machine, Team& team) : ring(machine, team) {
    if (ring.ok())
      read = fastest(read_loops(), machine,
                     [&](const ReadLoop& loop) { return read_round(team, loop, ring); });
    for (const MacLoop& first : mac_loops()) {
      const auto alike = [&](const MacLoop& loop) {
        return loop.type == first.type && loop.isa == first.isa;
      };
      const auto known = [&](const Mac& mac) { return alike(*mac.loop); };
      if (std::any_of(macs.begin(), macs.end(), known)) continue;
      const MacLoop* best = fastest(mac_loops(), machine, [&](const MacLoop& loop) {
        return alike(loop) ? mac_round(team, loop, turns_per_round(loop)) : 0;
      });
      if (best != nullptr) macs.push_back({best, turns_per_round(*best)});
    }
  }
};

CeilingProbe::CeilingProbe(const Machine& machine, Team& team)
    : team_(team), loops_(std::make_unique<Loops>(machine, team)) {}
CeilingProbe::~CeilingProbe() = default;

Ceilings CeilingProbe::now(std::span<const MacType> types) {
  Ceilings out;
  out.n_lanes = team_.size();
  if (loops_->read != nullptr) {
    out.read_gbps_all = mean_of_few([&] { return read_round(team_, *loops_->read, loops_->ring); });
    out.read_loop = loops_->read->name;
  }
  for (const Loops::Mac& mac : loops_->macs) {
    if (std::find(types.begin(), types.end(), mac.loop->type) == types.end()) continue;
    const double gmacs = mean_of_few([&] { return mac_round(team_, *mac.loop, mac.n_turns); });
    out.rates.push_back({mac.loop->type, mac.loop->isa, 0, gmacs});
  }
  return out;
}

Ceilings measure_ceilings(const Machine& machine, Effort effort) {
  const Rounds rounds = rounds_of(effort);
  // Not the caller's own affinity where lanes are pinned: a caller that is itself a pinned lane may
  // use one CPU only, and the noise of the others would go unseen.
  const NoiseWatch watch(HostFiles("/"),
                         machine.cpus.empty() ? cpus_allowed_by_affinity() : machine.cpus);
  Ceilings out;
  double spread = 0;
  {
    Lanes lanes(machine.n_cpus, machine.cpus);
    out.n_lanes = lanes.all.size();
    for (const MacLoop& loop : mac_loops())
      if (machine.has(loop.isa))
        spread = std::max(spread, measure_macs(lanes, loop, rounds.mac, out.rates));
    spread = std::max(spread, measure_reads(lanes, machine, rounds.read, out));
    out.barrier_ns = measure_barrier(lanes.all, rounds.barrier);
  }
  Noise noise = watch.stop();
  noise.spread = spread;
  out.noise = why_not_quiet(noise, out.n_lanes);
  out.quiet = out.noise.empty();
  return out;
}

}  // namespace millrace
