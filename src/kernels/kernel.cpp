#include "kernels/kernel.h"

#include <algorithm>

namespace millrace {

Share Exec::columns(int64_t n) const {
  if (split.by == SplitBy::rows) return {0, n};
  const Share all = share_of(split.total > 0 ? split.total : n, lane, n_lanes, split.grain);
  return {std::clamp<int64_t>(all.begin - split.offset, 0, n),
          std::clamp<int64_t>(all.end - split.offset, 0, n)};
}

Split default_split(const Op& op, const void* args) {
  if (!op.splits.by_columns) return {};
  return {.by = SplitBy::columns, .grain = op.splits.grain ? op.splits.grain(args) : 1};
}

bool accepts(const Variant& variant, const void* args, const Machine& machine) {
  return machine.has(variant.isa) && (variant.takes == nullptr || variant.takes(args));
}

const Op* op_named(std::string_view name) {
  for (const Op* op : ops())
    if (op->name == name) return op;
  return nullptr;
}

const Layout* layout_named(const Op& op, std::string_view name) {
  if (op.layouts == nullptr) return nullptr;
  for (const Layout& layout : op.layouts())
    if (layout.name == name) return &layout;
  return nullptr;
}

}  // namespace millrace
