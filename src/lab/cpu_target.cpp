// The CPU as a Target: a pinned team, rings in huge pages, whole samples inside one dispatch.
#include <algorithm>
#include <array>
#include <cmath>

#include "exec/program.h"
#include "lab/poison.h"
#include "lab/ring.h"
#include "lab/target.h"
#include "lab/warm_target.h"

namespace millrace::lab {
namespace {

constexpr size_t kColdOverCache = 8;  // a ring reads this many times the last-level cache
constexpr size_t kMemoryShare = 4;    // and takes at most this part of the memory available
constexpr size_t kEvictBelow = 4;     // a ring that reads less than so many caches needs evicting
constexpr double kWarmShare = 0.25;   // warm samples repeat one call and need less time to settle
constexpr int kMaxWarmCalls = 1 << 16;
constexpr size_t kWarmEntries = 4;  // of a rig that is never cold
constexpr double kPassWork = 4e9;   // multiply-adds of a pass over a ring; two entries at least

struct Context {
  const Machine& machine;
  Team team;
  std::vector<uint64_t> evictor;  // larger than the cache; made when first needed

  Context(const Machine& m, int n_lanes) : machine(m), team(n_lanes, m.cpus) {}

  // Pushes everything else out of the caches.
  void evict() {
    if (evictor.empty()) evictor.assign(2 * machine.llc_bytes / sizeof(uint64_t) + 1, 1);
    team.run([&](Lane&) {
      for (size_t i = 0; i < evictor.size(); i += 8) {
        const auto* word = const_cast<const volatile uint64_t*>(&evictor[i]);
        (void)*word;
      }
    });
  }
};

class CpuRig : public Rig {
 public:
  CpuRig(Context& context, Ring ring, std::span<const Variant* const> variants, bool warm_only)
      : context_(context),
        ring_(std::move(ring)),
        variants_(variants.begin(), variants.end()),
        warm_only_(warm_only) {}

  // Where one call is much work, few entries do, and the caches are emptied before every sample
  // instead.
  Status prepare(const MountOptions& options) {
    const size_t available = find_machine().memory_available_bytes;  // as of now
    const size_t wanted = warm_only_
                              ? kWarmEntries
                              : ring_.entries_for(kColdOverCache * context_.machine.llc_bytes,
                                                  available / kMemoryShare);
    MILLRACE_TRY(ring_.grow(std::min(wanted, affordable()), context_.team));
    check_.emplace(ring_, context_.team);
    rng_ = Rng(options.seed, 1);
    double least_us = INFINITY;
    for (const Variant* variant : variants_) {
      MILLRACE_TRY(add_program(*variant));
      MILLRACE_ASSIGN(const int64_t pass_ns, check_->verify(*variant, [&] {
        return programs_.back().time_ns(context_.team, 0, ring_.n_entries(), 1);
      }));
      least_us = std::min(
          least_us, 1e-3 * static_cast<double>(pass_ns) / static_cast<double>(ring_.n_entries()));
    }
    info_ = {ring_.n_entries(), static_cast<double>(ring_.cold_bytes()), check_->checked()};
    plan_segments(1e6 * options.sample_seconds, least_us);
    return plan_warm(1e6 * options.sample_seconds * kWarmShare);
  }

  const MountInfo& info() const override { return info_; }

  Result<double> time_us(size_t variant, std::string_view mode) override {
    return is_cold(mode) ? time_cold(variant) : time_warm(variant);
  }

 private:
  size_t affordable() const {
    const Floor& f = ring_.problem().floor;
    const double macs = f.i8_macs + f.f32_macs + f.bf16_macs;
    return static_cast<size_t>(std::max(2.0, kPassWork / std::max(macs, 1.0)));
  }

  Status add_program(const Variant& variant) {
    Program& program = programs_.emplace_back();
    for (size_t e = 0; e < ring_.n_entries(); ++e)
      program.add(ring_.op(), variant, ring_.args(e, variant));
    return program.prepare(context_.team.size());
  }

  // Another content at the address of one of these entries, so that no call can count on having
  // met its inputs before. The workspace is poison now and then, and else what the last call left:
  // neither what lies there nor that it is gone tells of a new sample.
  void change(Program& program, size_t begin, size_t end) {
    const size_t entry = begin + rng_.below(end - begin);
    if (const size_t other = ring_.partner_of(entry, rng_); other != entry)
      ring_.exchange(entry, other);
    if (const HostBuffer& bytes = program.workspace(); rng_.below(2) == 0)
      poison_workspace({bytes.data(), bytes.bytes()}, rng_.next_u64());
  }

  // Segments of the ring, all of one length: a sample is one of them, the next sample the next one,
  // so an entry is met again only after all others.
  void plan_segments(double sample_us, double call_us) {
    const auto n = static_cast<double>(ring_.n_entries());
    const double wanted = std::clamp(sample_us / std::max(call_us, 1e-3), 1.0, n);
    n_segments_ = static_cast<size_t>(std::ceil(n / wanted));
    segment_ = ring_.n_entries() / n_segments_;
    evict_ = ring_.cold_bytes() < kEvictBelow * context_.machine.llc_bytes;
  }

