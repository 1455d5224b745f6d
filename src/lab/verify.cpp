#include "lab/verify.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "exec/program.h"
#include "lab/bytes.h"
#include "lab/compare.h"
#include "lab/plan.h"
#include "lab/splits.h"
#include "lab/witness.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

using Bytes = std::vector<std::byte>;

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
Status check_rows(const Trial& trial, const Instance& whole, const std::vector<Bytes>& expected,
                  const std::vector<int64_t>& from) {
  const auto lane_counts = trial.runner.lane_counts();
  const int n_lanes = lane_counts[from.size() % lane_counts.size()];
  Case problem = whole.problem().with_rows(static_cast<int64_t>(from.size()));
  MILLRACE_ASSIGN(Instance part, Instance::make(trial.op, std::move(problem), 1));
  take_rows(whole, part, from);
  part.derive();
  MILLRACE_TRY(trial.runner.run(part, trial.variant, n_lanes));
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

const Variant& reference_of(const Op& op) {
  return op.variants().back();
}

// What the reference gives, and the magnitudes its tolerance is scaled by; one entry per output
// port.
struct Expected {
  std::vector<Bytes> outputs;
  std::vector<std::vector<double>> magnitudes;
};

// Runs a reference or a witness: on the host, by one lane.
Status run_alone(Instance& it, const Variant& variant) {
  MILLRACE_ASSIGN(const ArgsBox args, it.args_for(variant));
  Program program;
  program.add(it.op(), variant, args);
  MILLRACE_TRY(program.prepare(1));
  Team alone(1);
  return program.run(alone);
}

Result<Expected> expect(Instance& it) {
  const Variant& reference = reference_of(it.op());
  MILLRACE_ASSIGN(const ArgsBox args, it.args_for(reference));
  MILLRACE_TRY(it.op().validate(args.bytes));
  MILLRACE_TRY(run_alone(it, reference));
  Expected expected;
  expected.outputs = outputs_of(it);
  for (size_t i = 0; i < it.problem().ports.size(); ++i) {
    if (!is_output(it.problem().ports[i].role)) continue;
    auto& m = expected.magnitudes.emplace_back();
    if (!it.problem().magnitude) continue;
    m.resize(static_cast<size_t>(it.problem().ports[i].elems));
    it.reset_outputs();
    it.problem().magnitude(args, i, m);
  }
  return expected;
}

Status compare_outputs(const Instance& it, const Expected& expected) {
  const auto& ports = it.problem().ports;
  for (size_t i = 0, out = 0; i < ports.size(); ++i) {
    if (!is_output(ports[i].role)) continue;
    MILLRACE_TRY(compare(ports[i], it.port(i), expected.outputs[out].data(), it.problem().tolerance,
                         expected.magnitudes[out]));
    ++out;
  }
  return {};
}

// The same bits with any number of lanes.
Status check_lanes(const Trial& trial, Instance& whole, const std::vector<Bytes>& expected) {
  for (int n_lanes : trial.runner.lane_counts()) {
    whole.reset_outputs();
    MILLRACE_TRY(trial.runner.run(whole, trial.variant, n_lanes));
    MILLRACE_TRY(
        same_bytes(outputs_of(whole), expected, fmt::format("{} lanes against 1", n_lanes)));
  }
  return {};
}

// The same bits from every other variant of the class that this device has.
Status check_class(const Trial& trial, Instance& whole, const std::vector<Bytes>& expected) {
  for (const Variant& other : trial.op.variants()) {
    if (other.numerics != trial.variant.numerics || other.name == trial.variant.name) continue;
    if (!trial.runner.owns(other) || !trial.runner.has(other) || !takes(other, whole)) continue;
    whole.reset_outputs();
    MILLRACE_TRY(trial.runner.run(whole, other, 2));
    MILLRACE_TRY(same_bytes(outputs_of(whole), expected, fmt::format("variant {}", other.name)));
  }
  return {};
}

// Where the class has no witness: the same bits from the plainest other variant of it. Leaves the
// outputs as they were.
Status check_peer(const Trial& trial, Instance& whole) {
  const Variant* peer = peer_for(trial.op, trial.problem, trial.variant, [&](const Variant& other) {
    return trial.runner.owns(other) && trial.runner.has(other);
  });
  if (peer == nullptr) return {};
  const std::vector<Bytes> expected = outputs_of(whole);
  whole.reset_outputs();
  MILLRACE_TRY(trial.runner.run(whole, *peer, 2));
  return same_bytes(outputs_of(whole), expected, fmt::format("variant {}", peer->name));
}

// And from the witness of the class. On a device a NaN has bits of its own.
Status check_witness(const Trial& trial, Instance& whole, const std::vector<Bytes>& expected) {
  const Variant* witness = witness_for(trial.op, trial.problem, trial.variant);
  if (witness == nullptr || witness->numerics == kReference) return {};  // conformance asks it
  whole.reset_outputs();
  MILLRACE_TRY(run_alone(whole, *witness));
  if (trial.runner.device() == "cpu")
    return same_bytes(outputs_of(whole), expected, fmt::format("witness {}", witness->name));
  const auto& ports = whole.problem().ports;
  for (size_t i = 0, out = 0; i < ports.size(); ++i) {
    if (!is_output(ports[i].role)) continue;
    const Status same =
        compare(ports[i], expected[out++].data(), whole.port(i), {.exact = true}, {});
    if (!same.ok()) return error(same.code(), "witness {}: {}", witness->name, same.message());
  }
  return {};
}

// The same bits for content that lies where other content lay when it was first called: nothing is
// remembered by address. Ends the use of `whole` as it was.
Status check_memory(const Trial& trial, Instance& whole) {
  whole.refill(trial.seed + 1);
  MILLRACE_TRY(trial.runner.run(whole, trial.variant, 2));
  MILLRACE_ASSIGN(Instance fresh, Instance::make(trial.op, trial.problem, trial.seed + 1));
  MILLRACE_TRY(trial.runner.run(fresh, trial.variant, 2));
  return same_bytes(outputs_of(whole), outputs_of(fresh), "new inputs at the address of others");
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

// One row of a batch against the reference, and against the witness bit for bit.
Status check_row(const Trial& trial, const Instance& whole, int64_t row) {
  MILLRACE_ASSIGN(Instance part, Instance::make(trial.op, whole.problem().with_rows(1), 1));
  take_rows(whole, part, {row});
  part.derive();
  MILLRACE_ASSIGN(const Expected expected, expect(part));
  const Variant* witness = witness_for(trial.op, trial.problem, trial.variant);
  if (witness != nullptr && witness->numerics == kReference) witness = nullptr;  // compared below
  if (witness != nullptr) {
    part.reset_outputs();
    MILLRACE_TRY(run_alone(part, *witness));
  }
  const auto& ports = part.problem().ports;
  for (size_t i = 0, out = 0; i < ports.size(); ++i) {
    if (!is_output(ports[i].role)) continue;
    const std::byte* got = whole.port(i) + static_cast<size_t>(row) * row_bytes(ports[i]);
    MILLRACE_TRY(compare(ports[i], got, expected.outputs[out].data(), part.problem().tolerance,
                         expected.magnitudes[out]));
    ++out;
    if (witness == nullptr) continue;
    const Status same = compare(ports[i], got, part.port(i), {.exact = true}, {});
    if (!same.ok()) return error(same.code(), "witness {}: {}", witness->name, same.message());
  }
  return {};
}

}  // namespace

bool takes(const Variant& variant, const Case& problem) {
  return variant.takes == nullptr || variant.takes(shape_of(problem).bytes);
}

bool takes(const Variant& variant, Instance& instance) {
  return takes(variant, instance.problem());
}

Status check_conformance(const Trial& trial) {
  MILLRACE_ASSIGN(Instance it, Instance::make(trial.op, trial.problem, trial.seed));
  MILLRACE_ASSIGN(const Expected expected, expect(it));
  it.reset_outputs();
  MILLRACE_TRY(trial.runner.run(it, trial.variant, 2));
  MILLRACE_TRY(it.check_untouched());
  return compare_outputs(it, expected);
}

Status check_promise1(const Trial& trial) {
  MILLRACE_ASSIGN(Instance whole, Instance::make(trial.op, trial.problem, trial.seed));
  MILLRACE_TRY(trial.runner.run(whole, trial.variant, 1));
  const std::vector<Bytes> expected = outputs_of(whole);
  MILLRACE_TRY(check_lanes(trial, whole, expected));
  MILLRACE_TRY(check_class(trial, whole, expected));
  MILLRACE_TRY(check_witness(trial, whole, expected));
  MILLRACE_TRY(check_splits(trial, whole, expected));
  whole.reset_outputs();
  if (trial.problem.with_rows && trial.problem.n_rows >= 1)
    for (const auto& from : sub_batches(trial.problem.n_rows, trial.seed))
      MILLRACE_TRY(check_rows(trial, whole, expected, from));
  return check_memory(trial, whole);
}

Status check_timed(const Trial& trial) {
  if (!trial.problem.with_rows || trial.problem.n_rows < 1) return check_conformance(trial);
  MILLRACE_ASSIGN(Instance whole, Instance::make(trial.op, trial.problem, trial.seed));
  MILLRACE_TRY(trial.runner.run(whole, trial.variant, 2));
  MILLRACE_TRY(whole.check_untouched());
  MILLRACE_TRY(check_peer(trial, whole));
  for (const int64_t row : std::set{int64_t{0}, trial.problem.n_rows - 1}) {
    const Status status = check_row(trial, whole, row);
    if (!status.ok()) return error(status.code(), "row {}: {}", row, status.message());
  }
  return {};
}

}  // namespace millrace::lab
