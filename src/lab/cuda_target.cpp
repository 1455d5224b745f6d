// The GPU as a Target. The ring is built and verified on the host and mirrored on the device; a
// sample is a pass over it, captured as a graph or launched call by call, after the L2 was flushed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "exec/program.h"
#include "lab/bytes.h"
#include "lab/device_roof.h"
#include "lab/ring.h"
#include "lab/target.h"
#include "tensor/format.h"

namespace millrace::lab {

#ifdef MILLRACE_CUDA
namespace {

constexpr std::string_view kColdGraph = "cold graph", kColdStream = "cold stream",
                           kWarmGraph = "warm graph";
constexpr size_t kColdOverCache =
    4;                             // a ring that reads this many L2s needs no flush between passes
constexpr size_t kMinEntries = 4;  // or a call would meet what the last one left in the L2
constexpr size_t kMaxEntries = 1024;  // calls of one graph
constexpr size_t kMemoryShare = 8;    // of the host's memory that a ring may take
constexpr size_t kFlushOverCache = 2;
constexpr int kWarmCalls = 64;
constexpr int kMaxRepeats = 64;
constexpr size_t kReadBytes = size_t{2} << 30;

struct Context {
  const Machine& machine;
  Team team;  // fills and verifies rings
  Stream stream;
  Event start, stop;
  DeviceBuffer flusher;

  explicit Context(const Machine& m) : machine(m), team(m.n_cpus, m.cpus) {}

  Status prepare() {
    MILLRACE_ASSIGN(stream, Stream::make());
    MILLRACE_ASSIGN(start, Event::make());
    MILLRACE_ASSIGN(stop, Event::make());
    MILLRACE_ASSIGN(flusher, DeviceBuffer::make(kFlushOverCache * l2_bytes()));
    return {};
  }

  Result<double> time_us(const std::function<Status()>& work) {
    MILLRACE_TRY(start.record(stream));
    MILLRACE_TRY(work());
    MILLRACE_TRY(stop.record(stream));
    MILLRACE_TRY(stream.sync());
    return stop.us_since(start);
  }
  size_t l2_bytes() const { return machine.gpus.empty() ? 0 : machine.gpus[0].l2_bytes; }
};

// The ring's ports on the device: one slab a port, one a weight layout.
class DeviceRing {
 public:
  Status make(const Ring& ring, std::span<const Variant* const> variants) {
    const auto& ports = ring.problem().ports;
    for (size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].role == Role::weight) {
        for (const Variant* v : variants)
          if (!weights_.contains(v->layout))
            MILLRACE_TRY(add(weights_[std::string(v->layout)], ring.weight_bytes(v->layout), ring));
        slabs_.emplace_back();
        continue;
      }
      MILLRACE_TRY(add(slabs_.emplace_back(), bytes_of(ports[i]), ring));
    }
    return {};
  }

  std::vector<void*> ports(const Ring& ring, size_t entry, std::string_view layout) const {
    std::vector<void*> pointers;
    for (size_t i = 0; i < slabs_.size(); ++i)
      pointers.push_back(slab_of(ring, i, layout).at(entry));
    return pointers;
  }

  // Host to device: every input, and what outputs hold now (poison, or in-place content).
  Status upload(const Ring& ring, const Stream& stream) const {
    for (size_t e = 0; e < ring.n_entries(); ++e) {
      for (const auto& [layout, slab] : weights_)
        MILLRACE_TRY(stream.copy_to_device(slab.at(e), weight_of(ring, e, layout), slab.bytes));
      for (size_t i = 0; i < slabs_.size(); ++i)
        if (ring.problem().ports[i].role != Role::weight)
          MILLRACE_TRY(stream.copy_to_device(slabs_[i].at(e), ring.port(e, i), slabs_[i].bytes));
    }
    return stream.sync();
  }

  Status reset_outputs(const Ring& ring, size_t n_entries, const Stream& stream) const {
    for (size_t i = 0; i < slabs_.size(); ++i) {
      if (ring.problem().ports[i].role == Role::out && slabs_[i].bytes > 0)
        MILLRACE_TRY(stream.fill(slabs_[i].memory.data(), static_cast<int>(kPoison),
                                 slabs_[i].stride * n_entries));
      for (size_t e = 0; ring.problem().ports[i].role == Role::inout && e < n_entries; ++e)
        MILLRACE_TRY(stream.copy_to_device(slabs_[i].at(e), ring.original(e, i), slabs_[i].bytes));
    }
    return {};
  }

