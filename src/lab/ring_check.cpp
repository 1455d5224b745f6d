#include "lab/ring_check.h"

#include <algorithm>
#include <cstring>

#include "lab/bytes.h"
#include "lab/compare.h"
#include "lab/poison.h"
#include "lab/witness.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

// What the reference may spend on a class: its multiply-adds, or bytes where there are none. It
// takes some 10 ns each, magnitudes included, so this is a second of one core.
constexpr double kCheckWork = 1e8;
constexpr size_t kMinUnits = 4, kMaxUnits = 64;

// How many rows of a case's ring are compared.
size_t units_for(const Case& problem) {
  const Floor& f = problem.floor;
  const double work = std::max(f.i8_macs + f.f32_macs + f.bf16_macs, f.read_bytes + f.write_bytes);
  const double row = work / static_cast<double>(std::max<int64_t>(1, problem.n_rows));
  return std::clamp(static_cast<size_t>(kCheckWork / std::max(row, 1.0)), kMinUnits, kMaxUnits);
}

// Runs the reference on one entry (all rows, or one row through the case's with_rows) and compares
// the ring's outputs with what it gives; then the witness, whose bits they must be. It reads the
// case's own inputs where they lie and owns no more than what the two write, so that one per lane
// is cheap.
class Judge {
 public:
  Judge(const Ring& ring, const Variant* witness) : ring_(ring), witness_(witness) {}

  Status check(size_t entry, int64_t row) {
    const Case problem = row < 0 ? ring_.problem() : ring_.problem().with_rows(1);
    row = std::max<int64_t>(row, 0);
    MILLRACE_TRY(load(problem, entry, row));
    const Variant& reference = ring_.op().variants().back();
    ArgsBox args;
    problem.bind(pointers_, args);
    MILLRACE_TRY(ring_.op().validate(args.bytes));
    find_magnitudes(problem, args);  // before the run: it may overwrite its inputs
    MILLRACE_TRY(run(reference, args));
    MILLRACE_TRY(compare_with_ring(problem, entry, row));
    if (witness_ == nullptr || witness_ == &reference) return {};
    MILLRACE_TRY(load(problem, entry, row));
    MILLRACE_TRY(run(*witness_, args));
    return same_bits_as_ring(problem, entry, row);
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
      if (port.role == Role::out)
        poison(port, {buffers_[i].data(), bytes}, poison_salt(2, n_loads_, 0, i));
      else if (bytes > 0)
        std::memcpy(buffers_[i].data(), from, bytes);
      pointers_.push_back(buffers_[i].data());
    }
    ++n_loads_;
    return {};
  }

  static Status grow(HostBuffer& buffer, size_t bytes) {
    if (buffer.bytes() >= bytes) return {};
    MILLRACE_ASSIGN(buffer, HostBuffer::make(bytes));
    return {};
  }

  Status run(const Variant& variant, const ArgsBox& args) {
    const size_t bytes =
        variant.workspace_bytes == nullptr ? 0 : variant.workspace_bytes(args.bytes, 1);
    MILLRACE_TRY(grow(workspace_, bytes));
    Exec exec{.workspace = workspace_.data(), .workspace_bytes = workspace_.bytes()};
    return variant.run(args.bytes, exec);
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

  Status same_bits_as_ring(const Case& problem, size_t entry, int64_t row) {
    for (size_t i = 0; i < problem.ports.size(); ++i) {
      const Port& port = problem.ports[i];
      if (!is_output(port.role)) continue;
      const std::byte* got = ring_.port(entry, i) + row_offset(port, row);
      const std::byte* end = got + bytes_of(port);
      if (const auto at = std::mismatch(got, end, buffers_[i].data()); at.first != end)
        return error(Code::wrong_result,
                     "port {} differs at byte {} from {}, whose bits the class {} promises",
                     port.name, at.first - got, witness_->name, witness_->numerics);
    }
    return {};
  }

  const Ring& ring_;
  const Variant* witness_;
  uint64_t n_loads_ = 0;
  std::vector<HostBuffer> buffers_;  // [port]: what is written
  std::vector<void*> pointers_;
  HostBuffer workspace_;
  std::vector<std::vector<double>> magnitudes_;  // [port]
};

