// The GPU as a Target. The ring is built and verified on the host and mirrored on the device; a
// sample is a pass over it, captured as a graph or launched call by call, after the L2 was flushed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "exec/program.h"
#include "lab/bytes.h"
#include "lab/device_roof.h"
#include "lab/device_window.h"
#include "lab/poison.h"
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
constexpr int kWarmCalls = 64;
constexpr int kMaxRepeats = 64;
constexpr size_t kReadBytes = size_t{2} << 30;

struct Context {
  const Machine& machine;
  Team team;  // fills and verifies rings
  DeviceWindow window;
  double sm_mhz = 0;  // of the last window

  explicit Context(const Machine& m) : machine(m), team(m.n_cpus, m.cpus) {}

  Status prepare() {
    MILLRACE_ASSIGN(window, DeviceWindow::make(l2_bytes()));
    return {};
  }

  const Stream& stream() const { return window.stream(); }
  Result<double> time_us(const std::function<Status()>& work, bool held = false) {
    MILLRACE_ASSIGN(const DeviceWindow::Timed timed, window.time(work, held));
    sm_mhz = timed.sm_mhz;
    return timed.us;
  }
  size_t l2_bytes() const { return machine.gpus.empty() ? 0 : machine.gpus[0].l2_bytes; }
};

// The ring's ports on the device: one slab a port, one a weight layout; and of every output a slab
// of poison, each entry's of a pattern of its own, which is copied over it before a pass.
class DeviceRing {
 public:
  Status make(const Ring& ring, std::span<const Variant* const> variants, const Stream& stream) {
    const auto& ports = ring.problem().ports;
    poison_.resize(ports.size());
    for (size_t i = 0; i < ports.size(); ++i) {
      if (ports[i].role == Role::weight) {
        for (const Variant* v : variants)
          if (!weights_.contains(v->layout))
            MILLRACE_TRY(add(weights_[std::string(v->layout)], ring.weight_bytes(v->layout), ring));
        slabs_.emplace_back();
        continue;
      }
      MILLRACE_TRY(add(slabs_.emplace_back(), bytes_of(ports[i]), ring));
      if (ports[i].role == Role::out) MILLRACE_TRY(add_poison(ring, i, stream));
    }
    size_t most = 0;
    for (const Slab& slab : slabs_) most = std::max(most, slab.stride);
    for (const auto& [layout, slab] : weights_) most = std::max(most, slab.stride);
    MILLRACE_ASSIGN(kept_, DeviceBuffer::make(most));
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

  // Entry e gets the poison of entry (e + turn) % n: with another turn, another pattern.
  Status reset_outputs(const Ring& ring, size_t n_entries, size_t turn,
                       const Stream& stream) const {
    for (size_t i = 0; i < slabs_.size(); ++i) {
      if (ring.problem().ports[i].role == Role::out) {
        const size_t first = turn % ring.n_entries();
        const size_t before_end = std::min(n_entries, ring.n_entries() - first);
        MILLRACE_TRY(copy_poison(i, 0, first, before_end, stream));
        MILLRACE_TRY(copy_poison(i, before_end, 0, n_entries - before_end, stream));
      }
      for (size_t e = 0; ring.problem().ports[i].role == Role::inout && e < n_entries; ++e)
        MILLRACE_TRY(stream.copy_to_device(slabs_[i].at(e), ring.original(e, i), slabs_[i].bytes));
    }
    return {};
  }

  // Each entry gets the inputs and the weight of the other.
  Status exchange(Ring& ring, size_t a, size_t b, const Stream& stream) const {
    for (size_t i = 0; i < slabs_.size(); ++i)
      if (ring.problem().ports[i].role == Role::in || ring.problem().ports[i].role == Role::inout)
        MILLRACE_TRY(swap_in(slabs_[i], a, b, stream));
    for (const auto& [layout, slab] : weights_) MILLRACE_TRY(swap_in(slab, a, b, stream));
    ring.relabel(a, b);
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
  Status add_poison(const Ring& ring, size_t i, const Stream& stream) {
    const Port& port = ring.problem().ports[i];
    MILLRACE_TRY(add(poison_[i], bytes_of(port), ring));
    std::vector<std::byte> host(poison_[i].stride * ring.n_entries());
    for (size_t e = 0; e < ring.n_entries(); ++e)
      poison(port, {host.data() + e * poison_[i].stride, poison_[i].bytes},
             poison_salt(3, 0, e, i));
    if (!host.empty())
      MILLRACE_TRY(stream.copy_to_device(poison_[i].memory.data(), host.data(), host.size()));
    return stream.sync();
  }
  // n entries of poison from entry `from` on, over those from `to` on.
  Status copy_poison(size_t port, size_t to, size_t from, size_t n, const Stream& stream) const {
    const size_t bytes = n * slabs_[port].stride;
    if (bytes == 0) return {};
    return stream.copy_on_device(slabs_[port].at(to), poison_[port].at(from), bytes);
  }
  Status swap_in(const Slab& slab, size_t a, size_t b, const Stream& stream) const {
    if (slab.bytes == 0) return {};
    MILLRACE_TRY(stream.copy_on_device(kept_.data(), slab.at(a), slab.bytes));
    MILLRACE_TRY(stream.copy_on_device(slab.at(a), slab.at(b), slab.bytes));
    return stream.copy_on_device(slab.at(b), kept_.data(), slab.bytes);
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

  std::vector<Slab> slabs_;   // [port]; an empty one for the weight
  std::vector<Slab> poison_;  // [port], of outputs
  DeviceBuffer kept_;         // one entry of any slab, while two are exchanged
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
    MILLRACE_TRY(ring_.grow(std::min(wanted, kMaxEntries), context_.team));
    MILLRACE_TRY(device_.make(ring_, variants_, context_.stream()));
    rng_ = Rng(options.seed, 1);
    ring_.reset(0, ring_.n_entries(), true, context_.team);
    MILLRACE_TRY(device_.upload(ring_, context_.stream()));
    check_.emplace(ring_, context_.team);
    for (const Variant* variant : variants_) MILLRACE_TRY(add_variant(*variant, options));
    info_ = {ring_.n_entries(), static_cast<double>(ring_.cold_bytes()), check_->checked()};
    return {};
  }

  const MountInfo& info() const override { return info_; }
  double sm_mhz() const override { return sm_mhz_; }

  Result<double> time_us(size_t v, std::string_view mode) override {
    const Mounted& mounted = mounted_[v];
    const bool warm = mode == kWarmGraph;
    const size_t n_entries = warm ? 1 : ring_.n_entries();
    MILLRACE_TRY(change(mounted_[v].program, n_entries));
    MILLRACE_TRY(device_.reset_outputs(ring_, n_entries, rng_.next_u32(), context_.stream()));
    if (!warm) MILLRACE_TRY(context_.window.flush());
    // A graph waits until the host has submitted it: what that takes grows with its calls and is no
    // part of them. On a stream the launches are part of the row.
    const auto launch = [&] {
      if (mode == kColdStream) return mounted.program.launch(context_.stream());
      return (warm ? mounted.warm : mounted.cold).launch(context_.stream());
    };
    MILLRACE_ASSIGN(const double us, context_.time_us(launch, mode != kColdStream));
    sm_mhz_ = context_.sm_mhz;
    MILLRACE_TRY(device_.download_outputs(ring_, n_entries, context_.stream()));
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

  // As on the CPU: another content at the address of one entry; the workspace poison now and then,
  // and else what the last call left.
  Status change(Program& program, size_t n_entries) {
    const size_t entry = rng_.below(n_entries);
    if (const size_t other = ring_.partner_of(entry, rng_); other != entry)
      MILLRACE_TRY(device_.exchange(ring_, entry, other, context_.stream()));
    const DeviceBuffer& bytes = program.device_workspace();
    if (bytes.bytes() == 0 || rng_.below(2) != 0) return {};
    return context_.stream().fill(bytes.data(), static_cast<int>(rng_.below(256)), bytes.bytes());
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
                    context_.time_us([&] { return m.program.launch(context_.stream()); }));
    m.repeats = repeats_for(pass_us, 1e6 * options.sample_seconds);
    MILLRACE_ASSIGN(m.cold, m.program.capture(context_.stream(), 0, ring_.n_entries(), m.repeats));
    MILLRACE_ASSIGN(m.warm, m.program.capture(context_.stream(), 0, 1, warm_calls()));
    return {};
  }

  Result<int64_t> verify_pass(const Mounted& m) {
    MILLRACE_TRY(
        device_.reset_outputs(ring_, ring_.n_entries(), rng_.next_u32(), context_.stream()));
    MILLRACE_ASSIGN(const double us,
                    context_.time_us([&] { return m.program.launch(context_.stream()); }));
    MILLRACE_TRY(device_.download_outputs(ring_, ring_.n_entries(), context_.stream()));
    return std::max<int64_t>(1, static_cast<int64_t>(1e3 * us));
  }

  Context& context_;
  Ring ring_;
  DeviceRing device_;
  const std::vector<const Variant*> variants_;
  std::vector<Mounted> mounted_;
  std::optional<RingCheck> check_;
  Rng rng_{1};
  MountInfo info_;
  double sm_mhz_ = 0;
};

class CudaTarget : public Target {
 public:
  explicit CudaTarget(const Machine& machine) : context_(machine) {}
  Status prepare() {
    MILLRACE_TRY(context_.prepare());
    find_in_nvml();
    return {};
  }

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
  std::optional<GpuLoad> load() override {
    if (!gpu_) return std::nullopt;
    return nvml_->load(*gpu_);
  }

  Result<Roof> measure_roof(Effort effort) override {
    const int n_rounds = effort == Effort::full ? 10 : 4;
    MILLRACE_ASSIGN(const DeviceBuffer data, DeviceBuffer::make(kReadBytes));
    MILLRACE_TRY(context_.stream().fill(data.data(), 1, data.bytes()));
    double read_us = INFINITY, mac_us = INFINITY, n_macs = 0;
    for (int i = 0; i < n_rounds; ++i) {
      MILLRACE_ASSIGN(const double us, context_.time_us([&] {
        return cuda_status(
            launch_read(data.data(), data.bytes(), data.data(), context_.stream().get()),
            "read loop");
      }));
      read_us = std::min(read_us, us);
      MILLRACE_ASSIGN(const double mac, context_.time_us([&] {
        return cuda_status(launch_bf16_macs(data.data(), context_.stream().get(), &n_macs),
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
  // A container may have the device without the library: rows are then without power and reasons.
  void find_in_nvml() {
    auto opened = Nvml::open();
    const auto bus = cuda_pci_bus_id();
    if (!opened.ok() || !bus.ok()) return;
    nvml_ = std::move(opened).value();
    gpu_ = nvml_->find(bus.value());
  }

  Context context_;
  std::unique_ptr<Nvml> nvml_;
  std::optional<int> gpu_;  // its place there
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