  Status download_outputs(Ring& ring, size_t n_entries, const Stream& stream) const {
    for (size_t i = 0; i < slabs_.size(); ++i)
      for (size_t e = 0; is_output(ring.problem().ports[i].role) && e < n_entries; ++e)
        MILLRACE_TRY(stream.copy_to_host(ring.port(e, i), slabs_[i].at(e), slabs_[i].bytes));
    return stream.sync();
  }

 private:
  struct Slab {
    DeviceBuffer memory;
    size_t stride = 0, bytes = 0;
    std::byte* at(size_t entry) const { return memory.data() + entry * stride; }
  };

  static Status add(Slab& slab, size_t bytes, const Ring& ring) {
    slab.bytes = bytes;
    slab.stride = (bytes + 255) / 256 * 256;
    MILLRACE_ASSIGN(slab.memory, DeviceBuffer::make(slab.stride * ring.n_entries()));
    return {};
  }
  const Slab& slab_of(const Ring& ring, size_t i, std::string_view layout) const {
    return ring.problem().ports[i].role == Role::weight ? weights_.find(layout)->second : slabs_[i];
  }
  static const void* weight_of(const Ring& ring, size_t entry, std::string_view layout) {
    const auto pointers = ring.ports(entry, layout);
    for (size_t i = 0; i < pointers.size(); ++i)
      if (ring.problem().ports[i].role == Role::weight) return pointers[i];
    return nullptr;
  }

  std::vector<Slab> slabs_;  // [port]; an empty one for the weight
  std::map<std::string, Slab, std::less<>> weights_;
};

class CudaRig : public Rig {
 public:
  CudaRig(Context& context, Ring ring, std::span<const Variant* const> variants)
      : context_(context), ring_(std::move(ring)), variants_(variants.begin(), variants.end()) {}

  Status prepare(const MountOptions& options) {
    const size_t cold_bytes =
        std::max(kColdOverCache * context_.l2_bytes(), kMinEntries * ring_.entry_bytes());
    const size_t wanted =
        ring_.entries_for(cold_bytes, find_machine().memory_available_bytes / kMemoryShare);
    MILLRACE_TRY(ring_.grow(std::min(wanted, kMaxEntries), options.fill_seconds, context_.team));
    MILLRACE_TRY(device_.make(ring_, variants_));
    ring_.reset(0, ring_.n_entries(), true, context_.team);
    MILLRACE_TRY(device_.upload(ring_, context_.stream));
    check_.emplace(ring_, context_.team, options.verify_seconds);
    for (const Variant* variant : variants_) MILLRACE_TRY(add_variant(*variant, options));
    info_ = {ring_.n_entries(), static_cast<double>(ring_.cold_bytes()), check_->checked()};
    return {};
  }

  const MountInfo& info() const override { return info_; }

  Result<double> time_us(size_t v, std::string_view mode) override {
    const Mounted& mounted = mounted_[v];
    const bool warm = mode == kWarmGraph;
    const size_t n_entries = warm ? 1 : ring_.n_entries();
    MILLRACE_TRY(device_.reset_outputs(ring_, n_entries, context_.stream));
    if (!warm) MILLRACE_TRY(flush_l2(context_.stream, context_.flusher));
    MILLRACE_ASSIGN(const double us, context_.time_us([&] {
      if (mode == kColdStream) return mounted.program.launch(context_.stream);
      return (warm ? mounted.warm : mounted.cold).launch(context_.stream);
    }));
    MILLRACE_TRY(device_.download_outputs(ring_, n_entries, context_.stream));
    MILLRACE_TRY(check_->check(*variants_[v], 0, n_entries));
    if (warm) return us / warm_calls();
    return us / static_cast<double>(n_entries) / (mode == kColdGraph ? mounted.repeats : 1);
  }

 private:
  struct Mounted {
    Program program;
    Graph cold, warm;
    int repeats = 1;  // passes of the cold graph
  };

  int warm_calls() const { return ring_.overwrites_inputs() ? 1 : kWarmCalls; }

  // A ring larger than the L2 stays cold pass after pass, so a short pass may be repeated until the
  // sample dwarfs what launching a graph costs.
  int repeats_for(double pass_us, double sample_us) const {
    const bool stays_cold = ring_.cold_bytes() >= kColdOverCache * context_.l2_bytes();
    if (!stays_cold || ring_.overwrites_inputs()) return 1;
    return std::clamp(static_cast<int>(std::ceil(sample_us / pass_us)), 1, kMaxRepeats);
  }