// n values spread evenly over [0, total).
size_t spread(size_t i, size_t n, size_t total) {
  return i * total / n;
}
// The same with total - 1 among them.
size_t spread_to_end(size_t i, size_t n, size_t total) {
  return n == 1 ? total - 1 : i * (total - 1) / (n - 1);
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

Status RingCheck::same_bits(const Variant& variant, const Hashes& got, size_t begin) {
  const Hashes& want = verified_.at(variant.numerics);
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[ring_.content_of(begin + i)])
      return error(
          Code::wrong_result,
          "{} gave different bits on entry {} of the ring from those verified for its class {}",
          variant.name, begin + i, variant.numerics);
  return {};
}

Status RingCheck::check_repeats(const Variant& variant, const Hashes& hashes) {
  for (size_t c = 0; c < hashes.size(); ++c)
    if (hashes[c] != hashes[ring_.original_of(c)])
      return error(Code::wrong_result,
                   "{} gave different bits for the same inputs (contents {} and {})", variant.name,
                   ring_.original_of(c), c);
  return {};
}

// Contents lie in their own entries when this is asked.
std::vector<RingCheck::Unit> RingCheck::plan() {
  size_t n_distinct = 0;
  while (n_distinct < ring_.n_entries() && ring_.original_of(n_distinct) == n_distinct)
    ++n_distinct;
  const bool by_row = ring_.problem().with_rows && ring_.problem().n_rows > 1;
  const size_t n_rows = by_row ? static_cast<size_t>(ring_.problem().n_rows) : 1;
  const size_t most = units_for(ring_.problem());
  std::vector<Unit> units;
  if (!by_row || n_distinct * n_rows <= most) {
    const size_t n = std::min(n_distinct, most);
    for (size_t i = 0; i < n; ++i) units.push_back({spread(i, n, n_distinct), -1});
    checked_ = {ring_.n_entries(), n, 0, n * n_rows};
    return units;
  }
  // The first entry's rows, the last row among them; then one of each of the others.
  const size_t first = std::min(n_rows, std::max(most / 2, most - (n_distinct - 1)));
  const size_t others = std::min(n_distinct - 1, most - first);
  for (size_t i = 0; i < first; ++i)
    units.push_back({0, static_cast<int64_t>(spread_to_end(i, first, n_rows))});
  Rng rng(n_rows, n_distinct);
  for (size_t i = 0; i < others; ++i)
    units.push_back(
        {1 + spread(i, others, n_distinct - 1), static_cast<int64_t>(rng.below(n_rows))});
  const size_t whole = first == n_rows ? 1 : 0;
  checked_ = {ring_.n_entries(), whole, others + 1 - whole, units.size()};
  return units;
}

Status RingCheck::check_units(const Variant& variant, const std::vector<Unit>& units) {
  const Variant* witness = witness_for(ring_.op(), ring_.problem(), variant);
  std::vector<Status> failures(static_cast<size_t>(team_.size()));
  team_.run([&](Lane& lane) {
    Status& failure = failures[static_cast<size_t>(lane.index)];
    Judge judge(ring_, witness);
    const Share mine = share_of(static_cast<int64_t>(units.size()), lane.index, lane.count);
    for (int64_t i = mine.begin; i < mine.end && failure.ok(); ++i) {
      const Unit& unit = units[static_cast<size_t>(i)];
      const Status status = judge.check(unit.entry, unit.row);
      if (!status.ok())
        failure = error(status.code(), "{}: entry {} of the ring{}: {}", variant.name, unit.entry,
                        unit.row < 0 ? "" : fmt::format(", row {}", unit.row), status.message());
    }
  });
  for (Status& failure : failures)
    if (!failure.ok()) return failure;
  return {};
}

Result<int64_t> RingCheck::verify(const Variant& variant,
                                  const std::function<Result<int64_t>()>& pass) {
  ring_.reset(0, ring_.n_entries(), true, team_);
  MILLRACE_ASSIGN(const int64_t elapsed_ns, pass());
  Hashes hashes = hash_entries(0, ring_.n_entries());
  if (verified_.contains(variant.numerics)) {
    MILLRACE_TRY(same_bits(variant, hashes, 0));
    return elapsed_ns;
  }
  MILLRACE_TRY(check_repeats(variant, hashes));
  MILLRACE_TRY(check_units(variant, plan()));
  verified_.emplace(variant.numerics, std::move(hashes));
  return elapsed_ns;
}

Status RingCheck::check(const Variant& variant, size_t begin, size_t end) {
  return same_bits(variant, hash_entries(begin, end), begin);
}

}  // namespace millrace::lab
