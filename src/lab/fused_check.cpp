#include "lab/fused_check.h"

#include <algorithm>

#include "exec/program.h"
#include "lab/mirror.h"

namespace millrace::lab {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<void*> pointers_to(std::vector<Bytes>& buffers) {
  std::vector<void*> out;
  for (Bytes& bytes : buffers) out.push_back(bytes.data());
  return out;
}

// Every port's content, weights as rows of the file.
std::vector<Bytes> filled(const FusedCase& problem, uint64_t seed) {
  std::vector<Bytes> out;
  for (size_t i = 0; i < problem.ports.size(); ++i) {
    const Port& port = problem.ports[i];
    Bytes& bytes = out.emplace_back(bytes_of(port));
    if (port.role == Role::out) {
      poison(port, bytes, poison_salt(seed, 0, 0, i));
      continue;
    }
    Rng rng(seed, i);
    port.fill(rng, bytes.data());
  }
  return out;
}

// Weights in the layouts of their calls.
void pack(const Fusion& fusion, const FusedCase& problem, std::vector<Bytes>& ports) {
  std::vector<ArgsBox> args(fusion.calls.size());
  problem.bind(pointers_to(ports), args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (problem.weights[i] < 0) continue;
    const Layout* layout = layout_named(*fusion.calls[i].op, fusion.calls[i].layout);
    MILLRACE_CHECK(layout != nullptr, "no layout {}", fusion.calls[i].layout);
    Bytes& plain = ports[static_cast<size_t>(problem.weights[i])];
    Bytes packed(layout->bytes(args[i].bytes));
    layout->pack(args[i].bytes, plain.data(), packed.data());
    plain = std::move(packed);
  }
}

const Variant* plain_variant(const FusedCall& call, const ArgsBox& args, const Machine& machine) {
  for (const Variant& variant : call.op->variants())
    if (is_cuda(variant.isa) && variant.numerics == call.numerics &&
        (call.layout.empty() || call.layout == variant.layout) &&
        accepts(variant, args.bytes, machine))
      return &variant;
  return nullptr;
}

class Device {
 public:
  static Result<Device> make(const FusedCase& problem, std::vector<Bytes>& ports,
                             const Stream& stream) {
    Device device(problem, stream);
    for (Bytes& bytes : ports) {
      MILLRACE_ASSIGN(Mirror mirror, Mirror::make(bytes));
      device.mirrors_.push_back(std::move(mirror));
    }
    return device;
  }

  std::vector<void*> pointers() const {
    std::vector<void*> out;
    for (const Mirror& mirror : mirrors_) out.push_back(mirror.data());
    return out;
  }
  // All ports after the work that `start` puts on the stream.
  template <class Start>
  Result<std::vector<Bytes>> after(Start start) const {
    for (const Mirror& mirror : mirrors_) MILLRACE_TRY(mirror.upload(stream_));
    MILLRACE_TRY(start());
    std::vector<Bytes> out;
    for (size_t i = 0; i < mirrors_.size(); ++i) {
      MILLRACE_ASSIGN(Bytes bytes, mirrors_[i].download(stream_, problem_.ports[i].name));
      out.push_back(std::move(bytes));
    }
    return out;
  }

 private:
  Device(const FusedCase& problem, const Stream& stream) : problem_(problem), stream_(stream) {}
  const FusedCase& problem_;
  const Stream& stream_;
  std::vector<Mirror> mirrors_;
};

Status compare(const FusedCase& problem, const std::vector<Bytes>& got,
               const std::vector<Bytes>& plain, const std::vector<Bytes>& sent) {
  for (size_t i = 0; i < problem.ports.size(); ++i) {
    const bool is_kept =
        std::count(problem.kept.begin(), problem.kept.end(), static_cast<int>(i)) > 0;
    const Bytes& expected = is_kept ? plain[i] : sent[i];
    const auto differs = std::mismatch(got[i].begin(), got[i].end(), expected.begin());
    if (differs.first != got[i].end())
      return error(Code::wrong_result, "port {} {} at byte {} of {}", problem.ports[i].name,
                   is_kept ? "differs from the plain calls'" : "was written",
                   differs.first - got[i].begin(), got[i].size());
  }
  return {};
}

}  // namespace

Result<bool> check_fused(const Fusion& fusion, const FusedCase& problem, const FusedTrial& trial) {
  std::vector<Bytes> ports = filled(problem, trial.seed);
  pack(fusion, problem, ports);
  MILLRACE_ASSIGN(const Device device, Device::make(problem, ports, trial.stream));
  std::vector<ArgsBox> args(fusion.calls.size());
  problem.bind(device.pointers(), args);

  Program fused, plain;
  Program::Call call{.variant = &fusion.variant};
  if (!fusion.join(args, call.args))
    return error(Code::wrong_result, "the plain calls are not joined");
  if (!accepts(fusion.variant, call.args.bytes, trial.machine)) return false;
  fused.add(call);
  for (size_t i = 0; i < args.size(); ++i) {
    const Variant* variant = plain_variant(fusion.calls[i], args[i], trial.machine);
    if (variant == nullptr)
      return error(Code::unsupported, "no plain variant of {}", fusion.calls[i].op->name);
    plain.add(*fusion.calls[i].op, *variant, args[i]);
  }
  MILLRACE_TRY(plain.prepare_device());
  MILLRACE_TRY(fused.prepare_device());
  MILLRACE_ASSIGN(const auto expected, device.after([&] { return plain.launch(trial.stream); }));
  MILLRACE_ASSIGN(const auto streamed, device.after([&] { return fused.launch(trial.stream); }));
  MILLRACE_TRY(compare(problem, streamed, expected, ports));
  MILLRACE_ASSIGN(const Graph graph, fused.capture(trial.stream, 0, 1));
  MILLRACE_ASSIGN(const auto graphed, device.after([&] { return graph.launch(trial.stream); }));
  MILLRACE_TRY(compare(problem, graphed, expected, ports));
  return true;
}

}  // namespace millrace::lab
