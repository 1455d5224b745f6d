// The choice of a variant for some args: a forced one, else the profile's if it is in the numerics
// class of the default choice, else the first in table order that accepts the args. Pure: it can be
// printed, replayed and forced. Choices are made when a Program is built, not per call.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kernels/kernel.h"
#include "kernels/profile.h"

namespace millrace {

// Which variant each op is forced to: "rmsnorm:avx2,matmul:avx512_vnni", as in MILLRACE_FORCE.
class Force {
 public:
  // Unknown names are errors that list what exists.
  static Result<Force> parse(std::string_view text);
  // Of the environment variable MILLRACE_FORCE; nothing forced when it is not set.
  static Result<Force> from_environment();

  const Variant* variant_for(const Op& op) const;

 private:
  std::map<const Op*, const Variant*> choices_;
};

struct Picked {
  const Op* op = nullptr;
  const Variant* variant = nullptr;
  std::string reason;  // "forced", "profile", "first in the table", ...
};

// "rmsnorm [rows=1 n=576]: avx2 (class cpu.rmsnorm.lanes16, layout plain): first in the table"
std::string describe(const Picked& picked, const void* args);

enum class DeviceKind { cpu, cuda };

struct PickFrom {
  const Machine& machine;
  const Profile& profile;
  const Force& force;
  DeviceKind device = DeviceKind::cpu;
};

// Fails when nothing accepts the args, or a forced variant does not.
Result<Picked> pick(const Op& op, const void* args, const PickFrom& from);

// Whether a variant is plain loops (`reference`, `scalar`): right on every machine, and many times
// slower than the others, so whoever runs one says so.
bool is_slow(const Variant& variant);

const Variant* variant_named(const Op& op, std::string_view name);
std::string variant_names(const Op& op);  // "avx512, avx2, reference"
std::string op_names();

}  // namespace millrace