  // Warm: one entry over and over. A call that overwrites its inputs cannot be repeated; as many
  // entries as fit half a core's cache take its place, each once.
  Status plan_warm(double sample_us) {
    if (ring_.overwrites_inputs()) {
      const size_t fitting = context_.machine.l2_bytes / 2 / ring_.entry_bytes();
      warm_entries_ = std::clamp<size_t>(fitting, 1, ring_.n_entries());
      return {};
    }
    double call_us = INFINITY;
    for (Program& program : programs_) {
      MILLRACE_TRY(program.run(context_.team, 0, 1));
      MILLRACE_ASSIGN(const int64_t ns, program.time_ns(context_.team, 0, 1, 3));
      call_us = std::min(call_us, 1e-3 * static_cast<double>(ns) / 3);
    }
    const double wanted = sample_us / std::max(call_us, 1e-3);
    warm_repeats_ = static_cast<int>(std::clamp<double>(wanted, 1, kMaxWarmCalls));
    return {};
  }

  Result<double> time_cold(size_t v) {
    const size_t begin = segment_ * (next_segment_++ % n_segments_), end = begin + segment_;
    change(programs_[v], begin, end);
    ring_.reset(begin, end, true, context_.team);
    if (evict_) context_.evict();
    MILLRACE_ASSIGN(const int64_t ns, programs_[v].time_ns(context_.team, begin, end, 1));
    MILLRACE_TRY(check_->check(*variants_[v], begin, end));
    return 1e-3 * static_cast<double>(ns) / static_cast<double>(segment_);
  }

  Result<double> time_warm(size_t v) {
    change(programs_[v], 0, warm_entries_);
    ring_.reset(0, warm_entries_, false, context_.team);
    if (!ring_.overwrites_inputs()) {
      MILLRACE_TRY(programs_[v].run(context_.team, 0, warm_entries_));
      ring_.reset(0, warm_entries_, false, context_.team);
    }
    MILLRACE_ASSIGN(const int64_t ns,
                    programs_[v].time_ns(context_.team, 0, warm_entries_, warm_repeats_));
    MILLRACE_TRY(check_->check(*variants_[v], 0, warm_entries_));
    return 1e-3 * static_cast<double>(ns) / static_cast<double>(warm_entries_) / warm_repeats_;
  }

  Context& context_;
  Ring ring_;
  const std::vector<const Variant*> variants_;
  const bool warm_only_;
  std::vector<Program> programs_;  // [variant]: one call per entry
  std::optional<RingCheck> check_;
  Rng rng_{1};
  MountInfo info_;
  size_t segment_ = 1, n_segments_ = 1, next_segment_ = 0;
  size_t warm_entries_ = 1;
  int warm_repeats_ = 1;
  bool evict_ = false;
};

class CpuTarget : public Target {
 public:
  CpuTarget(const Machine& machine, int n_lanes, bool warm_only)
      : context_(machine, n_lanes), warm_only_(warm_only) {}

  std::string_view device() const override { return "cpu"; }
  int n_lanes() const override { return context_.team.size(); }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array<std::string_view, 2> kModes = {"cold", "warm"};
    return std::span<const std::string_view>(kModes).subspan(warm_only_ ? 1 : 0);
  }
  bool has(const Variant& variant) const override {
    return !is_cuda(variant.isa) && context_.machine.has(variant.isa);
  }
  size_t cache_bytes() const override { return context_.machine.llc_bytes; }

  Result<Roof> measure_roof(Effort effort) override {
    Machine lanes = context_.machine;  // "all" shall mean the lanes that are timed
    lanes.n_cpus = std::min(lanes.n_cpus, context_.team.size());
    return roof_of(measure_ceilings(lanes, effort));
  }

  std::optional<Roof> probe_roof(const Floor& of) override {
    if (!probe_) probe_.emplace(context_.machine, context_.team);
    std::vector<MacType> types;
    if (of.i8_macs > 0) types.push_back(MacType::i8);
    if (of.f32_macs > 0) types.push_back(MacType::f32);
    if (of.bf16_macs > 0) types.push_back(MacType::bf16);
    return roof_of(probe_->now(types));
  }

  Result<std::unique_ptr<Rig>> mount(const Op& op, const Case& problem,
                                     std::span<const Variant* const> variants,
                                     const MountOptions& options) override {
    MILLRACE_ASSIGN(Ring ring, Ring::make(op, problem, variants, options.seed));
    auto rig = std::make_unique<CpuRig>(context_, std::move(ring), variants, warm_only_);
    MILLRACE_TRY(rig->prepare(options));
    return std::unique_ptr<Rig>(std::move(rig));
  }

 private:
  Context context_;
  const bool warm_only_;
  std::optional<CeilingProbe> probe_;  // made when first needed
};

}  // namespace

Roof roof_of(const Ceilings& ceilings) {
  Roof roof{ceilings.read_gbps_all, ceilings.noise, {}};
  for (const Rate& rate : ceilings.rates)
    roof.rates.push_back({rate.isa, name_of(rate.type), rate.gmacs_all});
  return roof;
}

std::unique_ptr<Target> cpu_target(const Machine& machine, int n_lanes) {
  return std::make_unique<CpuTarget>(machine, n_lanes > 0 ? n_lanes : machine.n_cpus, false);
}

std::unique_ptr<Target> warm_cpu_target(const Machine& machine, int n_lanes) {
  return std::make_unique<CpuTarget>(machine, n_lanes > 0 ? n_lanes : machine.n_cpus, true);
}

}  // namespace millrace::lab
