#include "lab/ring_check.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "lab/bytes.h"
#include "lab/compare.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

// Runs the reference on one entry (all rows, or one row through the case's with_rows) and compares
// the ring's outputs with what it gives. It reads the case's own inputs where they lie and owns no
// more than what the reference writes, so that one per lane is cheap.
class Judge {
 public:
  explicit Judge(const Ring& ring) : ring_(ring) {}

  Status check(size_t entry, int64_t row) {
    const Case problem = row < 0 ? ring_.problem() : ring_.problem().with_rows(1);
    MILLRACE_TRY(load(problem, entry, std::max<int64_t>(row, 0)));
    const Variant& reference = ring_.op().variants().back();
    ArgsBox args;
    problem.bind(pointers_, args);
    MILLRACE_TRY(ring_.op().validate(args.bytes));
    find_magnitudes(problem, args);  // before the run: it may overwrite its inputs
    MILLRACE_TRY(run(reference, args));
    return compare_with_ring(problem, entry, std::max<int64_t>(row, 0));
  }

 private:
  static size_t row_offset(const Port& port, int64_t row) {
    return port.row_elems == 0 ? 0 : static_cast<size_t>(row) * bytes_of(port.type, port.row_elems);
  }

  // Inputs as the case filled them, a row's own slice; outputs of its own, poisoned or a copy.
  Status load(const Case& problem, size_t entry, int64_t row) {
    pointers_.clear();
    buffers_.resize(problem.ports.size());
    for (size_t i = 0; i < problem.ports.size(); ++i) {
      const Port& port = problem.ports[i];
      const size_t bytes = bytes_of(port);
      const std::byte* from =
          port.role == Role::out ? nullptr : ring_.original(entry, i) + row_offset(port, row);
      if (!is_output(port.role)) {
        pointers_.push_back(const_cast<std::byte*>(from));  // only read
        continue;
      }
      MILLRACE_TRY(grow(buffers_[i], bytes));
      if (port.role == Role::out && bytes > 0)
        std::memset(buffers_[i].data(), static_cast<int>(kPoison), bytes);
      else if (bytes > 0)
        std::memcpy(buffers_[i].data(), from, bytes);
      pointers_.push_back(buffers_[i].data());
    }
    return {};
  }

  static Status grow(HostBuffer& buffer, size_t bytes) {
    if (buffer.bytes() >= bytes) return {};
    MILLRACE_ASSIGN(buffer, HostBuffer::make(bytes));
    return {};
  }

  Status run(const Variant& reference, const ArgsBox& args) {
    const size_t bytes =
        reference.workspace_bytes == nullptr ? 0 : reference.workspace_bytes(args.bytes, 1);
    MILLRACE_TRY(grow(workspace_, bytes));
    Exec exec{.workspace = workspace_.data(), .workspace_bytes = workspace_.bytes()};
    return reference.run(args.bytes, exec);
  }

  void find_magnitudes(const Case& problem, const ArgsBox& args) {
    magnitudes_.assign(problem.ports.size(), {});
    for (size_t i = 0; problem.magnitude && i < problem.ports.size(); ++i) {
      if (!is_output(problem.ports[i].role)) continue;
      magnitudes_[i].resize(static_cast<size_t>(problem.ports[i].elems));
      problem.magnitude(args, i, magnitudes_[i]);
    }
  }

  Status compare_with_ring(const Case& problem, size_t entry, int64_t row) {
    for (size_t i = 0; i < problem.ports.size(); ++i) {
      const Port& port = problem.ports[i];
      if (!is_output(port.role)) continue;
      const std::byte* got = ring_.port(entry, i) + row_offset(port, row);
      MILLRACE_TRY(compare(port, got, buffers_[i].data(), problem.tolerance, magnitudes_[i]));
    }
    return {};
  }

  const Ring& ring_;
  std::vector<HostBuffer> buffers_;  // [port]: what is written
  std::vector<void*> pointers_;
  HostBuffer workspace_;
  std::vector<std::vector<double>> magnitudes_;  // [port]
};

// n values spread evenly over [0, total).
size_t spread(size_t i, size_t n, size_t total) {
  return i * total / n;
}

}  // namespace

RingCheck::Hashes RingCheck::hash_entries(size_t begin, size_t end) {
  Hashes hashes(end - begin);
  team_.run([&](Lane& lane) {
    const Share mine = share_of(static_cast<int64_t>(end - begin), lane.index, lane.count);
    for (int64_t i = mine.begin; i < mine.end; ++i)
      hashes[static_cast<size_t>(i)] = ring_.output_hash(begin + static_cast<size_t>(i));
  });
  return hashes;
}

