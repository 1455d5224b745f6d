// The third pass of lower.h. A buffer is the memory of a value, and of those computed in place from
// it. Barriers come from buffers, not from values; memory is then given twice only to buffers that
// a barrier keeps apart, so reuse never asks for another one.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "exec/lower.h"
#include "tensor/format.h"

namespace millrace {
namespace {

constexpr size_t kAlign = 64;

size_t round_up(size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

// What a call does to a buffer, or to a layer's keys or values.
struct Access {
  int resource;
  bool writes;
  bool is_parted;  // each lane touches the part that `split` gives it, and nothing else
  Split split;
};

class Placer {
 public:
  Placer(const StepSpec& spec, const LowerFor& how, Lowered& out)
      : spec_(spec), how_(how), out_(out) {}

  void run() {
    find_last_reads();
    for (size_t i = 0; i < out_.calls.size(); ++i) give_buffers(i);
    if (how_.from.device == DeviceKind::cpu) put_barriers();
    find_phases();
    lay_out();
  }

 private:
  using Key = std::pair<int, DType>;
  static Key key(const Operand& o) { return {o.value, o.type}; }

  void find_last_reads() {
    for (size_t i = 0; i < out_.calls.size(); ++i)
      for (const Operand& in : out_.calls[i].in) last_read_[key(in)] = i;
    if (spec_.logits >= 0)
      last_read_[{spec_.logits, type_of(Kind::logits, how_.from.device)}] = out_.calls.size();
  }

  size_t row_bytes(const Operand& o) const {
    const Value& value = spec_.values[static_cast<size_t>(o.value)];
    return bytes_of(o.type, value.width) * static_cast<size_t>(value.n_each);
  }

  // Output 0 lies where input 0 does when nobody reads that any more.
  bool is_in_place(const LoweredCall& call, size_t i) const {
    if (!call.op->in_place || call.in[0].value < kStepInputs) return false;
    return last_read_.at(key(call.in[0])) == i && call.in[0].type == call.out[0].type &&
           row_bytes(call.in[0]) == row_bytes(call.out[0]) &&
           spec_.values[static_cast<size_t>(call.in[0].value)].count == call.count;
  }

  void give_buffers(size_t i) {
    LoweredCall& call = out_.calls[i];
    for (Operand& in : call.in)
      if (in.value >= kStepInputs) in.buffer = buffer_of_.at(key(in));
    for (size_t o = 0; o < call.out.size(); ++o) {
      Operand& out = call.out[o];
      if (o == 0 && is_in_place(call, i)) {
        out.buffer = call.in[0].buffer;
      } else {
        out.buffer = static_cast<int>(out_.buffers.size());
        out_.buffers.push_back(
            {row_bytes(out), spec_.values[static_cast<size_t>(out.value)].count});
      }
      buffer_of_[key(out)] = out.buffer;
    }
  }

  // Pages come after the buffers: of each layer the keys and the values are one resource.
  int pages_of(int layer) const { return static_cast<int>(out_.buffers.size()) + layer; }

  bool reads_whole(const LoweredCall& call, const Operand& in) const {
    const Value& value = spec_.values[static_cast<size_t>(in.value)];
    if (call.op->input_type != nullptr || !call.is_shared_out) return true;
    const Operand& out = call.out.empty() ? call.in[0] : call.out[0];
    const Value& result = spec_.values[static_cast<size_t>(out.value)];
    const bool is_cut_alike = call.split.by == SplitBy::columns ? value.width == result.width
                                                                : value.n_each == result.n_each;
    return value.count != result.count || !is_cut_alike;
  }

  std::vector<Access> accesses_of(const LoweredCall& call) const {
    std::vector<Access> out;
    const auto parted = [&](const Operand& o) {
      const Value& value = spec_.values[static_cast<size_t>(o.value)];
      return call.is_shared_out && (value.n_each == 1 || call.split.by == SplitBy::columns);
    };
    for (const Operand& in : call.in)
      if (in.buffer >= 0)
        out.push_back({in.buffer, false, parted(in) && !reads_whole(call, in), call.split});
    for (const Operand& o : call.out) out.push_back({o.buffer, true, parted(o), call.split});
    // A store writes what only attention reads, and two stores of a layer never the same bytes.
    if (call.layer >= 0) out.push_back({pages_of(call.layer), call.out.empty(), false, {}});
    return out;
  }

  static bool conflict(const Access& before, const Access& now) {
    if (before.resource != now.resource || !(before.writes || now.writes)) return false;
    return !(before.is_parted && now.is_parted && before.split == now.split);
  }
  bool stores_beside(const Access& before, const Access& now) const {
    return before.resource >= pages_of(0) && before.writes && now.writes;
  }

  void put_barriers() {
    std::vector<Access> since;  // the last barrier
    for (size_t i = 0; i < out_.calls.size(); ++i) {
      const std::vector<Access> now = accesses_of(out_.calls[i]);
      const bool waits = std::any_of(now.begin(), now.end(), [&](const Access& a) {
        return std::any_of(since.begin(), since.end(),
                           [&](const Access& b) { return conflict(b, a) && !stores_beside(b, a); });
      });
      if (waits) since.clear();
      if (i > 0) out_.calls[i - 1].barrier = waits;
      since.insert(since.end(), now.begin(), now.end());
    }
  }

  void find_phases() {
    int phase = 0;
    std::vector<bool> seen(out_.buffers.size(), false);
    const auto touch = [&](const Operand& o) {
      if (o.buffer < 0) return;
      ArenaBuffer& buffer = out_.buffers[static_cast<size_t>(o.buffer)];
      if (!seen[static_cast<size_t>(o.buffer)]) buffer.first_phase = phase;
      seen[static_cast<size_t>(o.buffer)] = true;
      buffer.last_phase = phase;
    };
    for (const LoweredCall& call : out_.calls) {
      for (const Operand& in : call.in) touch(in);
      for (const Operand& o : call.out) touch(o);
      phase += call.barrier;
    }
    // The logits are read after the step.
    for (const LoweredCall& call : out_.calls)
      for (const Operand& o : call.out)
        if (o.value == spec_.logits)
          out_.buffers[static_cast<size_t>(o.buffer)].last_phase = phase + 1;
  }

  size_t bytes_of_buffer(const ArenaBuffer& buffer) const {
    const int64_t rows = buffer.count == Count::rows ? how_.max_rows : how_.max_outputs;
    return round_up(buffer.row_bytes * static_cast<size_t>(rows));
  }

  // Each at the lowest place that no buffer of an overlapping time has; the largest first.
  void lay_out() {
    std::vector<ArenaBuffer*> order;
    for (ArenaBuffer& buffer : out_.buffers) order.push_back(&buffer);
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
      return bytes_of_buffer(*a) > bytes_of_buffer(*b);
    });
    std::vector<const ArenaBuffer*> placed;
    for (ArenaBuffer* buffer : order) {
      buffer->at = lowest_place(*buffer, placed);
      out_.arena_bytes = std::max(out_.arena_bytes, buffer->at + bytes_of_buffer(*buffer));
      placed.push_back(buffer);
    }
  }
  size_t lowest_place(const ArenaBuffer& buffer, const std::vector<const ArenaBuffer*>& placed) {
    std::vector<const ArenaBuffer*> others;
    for (const ArenaBuffer* other : placed)
      if (other->first_phase <= buffer.last_phase && buffer.first_phase <= other->last_phase)
        others.push_back(other);
    std::sort(others.begin(), others.end(),
              [](const auto* a, const auto* b) { return a->at < b->at; });
    size_t at = 0;
    for (const ArenaBuffer* other : others) {
      if (at + bytes_of_buffer(buffer) <= other->at) break;
      at = std::max(at, other->at + bytes_of_buffer(*other));
    }
    return at;
  }

