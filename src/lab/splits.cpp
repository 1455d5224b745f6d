#include "lab/splits.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lab/bytes.h"
#include "lab/poison.h"
#include "memory/host.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

constexpr std::array kLaneCounts = {1, 2, 3, 5};
constexpr int kNobody = -1;

std::string describe(const Split& split, int lane, int n_lanes) {
  const std::string part = fmt::format("lane {} of {}", lane, n_lanes);
  if (split.by == SplitBy::rows) return part + " by rows";
  return fmt::format("{} by columns, grain {}, offset {} of {}", part, split.grain, split.offset,
                     split.total);
}

// An output port: what it holds before a lane runs, what the whole call leaves, and for each byte
// the unit (a row, or a run of columns) whose lane writes it.
struct Output {
  const Port* port = nullptr;
  std::byte* data = nullptr;
  std::span<const std::byte> expected = {};
  std::vector<std::byte> blank = {};
  std::vector<int> unit = {};

  size_t bytes() const { return blank.size(); }
  bool is_blank() const { return std::equal(blank.begin(), blank.end(), data); }
};

// Bytes that a result has by chance seldom, and never under two salts.
void put_pattern(std::vector<std::byte>& bytes, uint32_t salt) {
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((static_cast<uint32_t>(i) * 2654435761u >> 24) + salt);
}

class Lanes {
 public:
  Lanes(const Trial& trial, const ArgsBox& args) : trial_(trial), args_(args) {}

  void add_outputs(Instance& whole, const std::vector<std::vector<std::byte>>& expected) {
    whole.reset_outputs();
    const auto& ports = whole.problem().ports;
    for (size_t i = 0; i < ports.size(); ++i) {
      if (!is_output(ports[i].role)) continue;
      std::byte* data = whole.port(i);
      Output& out = outputs_.emplace_back(Output{&ports[i], data, expected[outputs_.size()]});
      out.blank.assign(data, data + bytes_of(ports[i]));
    }
  }

  Status by_rows(int64_t n_rows);
  Status by_columns(int64_t grain);

 private:
  void set_blank(uint32_t salt) {
    for (Output& out : outputs_)
      if (out.port->role == Role::out) put_pattern(out.blank, salt);
  }
  // One lane alone, on outputs and a workspace that no other has touched.
  Status run(const Split& split, int lane, int n_lanes) {
    for (const Output& out : outputs_) std::ranges::copy(out.blank, out.data);
    MILLRACE_TRY(poison_workspace(n_lanes));
    Exec exec{.lane = lane,
              .n_lanes = n_lanes,
              .workspace = workspace_.data(),
              .workspace_bytes = workspace_.bytes(),
              .split = split};
    return trial_.variant.run(args_.bytes, exec);
  }
  Status poison_workspace(int n_lanes) {
    if (trial_.variant.workspace_bytes == nullptr) return {};
    const size_t bytes = trial_.variant.workspace_bytes(args_.bytes, n_lanes);
    if (bytes > workspace_.bytes()) {
      MILLRACE_ASSIGN(workspace_, HostBuffer::make(bytes));
    }
    millrace::lab::poison_workspace({workspace_.data(), bytes}, poison_salt(1, n_runs_++));
    return {};
  }
  bool is_blank() const {
    return std::all_of(outputs_.begin(), outputs_.end(),
                       [](const Output& out) { return out.is_blank(); });
  }

  Result<int64_t> count_units(int64_t grain);
  Status map_units(int64_t grain, int64_t n_units);
  Status claim(int unit);
  Status check_order(const Output& out, int64_t grain) const;
  Status check_rest() const;
  Status check(const Split& split, int64_t n_units);
  Status check_lane(const Split& split, Share units, int lane, int n_lanes) const;

  const Trial& trial_;
  const ArgsBox& args_;
  std::vector<Output> outputs_;
  HostBuffer workspace_;
  uint64_t n_runs_ = 0;
};

// Of two lanes that cut at k units the second writes something while k is below their number.
Result<int64_t> Lanes::count_units(int64_t grain) {
  int64_t most = 1;
  for (const Output& out : outputs_) most = std::max(most, out.port->elems);
  int64_t low = 0, high = (most + grain - 1) / grain;  // the second writes at low - 1, not at high
  while (low < high) {
    const int64_t k = low + (high - low) / 2;
    if (k == 0) {
      MILLRACE_TRY(run({.by = SplitBy::columns, .grain = grain}, 0, 1));
    } else {
      MILLRACE_TRY(run({.by = SplitBy::columns, .grain = grain, .total = 2 * k * grain}, 1, 2));
    }
    if (is_blank())
      high = k;
    else
      low = k + 1;
  }
  return low;
}

Status Lanes::claim(int unit) {
  for (Output& out : outputs_)
    for (size_t i = 0; i < out.bytes(); ++i) {
      if (out.data[i] == out.blank[i]) continue;
      if (out.unit[i] != kNobody && out.unit[i] != unit)
        return error(Code::wrong_result, "byte {} of {} is written with columns {} and {}", i,
                     out.port->name, out.unit[i], unit);
      out.unit[i] = unit;
    }
  return {};
}

