#include "exec/fuse.h"

#include <algorithm>

namespace millrace {
namespace {

bool are_calls_of(const Fusion& fusion, std::span<const LoweredCall> calls, const Force& force) {
  return std::equal(fusion.calls.begin(), fusion.calls.end(), calls.begin(),
                    [&](const FusedCall& wanted, const LoweredCall& call) {
                      return wanted.op == call.op && wanted.numerics == call.numerics &&
                             (wanted.layout.empty() || wanted.layout == call.layout) &&
                             force.variant_for(*call.op) == nullptr;
                    });
}

bool are_linked(const Fusion& fusion, std::span<const LoweredCall> calls) {
  return std::all_of(fusion.links.begin(), fusion.links.end(), [&](const FusedLink& link) {
    const LoweredCall& reader = calls[static_cast<size_t>(link.call)];
    const LoweredCall& writer = calls[static_cast<size_t>(link.from)];
    const auto in = static_cast<size_t>(link.in);
    return in < reader.in.size() && !writer.out.empty() && reader.in[in] == writer.out[0];
  });
}

bool reads(const LoweredCall& call, int value) {
  return std::any_of(call.in.begin(), call.in.end(),
                     [&](const Operand& in) { return in.value == value; });
}

// Whether what the group makes, but for what it keeps, stays inside it.
bool is_closed(const StepSpec& spec, std::span<const LoweredCall> calls, const FusedGroup& group) {
  for (size_t i = group.begin; i < group.end(); ++i) {
    if (i - group.begin == static_cast<size_t>(group.fusion->kept)) continue;
    for (const Operand& made : calls[i].out) {
      if (made.value == spec.logits) return false;
      for (size_t j = 0; j < calls.size(); ++j)
        if ((j < group.begin || j >= group.end()) && reads(calls[j], made.value)) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<FusedGroup> fuse(const StepSpec& spec, std::span<const LoweredCall> calls,
                             std::span<const Fusion* const> with, const Force& force) {
  std::vector<FusedGroup> groups;
  for (size_t i = 0; i < calls.size();) {
    const auto found = std::find_if(with.begin(), with.end(), [&](const Fusion* fusion) {
      const FusedGroup group{i, fusion};
      if (group.end() > calls.size()) return false;
      const auto here = calls.subspan(i, fusion->calls.size());
      return are_calls_of(*fusion, here, force) && are_linked(*fusion, here) &&
             is_closed(spec, calls, group);
    });
    if (found != with.end()) groups.push_back({i, *found});
    i = found != with.end() ? groups.back().end() : i + 1;
  }
  return groups;
}

bool join(const FusedGroup& group, std::span<const ArgsBox> plain, const Machine& machine,
          ArgsBox& joined) {
  const Variant& variant = group.fusion->variant;
  return variant.run != nullptr && group.fusion->join(plain, joined) &&
         accepts(variant, joined.bytes, machine);
}

}  // namespace millrace