  const StepSpec& spec_;
  const LowerFor& how_;
  Lowered& out_;
  std::map<Key, size_t> last_read_;
  std::map<Key, int> buffer_of_;
};

}  // namespace

void place(const StepSpec& spec, const LowerFor& how, Lowered& lowered) {
  Placer(spec, how, lowered).run();
}

size_t Lowered::n_barriers() const {
  return static_cast<size_t>(std::count_if(calls.begin(), calls.end(),
                                           [](const LoweredCall& call) { return call.barrier; }));
}

std::string describe(const Lowered& lowered) {
  std::string out;
  for (const LoweredCall& call : lowered.calls) {
    const Split& s = call.split;
    const std::string how = !call.is_shared_out     ? "its own way"
                            : s.by == SplitBy::rows ? "rows"
                            : s.total > 0
                                ? fmt::format("columns by {}, {} of {}", s.grain, s.offset, s.total)
                                : fmt::format("columns by {}", s.grain);
    out +=
        fmt::format("{} [{}] {}{}\n", call.op->name, call.numerics, how, call.barrier ? " |" : "");
  }
  return out;
}

Result<Lowered> lower(const StepSpec& spec, const LowerFor& how) {
  Lowered out;
  MILLRACE_ASSIGN(out.calls, choose(spec, how));
  out.weight_layouts.assign(spec.weights.size(), "");
  for (const LoweredCall& call : out.calls)
    for (const int weight : call.weights) {
      std::string_view& layout = out.weight_layouts[static_cast<size_t>(weight)];
      if (!layout.empty() && layout != call.layout)
        return error(Code::unsupported, "two calls read {} in the layouts {} and {}",
                     spec.weights[static_cast<size_t>(weight)].name, layout, call.layout);
      layout = call.layout;
    }
  if (how.from.device == DeviceKind::cpu) share_out(spec, out.calls);
  place(spec, how, out);
  return out;
}

}  // namespace millrace