Status RingCheck::same_bits(const Variant& variant, const Hashes& got, size_t begin,
                            const Hashes& want) {
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[begin + i])
      return error(
          Code::wrong_result,
          "{} gave different bits on entry {} of the ring from those verified for its class {}",
          variant.name, begin + i, variant.numerics);
  return {};
}

Status RingCheck::check_repeats(const Variant& variant, const Hashes& hashes) {
  for (size_t e = 0; e < hashes.size(); ++e)
    if (hashes[e] != hashes[ring_.original_of(e)])
      return error(Code::wrong_result,
                   "{} gave different bits for the same inputs (entries {} and {})", variant.name,
                   ring_.original_of(e), e);
  return {};
}

std::vector<RingCheck::Unit> RingCheck::plan(double unit_seconds, bool by_row) {
  size_t n_distinct = 0;
  while (n_distinct < ring_.n_entries() && ring_.original_of(n_distinct) == n_distinct)
    ++n_distinct;
  const auto affordable = static_cast<size_t>(
      std::max(1.0, seconds_ * static_cast<double>(team_.size()) / std::max(unit_seconds, 1e-9)));
  std::vector<Unit> units;
  const auto n_rows = static_cast<size_t>(std::max<int64_t>(1, ring_.problem().n_rows));
  if (!by_row || n_distinct * n_rows <= affordable) {
    const size_t n = std::min(n_distinct, by_row ? n_distinct : affordable);
    for (size_t i = 0; i < n; ++i) units.push_back({spread(i, n, n_distinct), -1});
    checked_.n_whole = n;
    return units;
  }
  const size_t first = std::clamp<size_t>(affordable / 4, 1, n_rows);
  for (size_t i = 0; i < first; ++i)
    units.push_back({0, static_cast<int64_t>(spread(i, first, n_rows))});
  const size_t others = std::min(n_distinct - 1, affordable - affordable / 4);
  Rng rng(n_rows, n_distinct);
  for (size_t i = 0; i < others; ++i)
    units.push_back(
        {1 + spread(i, others, n_distinct - 1), static_cast<int64_t>(rng.below(n_rows))});
  checked_.n_whole = first == n_rows ? 1 : 0;
  checked_.n_sampled = others + 1 - checked_.n_whole;
  return units;
}

Status RingCheck::check_units(const std::vector<Unit>& units) {
  std::vector<Status> failures(static_cast<size_t>(team_.size()));
  team_.run([&](Lane& lane) {
    Status& failure = failures[static_cast<size_t>(lane.index)];
    Judge judge(ring_);
    const Share mine = share_of(static_cast<int64_t>(units.size()), lane.index, lane.count);
    for (int64_t i = mine.begin; i < mine.end && failure.ok(); ++i) {
      const Unit& unit = units[static_cast<size_t>(i)];
      const Status status = judge.check(unit.entry, unit.row);
      if (!status.ok())
        failure = error(status.code(), "entry {} of the ring{}: {}", unit.entry,
                        unit.row < 0 ? "" : fmt::format(", row {}", unit.row), status.message());
    }
  });
  for (Status& failure : failures)
    if (!failure.ok()) return failure;
  return {};
}

Status RingCheck::check_against_reference() {
  checked_ = {.n_entries = ring_.n_entries()};
  const bool by_row = ring_.problem().with_rows && ring_.problem().n_rows > 1;
  const int64_t start_ns = now_ns();
  Judge judge(ring_);
  MILLRACE_TRY(judge.check(0, by_row ? 0 : -1));
  const auto units = plan(static_cast<double>(now_ns() - start_ns) * 1e-9, by_row);
  return check_units(units);
}

Result<int64_t> RingCheck::verify(const Variant& variant,
                                  const std::function<Result<int64_t>()>& pass) {
  ring_.reset(0, ring_.n_entries(), true, team_);
  MILLRACE_ASSIGN(const int64_t elapsed_ns, pass());
  Hashes hashes = hash_entries(0, ring_.n_entries());
  const auto known = verified_.find(variant.numerics);
  if (known != verified_.end()) {
    MILLRACE_TRY(same_bits(variant, hashes, 0, known->second));
    return elapsed_ns;
  }
  MILLRACE_TRY(check_repeats(variant, hashes));
  if (const Status status = check_against_reference(); !status.ok())
    return error(status.code(), "{}: {}", variant.name, status.message());
  verified_.emplace(variant.numerics, std::move(hashes));
  return elapsed_ns;
}

Status RingCheck::check(const Variant& variant, size_t begin, size_t end) {
  return same_bits(variant, hash_entries(begin, end), begin, verified_.at(variant.numerics));
}

}  // namespace millrace::lab
