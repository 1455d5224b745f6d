// The GPU as a Runner: an instance's buffers are mirrored on the device between guard bytes, the
// call is launched on a stream and again as a graph, and both must give the same bits.
#include <array>
#include <cstring>

#include "exec/program.h"
#include "lab/bytes.h"
#include "lab/fused_check.h"
#include "lab/mirror.h"
#include "lab/poison.h"
#include "lab/runner.h"

namespace millrace::lab {
namespace {

class CudaRunner : public Runner {
 public:
  CudaRunner(const Machine& machine, Stream stream)
      : machine_(machine), stream_(std::move(stream)) {}

  std::string_view device() const override { return "cuda"; }
  bool owns(const Variant& variant) const override { return is_cuda(variant.isa); }
  bool has(const Variant& variant) const override { return machine_.has(variant.isa); }
  std::span<const int> lane_counts() const override {
    static constexpr std::array kCounts = {1};
    return kCounts;
  }

  Status run(Instance& instance, const Variant& variant, int) override {
    MILLRACE_ASSIGN(const auto views, instance.views_for(variant));
    std::vector<Mirror> mirrors;
    std::vector<void*> pointers;
    for (const auto& view : views) {
      MILLRACE_ASSIGN(Mirror mirror, Mirror::make(view));
      pointers.push_back(mirror.data());
      mirrors.push_back(std::move(mirror));
    }
    ArgsBox args;
    instance.problem().bind(pointers, args);
    Program program;
    program.add(instance.op(), variant, args);
    MILLRACE_TRY(program.prepare_device());
    MILLRACE_TRY(upload(mirrors, program));
    MILLRACE_TRY(program.launch(stream_));
    MILLRACE_ASSIGN(const auto streamed, download(instance.problem(), mirrors));
    MILLRACE_TRY(upload(mirrors, program));
    MILLRACE_ASSIGN(const Graph graph, program.capture(stream_, 0, 1));
    MILLRACE_TRY(graph.launch(stream_));
    MILLRACE_ASSIGN(const auto graphed, download(instance.problem(), mirrors));
    return keep(instance, views, streamed, graphed);
  }

  Result<bool> check_fused(const Fusion& fusion, const FusedCase& problem, uint64_t seed) override {
    return lab::check_fused(fusion, problem, {machine_, stream_, seed});
  }

 private:
  using Contents = std::vector<std::vector<std::byte>>;  // [port]

  Status upload(const std::vector<Mirror>& mirrors, Program& program) {
    DeviceBuffer& workspace = program.device_workspace();
    if (workspace.bytes() > 0)
      MILLRACE_TRY(stream_.fill(workspace.data(), static_cast<int>(poison_salt(0, n_runs_++) & 255),
                                workspace.bytes()));
    for (const Mirror& mirror : mirrors) MILLRACE_TRY(mirror.upload(stream_));
    return {};
  }

  Result<Contents> download(const Case& problem, const std::vector<Mirror>& mirrors) {
    Contents contents;
    for (size_t i = 0; i < mirrors.size(); ++i) {
      MILLRACE_ASSIGN(auto bytes, mirrors[i].download(stream_, problem.ports[i].name));
      contents.push_back(std::move(bytes));
    }
    return contents;
  }

  // Outputs into the host buffers; inputs must have come back as they were sent.
  static Status keep(Instance& instance, const std::vector<std::span<std::byte>>& views,
                     const Contents& streamed, const Contents& graphed) {
    for (size_t i = 0; i < views.size(); ++i) {
      const Port& port = instance.problem().ports[i];
      if (streamed[i] != graphed[i])
        return error(Code::wrong_result, "port {}: the graph gave different bits from the stream",
                     port.name);
      if (is_output(port.role))
        std::memcpy(views[i].data(), streamed[i].data(), streamed[i].size());
      else if (!std::equal(views[i].begin(), views[i].end(), streamed[i].begin()))
        return error(Code::wrong_result, "input port {} was written", port.name);
    }
    return {};
  }

  const Machine& machine_;
  Stream stream_;
  uint64_t n_runs_ = 0;
};

}  // namespace

Result<std::unique_ptr<Runner>> cuda_runner(const Machine& machine) {
  MILLRACE_TRY(cuda_device_count().status());
  MILLRACE_ASSIGN(Stream stream, Stream::make());
  return std::unique_ptr<Runner>(std::make_unique<CudaRunner>(machine, std::move(stream)));
}

}  // namespace millrace::lab
