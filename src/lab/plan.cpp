#include "lab/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "kernels/pick.h"

namespace millrace::lab {
namespace {

using Names = std::vector<std::string>;

bool matches(const Names& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
  });
}

Result<std::vector<const Op*>> find_ops(const Names& names) {
  std::vector<const Op*> found;
  for (const auto& name : names) {
    const Op* op = op_named(name);
    if (op == nullptr)
      return error(Code::not_found, "no op '{}'; the ops are {}", name, op_names());
    found.push_back(op);
  }
  if (names.empty()) found.assign(ops().begin(), ops().end());
  return found;
}

Status check_variants(const Target& target, const std::vector<const Op*>& selected,
                      const Names& names) {
  for (const auto& name : names) {
    std::string known;
    const Variant* found = nullptr;
    for (const Op* op : selected) {
      if (const Variant* v = variant_named(*op, name); v != nullptr) found = v;
      known += fmt::format("\n  {}: {}", op->name, variant_names(*op));
    }
    if (found == nullptr)
      return error(Code::not_found, "no variant '{}'; the variants are:{}", name, known);
    if (!target.has(*found))
      return error(Code::unavailable, "variant '{}' needs {}, which this {} lacks", name,
                   name_of(found->isa), target.device());
  }
  return {};
}

Status check_cases(const std::vector<const Op*>& selected, const Names& patterns) {
  for (const auto& pattern : patterns) {
    std::string known;
    bool found = false;
    for (const Op* op : selected) {
      known += fmt::format("\n  {}:", op->name);
      for (const Case& problem : op->cases()) {
        found = found || matches({pattern}, problem.name);
        known += " " + problem.name;
      }
    }
    if (!found) return error(Code::not_found, "no case '{}'; the cases are:{}", pattern, known);
  }
  return {};
}

std::vector<const Variant*> variants_for(const Target& target, const Op& op, const Case& problem,
                                         const Names& names) {
  const ArgsBox args = shape_of(problem);
  std::vector<const Variant*> chosen, plain;
  for (const Variant& v : op.variants()) {
    if (!target.has(v) || (v.takes != nullptr && !v.takes(args.bytes))) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), v.name) == names.end()) continue;
    (v.isa == Isa::generic && names.empty() ? plain : chosen).push_back(&v);
  }
  if (!chosen.empty() || plain.empty()) return chosen;
  return {plain.front()};
}

bool does_work(const Case& problem) {
  const Floor& f = problem.floor;
  return f.read_bytes + f.write_bytes + f.i8_macs + f.f32_macs + f.bf16_macs > 0;
}

}  // namespace

ArgsBox shape_of(const Case& problem) {
  const std::vector<void*> none(problem.ports.size());
  ArgsBox args;
  problem.bind(none, args);
  return args;
}

Result<std::vector<PlanItem>> plan_bench(const Target& target, const BenchFilter& filter) {
  MILLRACE_ASSIGN(const auto selected, find_ops(filter.ops));
  MILLRACE_TRY(check_cases(selected, filter.cases));
  MILLRACE_TRY(check_variants(target, selected, filter.variants));
  std::vector<PlanItem> items;
  for (const Op* op : selected)
    for (const Case& problem : op->cases()) {
      const bool wanted =
          filter.cases.empty() ? problem.timed : matches(filter.cases, problem.name);
      if (!wanted || !does_work(problem)) continue;
      auto variants = variants_for(target, *op, problem, filter.variants);
      if (variants.empty()) continue;
      items.push_back({op, problem, op->key(shape_of(problem).bytes), std::move(variants)});
    }
  if (items.empty())
    return error(Code::not_found,
                 "nothing to measure: none of the selected variants takes one of the selected "
                 "cases on this {}",
                 target.device());
  return items;
}

}  // namespace millrace::lab
