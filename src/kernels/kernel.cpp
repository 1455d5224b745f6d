#include "kernels/kernel.h"

namespace millrace {

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
