#include "lab/bench.h"

#include <algorithm>

#include "base/clock.h"
#include "lab/witness.h"

namespace millrace::lab {
namespace {

// Stop at this many times the given seconds, even with fewer rounds than wanted.
constexpr double kOverrun = 4;

struct Rounds {
  Target& target;
  const Floor& floor;
  Rig& rig;
  std::string_view mode;
  const BenchOptions& options;
  const Watch& watch;
  std::vector<std::vector<double>> us;  // [participant][round]; the last one is the twin of 0
  std::vector<std::vector<double>> sm_mhz = {};  // likewise, where the rig knows
  std::vector<Roof> roofs = {};                  // [round]
  std::vector<GpuLoad> loads = {};               // [round]

  // A twin is timed exactly as the variant it repeats.
  size_t variant_of(size_t participant) const {
    return participant + 1 == us.size() ? 0 : participant;
  }

  // Participant p goes (p + round)-th: over as many rounds as there are participants each has had
  // every place once.
  Status run_round(size_t round) {
    const size_t n = us.size();
    if (auto roof = target.probe_roof(floor)) roofs.push_back(*std::move(roof));
    for (size_t place = 0; place < n; ++place) {
      const size_t p = (place + n - round % n) % n;
      MILLRACE_ASSIGN(const double sample, rig.time_us(variant_of(p), mode));
      us[p].push_back(sample);
      if (const double mhz = rig.sm_mhz(); mhz > 0) sm_mhz[p].push_back(mhz);
    }
    if (const auto load = target.load()) loads.push_back(*load);
    return {};
  }

  bool narrow() const {
    return std::all_of(us.begin(), us.end(), [&](const auto& samples) {
      return median_interval(samples).relative_width() <= options.width;
    });
  }

  bool enough(double spent_seconds) const {
    const int n = static_cast<int>(us[0].size());
    if (n >= options.max_rounds || spent_seconds > kOverrun * options.seconds) return true;
    if (n < options.min_rounds) return false;
    return spent_seconds >= options.seconds || narrow();
  }

  // False when the user stopped it; whole rounds only are kept.
  Result<bool> run() {
    const int64_t start_ns = now_ns();
    MILLRACE_TRY(run_round(0));  // wakes clocks and caches; not kept
    for (auto& samples : us) samples.clear();
    for (auto& samples : sm_mhz) samples.clear();
    roofs.clear();
    loads.clear();
    for (size_t round = 0;; ++round) {
      const double spent = static_cast<double>(now_ns() - start_ns) * 1e-9;
      if (round > 0 && enough(spent)) return true;
      if (watch.stop) return false;
      watch.progress(std::min(1.0, spent / options.seconds), mode);
      MILLRACE_TRY(run_round(round));
    }
  }
};

// The variants, and after them those that are mounted only for their bits.
std::vector<const Variant*> with_peers(const Target& target, const PlanItem& item) {
  std::vector<const Variant*> all = item.variants;
  for (const Variant* variant : item.variants) {
    const Variant* peer = peer_for(*item.op, item.problem, *variant,
                                   [&](const Variant& other) { return target.has(other); });
    if (peer != nullptr && std::find(all.begin(), all.end(), peer) == all.end())
      all.push_back(peer);
  }
  return all;
}

}  // namespace

BenchOptions quick_options() {
  BenchOptions options;
  options.seconds = 0.4;
  options.width = 0.02;
  options.min_rounds = 7;
  options.ceilings = Effort::quick;
  options.mount = {.sample_seconds = 0.004};
  return options;
}

double CaseRun::noise(std::string_view mode) const {
  for (const Series& twin : twins)
    if (twin.mode == mode) return noise_of(find(twin.variant->name, mode)->us, twin.us);
  return 0;
}

const Series* CaseRun::find(std::string_view variant, std::string_view mode) const {
  for (const Series& s : series)
    if (s.variant->name == variant && s.mode == mode) return &s;
  return nullptr;
}

Probes CaseRun::probes_of(std::string_view mode) const {
  for (const Probes& p : probes)
    if (p.mode == mode) return p;
  return {};
}

Result<ModeRun> time_mode(Target& target, const Floor& floor, Rig& rig, size_t n_variants,
                          std::string_view mode, const BenchOptions& options, const Watch& watch) {
  Rounds rounds{target, floor, rig, mode, options, watch, {}};
  rounds.us.resize(n_variants + 1);
  rounds.sm_mhz.resize(n_variants + 1);
  MILLRACE_ASSIGN(const bool complete, rounds.run());
  return ModeRun{std::move(rounds.us), std::move(rounds.sm_mhz), std::move(rounds.roofs),
                 std::move(rounds.loads), complete};
}

Result<CaseRun> bench_case(Target& target, const PlanItem& item, const BenchOptions& options,
                           const Watch& watch) {
  constexpr double kMountShare = 0.3;  // of a case's time, for the progress line only
  watch.progress(0, "filling and verifying");
  const auto& variants = item.variants;
  const auto mounted = with_peers(target, item);
  MILLRACE_ASSIGN(const auto rig, target.mount(*item.op, item.problem, mounted, options.mount));
  CaseRun run;
  run.op = item.op;
  run.problem = item.problem;
  run.key = item.key;
  run.mount = rig->info();
  const auto modes = target.modes();
  const double share = (1 - kMountShare) / static_cast<double>(modes.size());
  for (size_t m = 0; m < modes.size() && run.complete; ++m) {
    const Watch part{watch.stop, [&](double done, std::string_view what) {
                       watch.progress(kMountShare + (static_cast<double>(m) + done) * share, what);
                     }};
    MILLRACE_ASSIGN(ModeRun timed, time_mode(target, item.problem.floor, *rig, variants.size(),
                                             modes[m], options, part));
    run.complete = timed.complete;
    if (timed.us.back().empty()) break;
    for (size_t v = 0; v < variants.size(); ++v)
      run.series.push_back(
          {variants[v], modes[m], std::move(timed.us[v]), std::move(timed.sm_mhz[v])});
    run.twins.push_back({variants[0], modes[m], std::move(timed.us.back()), {}});
    run.probes.push_back({modes[m], std::move(timed.roofs), std::move(timed.loads)});
  }
  return run;
}

}  // namespace millrace::lab
