#include "text/template/objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace millrace::jinja {

Result<Value> Namespace::call(Interpreter& in, Args) {
  return in.fail("a namespace cannot be called");
}

Result<std::optional<Value>> Namespace::attribute(Interpreter& in, std::string_view name) {
  MILLRACE_TRY(in.spend(attributes.size() / 8));
  for (const auto& [key, value] : attributes)
    if (equal(key, name, in.budget())) return std::optional(value);
  return std::optional<Value>();
}

void Namespace::repr(TextBuilder& out, Budget& budget, uint32_t depth) const {
  out.append("<Namespace {", false);
  for (size_t i = 0; i < attributes.size() && !budget.spent(); ++i) {
    if (i > 0) out.append(", ", false);
    budget.spend_bytes(attributes[i].first.size());
    out.append(fmt::format("'{}': ", attributes[i].first), false);
    jinja::repr(attributes[i].second, out, budget, depth + 1);
  }
  out.append("}>", false);
}

void Namespace::set(std::string_view name, Value value, Budget& budget) {
  budget.spend(attributes.size() / 8);
  for (auto& [key, held] : attributes)
    if (equal(key, name, budget)) {
      held = std::move(value);
      return;
    }
  attributes.emplace_back(name, std::move(value));
}

Result<Value> Macro::call(Interpreter& in, Args args) {
  return in.call_macro(*this, std::move(args));
}

Result<std::optional<Value>> Macro::attribute(Interpreter& in, std::string_view attribute) {
  if (attribute != "name") return std::optional<Value>();
  MILLRACE_ASSIGN(Value value, in.text(name == nullptr ? "" : std::string_view(*name)));
  return std::optional(std::move(value));
}

std::string Macro::shown_name() const {
  return name == nullptr ? "" : printable(*name, kMaxShownBytes);
}

void Macro::repr(TextBuilder& out, Budget& budget, uint32_t) const {
  if (name == nullptr) return out.append("<Macro anonymous>", false);
  budget.spend_bytes(name->size());
  out.append(fmt::format("<Macro '{}'>", *name), false);
}

Status pay(Interpreter& in, Pays pays, const Value& value, const Args& args) {
  if (pays == Pays::by_itself) return {};
  const auto bytes_of = [](const Value& v) { return v.is_text() ? v.view().size() : 0; };
  size_t bytes = bytes_of(value);
  for (const Value& v : args.positional) bytes += bytes_of(v);
  for (const auto& [name, v] : args.named) bytes += bytes_of(v);
  return in.spend_points(bytes);
}

Result<Value> Builtin::call(Interpreter& in, Args args) {
  MILLRACE_TRY(pay(in, pays, self, args));
  return function(in, self, args);
}

Result<std::optional<Value>> Loop::next(Interpreter& in) {
  MILLRACE_ASSIGN(const bool more, peek(in));
  if (!more) return std::optional<Value>();
  previous = std::move(current);
  current = std::move(pending[pending_at++]);
  if (pending_at == pending.size()) {
    pending.clear();
    pending_at = 0;
  }
  ++index0;
  return std::optional(current);
}

Result<bool> Loop::peek(Interpreter& in) {
  if (pending_at < pending.size()) return true;
  while (at < items->items.size()) {
    const Value& item = items->items[at++];
    MILLRACE_ASSIGN(const bool wanted, in.wanted(*stmt, scope, item));
    if (!wanted) continue;
    pending.push_back(item);
    return true;
  }
  return false;
}

Result<int64_t> Loop::length(Interpreter& in) {
  while (at < items->items.size()) {
    const Value& item = items->items[at++];
    MILLRACE_ASSIGN(const bool wanted, in.wanted(*stmt, scope, item));
    if (wanted) pending.push_back(item);
  }
  return index0 + 1 + static_cast<int64_t>(pending.size() - pending_at);
}

void Loop::finish() {
  items = std::make_shared<List>(ListKind::list, std::vector<Value>(), nullptr);
  scope.reset();
  changed.reset();
  pending.clear();
  at = pending_at = 0;
  previous = current = Value();
}

Result<Value> Loop::call(Interpreter& in, Args args) {
  if (args.positional.size() != 1 || !args.named.empty())
    return in.fail("loop() takes the items to go through");
  return in.call_loop(*this, args.positional[0]);
}

namespace {

Result<Value> loop_cycle(Interpreter& in, const Value& self, Args& args) {
  if (args.positional.empty()) return in.fail("loop.cycle() wants items to choose from");
  const auto n = static_cast<int64_t>(args.positional.size());
  return args.positional[static_cast<size_t>(self.object_as<Loop>()->index0 % n)];
}

Result<Value> loop_changed(Interpreter& in, const Value& self, Args& args) {
  auto* loop = self.object_as<Loop>();
  MILLRACE_ASSIGN(const Value given, in.list(ListKind::tuple, std::move(args.positional)));
  const bool same = loop->changed != nullptr && equal(Value(loop->changed), given, in.budget());
  loop->changed = given.list_ref();
  return Value(!same);
}

}  // namespace

Result<std::optional<Value>> Loop::attribute(Interpreter& in, std::string_view name) {
  const auto found = [](Value value) { return std::optional(std::move(value)); };
  if (name == "index") return found(index0 + 1);
  if (name == "index0") return found(index0);
  if (name == "first") return found(index0 == 0);
  if (name == "depth") return found(depth0 + 1);
  if (name == "depth0") return found(depth0);
  if (name == "previtem")
    return found(index0 > 0 ? previous : Value::undefined("there is no previous item"));
  if (name == "last" || name == "nextitem") {
    MILLRACE_ASSIGN(const bool more, peek(in));
    if (name == "last") return found(!more);
    return found(more ? pending[pending_at] : Value::undefined("there is no next item"));
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    MILLRACE_ASSIGN(const int64_t n, length(in));
    return found(name == "length" ? n : n - index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name != "cycle" && name != "changed") return std::optional<Value>();
  auto method = std::make_shared<Builtin>();
  method->name = name == "cycle" ? "cycle" : "changed";
  method->function = name == "cycle" ? loop_cycle : loop_changed;
  method->self = Value(std::shared_ptr<Object>(shared_from_this()));
  MILLRACE_ASSIGN(Value value, in.object(std::move(method), {}));
  return found(std::move(value));
}

Status bind_args(const Interpreter& in, std::string_view function, Args& args,
                 std::span<const std::string_view> names, std::span<Value> slots, size_t required) {
  if (args.positional.size() > names.size())
    return in.fail("{} takes at most {} arguments, got {}", function, names.size(),
                   args.positional.size());
  const size_t n = args.positional.size();
  std::vector<bool> given(names.size());
  for (size_t i = 0; i < n; ++i) {
    slots[i] = std::move(args.positional[i]);
    given[i] = true;
  }
  for (auto& [name, value] : args.named) {
    const auto at =
        static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size())
      return in.fail("{} takes no argument '{}'", function, printable(name, kMaxShownBytes));
    if (given[at]) return in.fail("{} got two values for '{}'", function, names[at]);
    slots[at] = std::move(value);
    given[at] = true;
  }
  for (size_t i = 0; i < required; ++i)
    if (!given[i]) return in.fail("{} wants the argument '{}'", function, names[i]);
  return {};
}

}  // namespace millrace::jinja
