#include "lab/witness.h"

#include "lab/plan.h"

namespace millrace::lab {

std::span<const Variant> witnesses_of(const Op& op) {
  return op.witnesses == nullptr ? std::span<const Variant>() : op.witnesses();
}

const Variant* witness_for(const Op& op, const Case& problem, const Variant& variant) {
  if (problem.tolerance.exact) return &op.variants().back();
  const ArgsBox args = shape_of(problem);
  for (const Variant& witness : witnesses_of(op))
    if (witness.numerics == variant.numerics &&
        (witness.takes == nullptr || witness.takes(args.bytes)))
      return &witness;
  return nullptr;
}

const Variant* peer_for(const Op& op, const Case& problem, const Variant& variant,
                        const std::function<bool(const Variant&)>& has) {
  if (witness_for(op, problem, variant) != nullptr) return nullptr;
  const ArgsBox args = shape_of(problem);
  const Variant* peer = nullptr;
  for (const Variant& other : op.variants())
    if (other.name != variant.name && other.numerics == variant.numerics && has(other) &&
        other.numerics != kReference && (other.takes == nullptr || other.takes(args.bytes)))
      peer = &other;
  return peer;
}

}  // namespace millrace::lab
