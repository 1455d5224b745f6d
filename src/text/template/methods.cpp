// The methods of lists and dicts, and how a method is found and called.
#include <fmt/format.h>

#include <algorithm>

#include "text/template/filters.h"

namespace millrace::jinja {
namespace {

Result<Value> dict_get(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<2>(in, "get()", args, {"key", "default"}, {Value(), None{}}, 1)));
  if (!hashable(p[0], in.budget())) return in.fail("a {} cannot be a key", type_name(p[0]));
  const Value* found = self.dict()->find(p[0], in.budget());
  MILLRACE_TRY(in.spend(0));
  return found != nullptr ? *found : p[1];
}

Result<Value> dict_items(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "items()", args));
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict()->entries) {
    MILLRACE_ASSIGN(Value pair, in.list(ListKind::tuple, {key, value}));
    pairs.push_back(std::move(pair));
  }
  return in.list(ListKind::items, std::move(pairs));
}

Result<Value> dict_keys(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "keys()", args));
  std::vector<Value> keys;
  for (const auto& entry : self.dict()->entries) keys.push_back(entry.first);
  return in.list(ListKind::keys, std::move(keys));
}

Result<Value> dict_values(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "values()", args));
  std::vector<Value> values;
  for (const auto& entry : self.dict()->entries) values.push_back(entry.second);
  return in.list(ListKind::values, std::move(values));
}

Result<Value> copy(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "copy()", args));
  return self;  // neither list nor dict ever changes
}

Result<Value> list_count(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "count()", args, {"value"}, {Value()}, 1)));
  const auto& items = self.list()->items;
  const auto n = std::count_if(items.begin(), items.end(),
                               [&](const Value& item) { return equal(item, p[0], in.budget()); });
  MILLRACE_TRY(in.spend(0));
  return Value(static_cast<int64_t>(n));
}

Result<Value> list_index(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "index()", args, {"value"}, {Value()}, 1)));
  const auto& items = self.list()->items;
  const auto at = std::find_if(items.begin(), items.end(),
                               [&](const Value& item) { return equal(item, p[0], in.budget()); });
  MILLRACE_TRY(in.spend(0));
  if (at == items.end()) return in.fail("index(): the value is not in the list");
  return Value(static_cast<int64_t>(at - items.begin()));
}

constexpr Pays kItself = Pays::by_itself;  // for each item that it looks at
constexpr NamedFilter kDictMethods[] = {{"copy", copy, kItself},
                                        {"get", dict_get, kItself},
                                        {"items", dict_items, kItself},
                                        {"keys", dict_keys, kItself},
                                        {"values", dict_values, kItself}};
constexpr NamedFilter kListMethods[] = {
    {"copy", copy, kItself}, {"count", list_count, kItself}, {"index", list_index, kItself}};

std::span<const NamedFilter> methods_of(const Value& self) {
  if (self.is_text()) return text_methods();
  if (self.dict() != nullptr) return kDictMethods;
  if (const List* list = self.list(); list != nullptr && list->indexable()) {
    if (list->kind != ListKind::list) return std::span(kListMethods).subspan(1);  // no copy()
    return kListMethods;
  }
  return {};
}

const NamedFilter* find_method(const Value& self, std::string_view name) {
  const auto methods = methods_of(self);
  const auto at = std::find_if(methods.begin(), methods.end(),
                               [&](const NamedFilter& method) { return method.name == name; });
  return at == methods.end() ? nullptr : &*at;
}

}  // namespace

Result<std::optional<Value>> method_of(Interpreter& in, const Value& self, std::string_view name) {
  const NamedFilter* found = find_method(self, name);
  if (found == nullptr) return std::optional<Value>();
  auto method = std::make_shared<Builtin>();
  method->name = found->name;
  method->function = found->filter;
  method->pays = found->pays;
  method->self = self;
  MILLRACE_ASSIGN(Value value, in.object(std::move(method), {&self, 1}));
  return std::optional(std::move(value));
}

Result<std::optional<Value>> call_method(Interpreter& in, const Value& self, std::string_view name,
                                         Args& args) {
  const NamedFilter* found = find_method(self, name);
  if (found == nullptr) return std::optional<Value>();
  MILLRACE_TRY(in.spend(1));
  MILLRACE_TRY(pay(in, found->pays, self, args));
  MILLRACE_ASSIGN(Value value, found->filter(in, self, args));
  return std::optional(std::move(value));
}

}  // namespace millrace::jinja
