#include "lab/runner.h"

#include <array>
#include <map>

#include "exec/program.h"
#include "lab/poison.h"
#include "lab/target.h"

namespace millrace::lab {
namespace {

class CpuRunner : public Runner {
 public:
  explicit CpuRunner(const Machine& machine) : machine_(machine) {}

  std::string_view device() const override { return "cpu"; }
  bool owns(const Variant& variant) const override { return !is_cuda(variant.isa); }
  bool has(const Variant& variant) const override { return machine_.has(variant.isa); }
  std::span<const int> lane_counts() const override {
    static constexpr std::array kCounts = {1, 2, 3, 7};
    return kCounts;
  }

  Status run(Instance& instance, const Variant& variant, int n_lanes) override {
    MILLRACE_ASSIGN(const ArgsBox args, instance.args_for(variant));
    Program program;
    program.add(instance.op(), variant, args);
    Team& team = team_of(n_lanes);
    MILLRACE_TRY(program.prepare(team.size()));
    // A workspace holds what earlier calls left there: a variant may count on nothing.
    const HostBuffer& workspace = program.workspace();
    poison_workspace({workspace.data(), workspace.bytes()}, poison_salt(0, n_runs_++));
    return program.run(team);
  }

 private:
  Team& team_of(int n_lanes) {
    auto& team = teams_[n_lanes];
    if (team == nullptr) team = std::make_unique<Team>(n_lanes);
    return *team;
  }

  const Machine& machine_;
  std::map<int, std::unique_ptr<Team>> teams_;
  uint64_t n_runs_ = 0;
};

}  // namespace

std::unique_ptr<Runner> cpu_runner(const Machine& machine) {
  return std::make_unique<CpuRunner>(machine);
}

Result<std::unique_ptr<Runner>> make_runner(std::string_view device, const Machine& machine) {
  if (device == "cpu") return cpu_runner(machine);
  if (device == "cuda") {
    MILLRACE_TRY(check_gpu(machine));
    return cuda_runner(machine);
  }
  return error(Code::not_found, "no device '{}'; the devices are cpu and cuda", device);
}

}  // namespace millrace::lab
