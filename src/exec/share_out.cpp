// The second pass of lower.h. Rows or columns: a product is shared out by columns, a norm by rows,
// and what is elementwise follows its neighbours. Calls by columns that pass a value on to each
// other must cut it at the same places: they form a space, cut by the coarsest grain among them (a
// head, a block). Products of the same rows whose spaces differ (q, k, v) are shared out together,
// so that the lanes have equal work.
#include <algorithm>
#include <map>
#include <numeric>

#include "exec/lower.h"

namespace millrace {
namespace {

bool is_product(const LoweredCall& call) {
  return call.op->input_type != nullptr;
}

class Sharer {
 public:
  Sharer(const StepSpec& spec, std::vector<LoweredCall>& calls) : spec_(spec), calls_(calls) {}

  void run() {
    for (size_t i = 0; i < calls_.size(); ++i) writer_[key(calls_[i], 0)] = i;
    for (LoweredCall& call : calls_) decide(call);
    for (LoweredCall& call : calls_)
      if (by_columns(call)) join_space(call);
    for (LoweredCall& call : calls_)
      if (by_columns(call)) grain_of_[find(space_of(call))] = 1;
    for (LoweredCall& call : calls_)
      if (by_columns(call)) {
        int64_t& grain = grain_of_[find(space_of(call))];
        grain = std::lcm(grain, own_grain(call));
      }
    group_products();
    for (LoweredCall& call : calls_)
      if (by_columns(call)) call.split = split_of(find(space_of(call)));
  }

 private:
  using Key = std::pair<int, DType>;
  static bool by_columns(const LoweredCall& call) {
    return call.is_shared_out && call.split.by == SplitBy::columns;
  }
  // What a call writes, or for one that writes pages what it reads.
  static Key key(const LoweredCall& call, size_t i) {
    const Operand& o = call.out.empty() ? call.in[i] : call.out[i];
    return {o.value, o.type};
  }
  static Key key(const Operand& o) { return {o.value, o.type}; }
  const Value& value(const Operand& o) const { return spec_.values[static_cast<size_t>(o.value)]; }

  int64_t own_grain(const LoweredCall& call) const {
    return call.op->splits.grain == nullptr ? 1 : call.op->splits.grain(call.attrs.bytes);
  }
  // The width that the call's columns are counted in.
  int64_t width(const LoweredCall& call) const {
    return value(call.out.empty() ? call.in[0] : call.out[0]).width;
  }
  bool can_by_columns(const LoweredCall& call) const {
    return call.op->splits.by_columns &&
           (!call.op->splits.by_rows || own_grain(call) < width(call));
  }

  const LoweredCall* writer_of(const Operand& o) const {
    const auto found = writer_.find(key(o));
    return found == writer_.end() ? nullptr : &calls_[found->second];
  }

  bool is_read_by_rows(const LoweredCall& call) const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const LoweredCall& reader) {
      return !is_product(reader) && reader.op->splits.by_rows && !can_by_columns(reader) &&
             std::find(reader.in.begin(), reader.in.end(), call.out[0]) != reader.in.end();
    });
  }

  void decide(LoweredCall& call) {
    const bool rows = call.op->splits.by_rows, columns = can_by_columns(call);
    call.is_shared_out = rows || columns;
    call.split.by = columns ? SplitBy::columns : SplitBy::rows;
    if (!rows || !columns) return;
    const LoweredCall* writer = writer_of(call.in[0]);
    const bool from_rows =
        writer != nullptr && writer->is_shared_out && writer->split.by == SplitBy::rows;
    if (from_rows || is_read_by_rows(call)) call.split.by = SplitBy::rows;
  }

  // Spaces: sets of operands, each named by one of them.
  Key find(Key k) {
    const auto found = parent_.find(k);
    if (found == parent_.end() || found->second == k) return k;
    return found->second = find(found->second);
  }
  static Key space_of(const LoweredCall& call) { return key(call, 0); }
  void join_space(const LoweredCall& call) {
    parent_.try_emplace(space_of(call), space_of(call));
    if (is_product(call)) return;
    for (const Operand& in : call.in) {
      const LoweredCall* writer = writer_of(in);
      if (writer != nullptr && by_columns(*writer) && value(in).width == width(call))
        parent_[find(key(in))] = find(space_of(call));
    }
  }

  // Neighbouring products of the same rows, of different spaces that divide by one grain.
  void group_products() {
    for (size_t i = 0; i < calls_.size();) {
      size_t end = i + 1;
      while (is_product(calls_[i]) && end < calls_.size() && is_product(calls_[end]) &&
             calls_[end].op == calls_[i].op && calls_[end].in == calls_[i].in)
        ++end;
      if (end - i > 1) make_group(i, end);
      i = end;
    }
  }
  void make_group(size_t begin, size_t end) {
    int64_t grain = 1, total = 0;
    std::vector<Key> spaces;
    for (size_t i = begin; i < end; ++i) {
      const Key space = find(space_of(calls_[i]));
      if (std::find(spaces.begin(), spaces.end(), space) != spaces.end()) return;
      spaces.push_back(space);
      grain = std::lcm(grain, grain_of_[space]);
    }
    for (size_t i = begin; i < end; ++i)
      if (width(calls_[i]) % grain != 0) return;
    for (size_t i = begin; i < end; ++i) {
      group_[spaces[i - begin]] = {SplitBy::columns, grain, total, 0};
      total += width(calls_[i]);
    }
    for (const Key& space : spaces) group_[space].total = total;
  }
  Split split_of(Key space) const {
    if (const auto found = group_.find(space); found != group_.end()) return found->second;
    return {.by = SplitBy::columns, .grain = grain_of_.at(space)};
  }

  const StepSpec& spec_;
  std::vector<LoweredCall>& calls_;
  std::map<Key, size_t> writer_;
  std::map<Key, Key> parent_;
  std::map<Key, int64_t> grain_of_;
  std::map<Key, Split> group_;
};

}  // namespace

void share_out(const StepSpec& spec, std::vector<LoweredCall>& calls) {
  Sharer(spec, calls).run();
}

}  // namespace millrace
