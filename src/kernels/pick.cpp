#include "kernels/pick.h"

#include <cstdlib>

namespace millrace {
namespace {

bool runs_on(const Variant& variant, DeviceKind device) {
  return is_cuda(variant.isa) == (device == DeviceKind::cuda);
}

bool usable(const Variant& variant, const void* args, const PickFrom& from) {
  return runs_on(variant, from.device) && accepts(variant, args, from.machine);
}

const Variant* first_usable(const Op& op, const void* args, const PickFrom& from) {
  for (const Variant& variant : op.variants())
    if (usable(variant, args, from)) return &variant;
  return nullptr;
}

Status refused(const Op& op, const Variant& variant, const void* args, const PickFrom& from) {
  if (!runs_on(variant, from.device))
    return error(Code::unsupported, "forced variant {}:{} is for another device", op.name,
                 variant.name);
  if (!from.machine.has(variant.isa))
    return error(Code::unsupported, "forced variant {}:{} needs {}, which this machine lacks",
                 op.name, variant.name, name_of(variant.isa));
  return error(Code::unsupported, "forced variant {}:{} does not take {}", op.name, variant.name,
               op.key(args));
}

Status parse_one(std::string_view item, const Op*& op, const Variant*& variant) {
  const size_t colon = item.find(':');
  if (colon == std::string_view::npos)
    return error(Code::invalid_argument, "MILLRACE_FORCE: '{}' is not op:variant", item);
  const auto op_text = item.substr(0, colon), variant_text = item.substr(colon + 1);
  op = op_named(op_text);
  if (op == nullptr)
    return error(Code::invalid_argument, "MILLRACE_FORCE: no op '{}'; the ops are {}", op_text,
                 op_names());
  variant = variant_named(*op, variant_text);
  if (variant == nullptr)
    return error(Code::invalid_argument, "MILLRACE_FORCE: {} has no variant '{}'; it has: {}",
                 op_text, variant_text, variant_names(*op));
  return {};
}

}  // namespace

Result<Force> Force::parse(std::string_view text) {
  Force force;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const Op* op = nullptr;
    const Variant* variant = nullptr;
    MILLRACE_TRY(parse_one(text.substr(0, comma), op, variant));
    if (!force.choices_.emplace(op, variant).second)
      return error(Code::invalid_argument, "MILLRACE_FORCE: {} is forced twice", op->name);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return force;
}

Result<Force> Force::from_environment() {
  const char* text = std::getenv("MILLRACE_FORCE");
  return parse(text == nullptr ? "" : text);
}

const Variant* Force::variant_for(const Op& op) const {
  const auto found = choices_.find(&op);
  return found == choices_.end() ? nullptr : found->second;
}

Result<Picked> pick(const Op& op, const void* args, const PickFrom& from) {
  if (const Variant* forced = from.force.variant_for(op)) {
    if (!usable(*forced, args, from)) return refused(op, *forced, args, from);
    return Picked{&op, forced, "forced by MILLRACE_FORCE"};
  }
  const Variant* first = first_usable(op, args, from);
  if (first == nullptr)
    return error(Code::unsupported, "no variant of {} takes {} on this machine", op.name,
                 op.key(args));
  const std::string_view wanted = from.profile.variant_for(op.name, op.key(args));
  if (wanted.empty()) return Picked{&op, first, "first in the table"};
  const Variant* measured = variant_named(op, wanted);
  if (measured == nullptr || !usable(*measured, args, from))
    return Picked{&op, first,
                  fmt::format("first in the table; the profile's {} is not usable here", wanted)};
  if (measured->numerics != first->numerics)
    return Picked{&op, first,
                  fmt::format("first in the table; the profile's {} is of another class", wanted)};
  return Picked{&op, measured, "fastest in the profile"};
}

std::string describe(const Picked& picked, const void* args) {
  return fmt::format("{} [{}]: {} (class {}, layout {}): {}", picked.op->name, picked.op->key(args),
                     picked.variant->name, picked.variant->numerics, picked.variant->layout,
                     picked.reason);
}

bool is_slow(const Variant& variant) {
  return variant.numerics == kReference || variant.name == "scalar";
}

const Variant* variant_named(const Op& op, std::string_view name) {
  for (const Variant& variant : op.variants())
    if (variant.name == name) return &variant;
  return nullptr;
}

std::string variant_names(const Op& op) {
  std::string names;
  for (const Variant& v : op.variants())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", v.name);
  return names;
}

std::string op_names() {
  std::string names;
  for (const Op* op : ops()) names += fmt::format("{}{}", names.empty() ? "" : ", ", op->name);
  return names;
}

}  // namespace millrace