  Status add_variant(const Variant& variant, const MountOptions& options) {
    Mounted& m = mounted_.emplace_back();
    for (size_t e = 0; e < ring_.n_entries(); ++e) {
      ArgsBox args;
      ring_.problem().bind(device_.ports(ring_, e, variant.layout), args);
      m.program.add(ring_.op(), variant, args);
    }
    MILLRACE_TRY(m.program.prepare_device());
    MILLRACE_TRY(check_->verify(variant, [&] { return verify_pass(m); }).status());
    // Timed again: the first pass also loaded the module.
    MILLRACE_ASSIGN(const double pass_us,
                    context_.time_us([&] { return m.program.launch(context_.stream); }));
    m.repeats = repeats_for(pass_us, 1e6 * options.sample_seconds);
    MILLRACE_ASSIGN(m.cold, m.program.capture(context_.stream, 0, ring_.n_entries(), m.repeats));
    MILLRACE_ASSIGN(m.warm, m.program.capture(context_.stream, 0, 1, warm_calls()));
    return {};
  }

  Result<int64_t> verify_pass(const Mounted& m) {
    MILLRACE_TRY(device_.reset_outputs(ring_, ring_.n_entries(), context_.stream));
    MILLRACE_ASSIGN(const double us,
                    context_.time_us([&] { return m.program.launch(context_.stream); }));
    MILLRACE_TRY(device_.download_outputs(ring_, ring_.n_entries(), context_.stream));
    return std::max<int64_t>(1, static_cast<int64_t>(1e3 * us));
  }

  Context& context_;
  Ring ring_;
  DeviceRing device_;
  const std::vector<const Variant*> variants_;
  std::vector<Mounted> mounted_;
  std::optional<RingCheck> check_;
  MountInfo info_;
};

class CudaTarget : public Target {
 public:
  explicit CudaTarget(const Machine& machine) : context_(machine) {}
  Status prepare() { return context_.prepare(); }

  std::string_view device() const override { return "cuda"; }
  int n_lanes() const override { return 1; }
  std::span<const std::string_view> modes() const override {
    static constexpr std::array kModes = {kColdGraph, kColdStream, kWarmGraph};
    return kModes;
  }
  bool has(const Variant& variant) const override {
    return is_cuda(variant.isa) && context_.machine.has(variant.isa);
  }
  size_t cache_bytes() const override { return context_.l2_bytes(); }

  Result<Roof> measure_roof(Effort effort) override {
    const int n_rounds = effort == Effort::full ? 10 : 4;
    MILLRACE_ASSIGN(const DeviceBuffer data, DeviceBuffer::make(kReadBytes));
    MILLRACE_TRY(context_.stream.fill(data.data(), 1, data.bytes()));
    double read_us = INFINITY, mac_us = INFINITY, n_macs = 0;
    for (int i = 0; i < n_rounds; ++i) {
      MILLRACE_ASSIGN(const double us, context_.time_us([&] {
        return cuda_status(
            launch_read(data.data(), data.bytes(), data.data(), context_.stream.get()),
            "read loop");
      }));
      read_us = std::min(read_us, us);
      MILLRACE_ASSIGN(const double mac, context_.time_us([&] {
        return cuda_status(launch_bf16_macs(data.data(), context_.stream.get(), &n_macs),
                           "mma loop");
      }));
      mac_us = std::min(mac_us, mac);
    }
    return Roof{.read_gbps = static_cast<double>(kReadBytes) / read_us * 1e-3,
                .noise = "",
                .rates = {{Isa::sm80, "bf16", n_macs / mac_us * 1e-3}}};
  }

  Result<std::unique_ptr<Rig>> mount(const Op& op, const Case& problem,
                                     std::span<const Variant* const> variants,
                                     const MountOptions& options) override {
    MILLRACE_ASSIGN(Ring ring, Ring::make(op, problem, variants, options.seed));
    auto rig = std::make_unique<CudaRig>(context_, std::move(ring), variants);
    MILLRACE_TRY(rig->prepare(options));
    return std::unique_ptr<Rig>(std::move(rig));
  }

 private:
  Context context_;
};

}  // namespace

Result<std::unique_ptr<Target>> cuda_target(const Machine& machine) {
  MILLRACE_TRY(cuda_device_count().status());
  auto target = std::make_unique<CudaTarget>(machine);
  MILLRACE_TRY(target->prepare());
  return std::unique_ptr<Target>(std::move(target));
}

#else

Result<std::unique_ptr<Target>> cuda_target(const Machine&) {
  return cuda_device_count().status();
}

#endif

}  // namespace millrace::lab