// Elements of a row that are columns of one vector after the other, as readers count them.
Status Lanes::check_order(const Output& out, int64_t grain) const {
  const Port& port = *out.port;
  if (port.row_elems == 0 || port.role != Role::out || is_block_format(port.type)) return {};
  const size_t size = bytes_of(port.type, 1);
  int64_t column = 0;
  for (int64_t e = 0; e < port.elems; ++e) {
    if (e % port.row_elems == 0) column = 0;
    const int unit = out.unit[static_cast<size_t>(e) * size];
    if (unit == kNobody) continue;
    if (unit == 0 && column / grain != 0) column = 0;
    if (unit != column++ / grain)
      return error(Code::wrong_result, "element {} of {} is written with columns from {} on", e,
                   port.name, unit * grain);
  }
  return {};
}

// What no lane writes, the whole call leaves alone too.
Status Lanes::check_rest() const {
  for (const Output& out : outputs_)
    for (size_t i = 0; i < out.bytes(); ++i) {
      if (out.unit[i] != kNobody) continue;
      if (out.expected[i] != (out.port->role == Role::out ? kPoison : out.blank[i]))
        return error(Code::wrong_result, "byte {} of {} is written by no lane", i, out.port->name);
    }
  return {};
}

Status Lanes::map_units(int64_t grain, int64_t n_units) {
  for (Output& out : outputs_) out.unit.assign(out.bytes(), kNobody);
  const Split finest{.by = SplitBy::columns, .grain = grain, .total = n_units * grain};
  for (const uint32_t salt : {0u, 1u}) {
    set_blank(salt);
    for (int unit = 0; unit < n_units; ++unit) {
      MILLRACE_TRY(run(finest, unit, static_cast<int>(n_units)));
      MILLRACE_TRY(claim(unit));
    }
  }
  for (const Output& out : outputs_) MILLRACE_TRY(check_order(out, grain));
  return check_rest();
}

Status Lanes::check_lane(const Split& split, Share units, int lane, int n_lanes) const {
  for (const Output& out : outputs_)
    for (size_t i = 0; i < out.bytes(); ++i) {
      const bool is_mine = out.unit[i] >= units.begin && out.unit[i] < units.end;
      if (out.data[i] != (is_mine ? out.expected[i] : out.blank[i]))
        return error(Code::wrong_result, "{}: byte {} of {} {}", describe(split, lane, n_lanes), i,
                     out.port->name, is_mine ? "differs" : "is another lane's");
    }
  return {};
}

Status Lanes::check(const Split& split, int64_t n_units) {
  const int64_t grain = trial_.op.splits.grain ? trial_.op.splits.grain(args_.bytes) : 1;
  for (const int n_lanes : kLaneCounts)
    for (int lane = 0; lane < n_lanes; ++lane) {
      const Exec exec{.lane = lane, .n_lanes = n_lanes, .split = split};
      Share units = exec.rows(n_units);
      if (split.by == SplitBy::columns) {
        const Share columns = exec.columns(n_units * grain);
        units = {columns.begin / grain, columns.end / grain};
      }
      MILLRACE_TRY(run(split, lane, n_lanes));
      MILLRACE_TRY(check_lane(split, units, lane, n_lanes));
    }
  return {};
}

Status Lanes::by_rows(int64_t n_rows) {
  for (Output& out : outputs_) {
    if (out.port->row_elems == 0)
      return error(Code::wrong_result, "is shared out by rows, and {} has none", out.port->name);
    const size_t row_bytes = bytes_of(out.port->type, out.port->row_elems);
    out.unit.resize(out.bytes());
    for (size_t i = 0; i < out.bytes(); ++i) out.unit[i] = static_cast<int>(i / row_bytes);
  }
  return check({.by = SplitBy::rows}, n_rows);
}

Status Lanes::by_columns(int64_t grain) {
  MILLRACE_ASSIGN(const int64_t n_units, count_units(grain));
  if (n_units == 0) return {};
  MILLRACE_TRY(map_units(grain, n_units));
  const auto split = [&](int64_t coarser, int64_t before, int64_t after) {
    const int64_t g = coarser * grain, width = n_units * grain;
    if (before == 0 && after == 0) return Split{.by = SplitBy::columns, .grain = g};
    return Split{SplitBy::columns, g, before * g, before * g + width + after * g};
  };
  for (const Split& s : {split(1, 0, 0), split(2, 0, 0), split(3, 0, 0), split(1, 0, 3),
                         split(1, 2, 0), split(1, 5, 2), split(2, 1, 4)})
    MILLRACE_TRY(check(s, n_units));
  return {};
}

}  // namespace

Status check_splits(const Trial& trial, Instance& whole,
                    const std::vector<std::vector<std::byte>>& expected) {
  const Splits& splits = trial.op.splits;
  if (trial.runner.device() != "cpu") return {};
  MILLRACE_ASSIGN(const ArgsBox args, whole.args_for(trial.variant));
  Lanes lanes(trial, args);
  lanes.add_outputs(whole, expected);
  if (splits.by_rows) MILLRACE_TRY(lanes.by_rows(trial.problem.n_rows));
  if (splits.by_columns)
    MILLRACE_TRY(lanes.by_columns(splits.grain == nullptr ? 1 : splits.grain(args.bytes)));
  whole.reset_outputs();
  return {};
}

}  // namespace millrace::lab
