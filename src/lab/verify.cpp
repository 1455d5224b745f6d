#include "lab/verify.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "exec/program.h"
#include "lab/compare.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

using Bytes = std::vector<std::byte>;

bool is_output(Role role) {
  return role == Role::out || role == Role::inout;
}

std::vector<Bytes> outputs_of(const Instance& it) {
  std::vector<Bytes> out;
  for (size_t i = 0; i < it.problem().ports.size(); ++i) {
    const Port& port = it.problem().ports[i];
    if (is_output(port.role)) out.emplace_back(it.port(i), it.port(i) + bytes_of(port));
  }
  return out;
}

Status same_bytes(const std::vector<Bytes>& a, const std::vector<Bytes>& b, std::string_view what) {
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j)
      if (a[i][j] != b[i][j])
        return error(Code::wrong_result, "{}: output {} differs at byte {}", what, i, j);
  return {};
}

size_t row_bytes(const Port& port) {
  return bytes_of(port.type, port.row_elems);
}

// Copies row `from[r]` of every per-row port of `whole` into row r of `part`; shared ports as they
// are.
void take_rows(const Instance& whole, Instance& part, const std::vector<int64_t>& from) {
  const auto& ports = part.problem().ports;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].role == Role::out) continue;
    if (ports[i].row_elems == 0) {
      std::memcpy(part.port(i), whole.port(i), bytes_of(ports[i]));
      continue;
    }
    const size_t bytes = row_bytes(ports[i]);
    for (size_t r = 0; r < from.size(); ++r)
      std::memcpy(part.port(i) + r * bytes, whole.port(i) + static_cast<size_t>(from[r]) * bytes,
                  bytes);
  }
}

// Runs a sub-batch made of rows `from` and compares its output rows with those of the whole batch.
Status check_rows(const Op& op, const Variant& variant, const Instance& whole,
                  const std::vector<Bytes>& expected, const std::vector<int64_t>& from,
                  int n_lanes) {
  Case problem = whole.problem().with_rows(static_cast<int64_t>(from.size()));
  MILLRACE_ASSIGN(Instance part, Instance::make(op, std::move(problem), 1));
  take_rows(whole, part, from);
  MILLRACE_TRY(run_once(part, variant, n_lanes));
  size_t out = 0;
  for (size_t i = 0; i < part.problem().ports.size(); ++i) {
    const Port& port = part.problem().ports[i];
    if (!is_output(port.role)) continue;
    const size_t bytes = row_bytes(port);
    for (size_t r = 0; r < from.size(); ++r)
      if (std::memcmp(part.port(i) + r * bytes,
                      expected[out].data() + static_cast<size_t>(from[r]) * bytes, bytes) != 0)
        return error(Code::wrong_result,
                     "row {} of {} differs as row {} of a batch of {} on {} lanes", from[r],
                     whole.problem().n_rows, r, from.size(), n_lanes);
    ++out;
  }
  return {};
}

std::vector<std::vector<int64_t>> sub_batches(int64_t n_rows, uint64_t seed) {
  Rng rng(seed, 77);
  std::vector<std::vector<int64_t>> out = {{0}, {n_rows - 1}};
  for (int i = 0; i < 3; ++i) {
    std::vector<int64_t> rows(rng.below(static_cast<uint64_t>(n_rows)) + 1);
    for (auto& row : rows) row = static_cast<int64_t>(rng.below(static_cast<uint64_t>(n_rows)));
    out.push_back(rows);
  }
  std::vector<int64_t> reversed(static_cast<size_t>(n_rows));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  out.push_back(reversed);
  return out;
}

}  // namespace

Status run_once(Instance& instance, const Variant& variant, int n_lanes) {
  MILLRACE_ASSIGN(const ArgsBox args, instance.args_for(variant));
  Program program;
  program.add(variant, args);
  MILLRACE_TRY(program.prepare(n_lanes));
  Team team(n_lanes);
  return program.run(team);
}

Status check_conformance(const Op& op, const Variant& variant, const Case& problem, uint64_t seed) {
  MILLRACE_ASSIGN(Instance it, Instance::make(op, problem, seed));
  const Variant& reference = op.variants().back();
  MILLRACE_ASSIGN(const ArgsBox args, it.args_for(reference));
  MILLRACE_TRY(op.validate(args.bytes));
  MILLRACE_TRY(run_once(it, reference, 1));
  const std::vector<Bytes> want = outputs_of(it);
  std::vector<std::vector<double>> magnitudes;
  for (size_t i = 0; i < it.problem().ports.size(); ++i) {
    if (!is_output(it.problem().ports[i].role)) continue;
    auto& m = magnitudes.emplace_back();
    if (!it.problem().magnitude) continue;
    m.resize(static_cast<size_t>(it.problem().ports[i].elems));
    it.reset_outputs();
    it.problem().magnitude(args, i, m);
  }
  it.reset_outputs();
  MILLRACE_TRY(run_once(it, variant, 2));
  MILLRACE_TRY(it.check_untouched());
  const std::vector<Bytes> got = outputs_of(it);
  for (size_t i = 0, out = 0; i < it.problem().ports.size(); ++i) {
    if (!is_output(it.problem().ports[i].role)) continue;
    MILLRACE_TRY(compare(it.problem().ports[i], got[out].data(), want[out].data(),
                         it.problem().tolerance, magnitudes[out]));
    ++out;
  }
  return {};
}

Status check_promise1(const Op& op, const Variant& variant, const Case& problem, uint64_t seed) {
  MILLRACE_ASSIGN(Instance whole, Instance::make(op, problem, seed));
  MILLRACE_TRY(run_once(whole, variant, 1));
  const std::vector<Bytes> expected = outputs_of(whole);
  for (int n_lanes : {2, 3, 7}) {
    whole.reset_outputs();
    MILLRACE_TRY(run_once(whole, variant, n_lanes));
    MILLRACE_TRY(
        same_bytes(outputs_of(whole), expected, fmt::format("{} lanes against 1", n_lanes)));
  }
  MILLRACE_ASSIGN(const ArgsBox args, whole.args_for(variant));
  for (const Variant& other : op.variants()) {
    const bool comparable = other.numerics == variant.numerics && other.name != variant.name;
    if (!comparable || is_cuda(other.isa) || !cpu_has(other.isa)) continue;
    if (other.takes != nullptr && !other.takes(args.bytes)) continue;
    whole.reset_outputs();
    MILLRACE_TRY(run_once(whole, other, 2));
    MILLRACE_TRY(same_bytes(outputs_of(whole), expected, fmt::format("variant {}", other.name)));
  }
  if (!problem.with_rows || problem.n_rows < 1) return {};
  whole.reset_outputs();
  for (const auto& from : sub_batches(problem.n_rows, seed))
    MILLRACE_TRY(
        check_rows(op, variant, whole, expected, from, static_cast<int>(from.size() % 3) + 1));
  return {};
}

}  // namespace millrace::lab
