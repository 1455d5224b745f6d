#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "text/template/filters.h"

namespace millrace::jinja {
namespace {

Result<Value> length(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "length", args));
  MILLRACE_ASSIGN(const int64_t n, in.length(value));
  return Value(n);
}

Result<Value> to_list(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "list", args));
  MILLRACE_ASSIGN(const auto items, in.iterate(value));
  return in.list(ListKind::list, items->items);
}

Result<Value> default_(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<2>(in, "default", args, {"default_value", "boolean"},
                                          {Value::literal(""), Value(false)})));
  const bool wanting = value.is_undefined() || (truthy(p[1]) && !truthy(value));
  return wanting ? p[0] : value;
}

Result<Value> first(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "first", args));
  List* list = value.list();
  if (list != nullptr && list->kind == ListKind::iterator && !list->items.empty()) {
    Value item = list->items.front();
    MILLRACE_TRY(in.spend(list->items.size()));
    list->items.erase(list->items.begin());
    return item;
  }
  if (value.is_text() && !value.view().empty()) return in.item(value, Value(int64_t{0}));
  if (list != nullptr && !list->items.empty()) return list->items.front();
  MILLRACE_ASSIGN(const auto items, in.iterate(value));
  if (items->items.empty()) return Value::undefined("there is no first item: the list is empty");
  return items->items.front();
}

Result<Value> last(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "last", args));
  if (value.list() != nullptr && value.list()->kind == ListKind::iterator)
    return in.fail("a generator has no last item; put `list` before `last`");
  if (value.is_text() && !value.view().empty()) return in.item(value, Value(int64_t{-1}));
  if (value.list() != nullptr && !value.list()->items.empty()) return value.list()->items.back();
  MILLRACE_ASSIGN(const auto items, in.iterate(value));
  if (items->items.empty()) return Value::undefined("there is no last item: the list is empty");
  return items->items.back();
}

Result<Value> items(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "items", args));
  if (value.is_undefined()) return in.list(ListKind::iterator, {});
  if (value.dict() == nullptr) return in.fail("items needs a mapping, not a {}", type_name(value));
  std::vector<Value> pairs;
  for (const auto& [key, held] : value.dict()->entries) {
    MILLRACE_ASSIGN(Value pair, in.list(ListKind::tuple, {key, held}));
    pairs.push_back(std::move(pair));
  }
  return in.list(ListKind::iterator, std::move(pairs));
}

Result<Value> join(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<2>(in, "join", args, {"d", "attribute"}, {Value::literal(""), None{}})));
  MILLRACE_ASSIGN(const Value separator, in.to_text(p[0]));
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  std::vector<Value> parts;
  for (const Value& item : given->items) {
    MILLRACE_ASSIGN(Value part, attribute_path(in, item, p[1]));
    parts.push_back(std::move(part));
  }
  return joined(in, *separator.text(), parts);
}

Result<Value> reverse(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "reverse", args));
  if (value.is_text()) return in.slice(value, None{}, None{}, Value(int64_t{-1}));
  const bool generator = value.list() != nullptr && value.list()->kind == ListKind::iterator;
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  std::vector<Value> turned(given->items.rbegin(), given->items.rend());
  return in.list(generator ? ListKind::list : ListKind::iterator, std::move(turned));
}

Result<Value> attr(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "attr", args, {"name"}, {Value()}, 1)));
  MILLRACE_ASSIGN(const Text* name, text_arg(in, "attr", p[0]));
  if (value.is_undefined()) return in.undefined_error(value);
  std::optional<Value> found;
  if (value.object() != nullptr) {
    MILLRACE_ASSIGN(found, value.object()->attribute(in, name->bytes));
  } else {
    MILLRACE_ASSIGN(found, method_of(in, value, name->bytes));
  }
  return found ? std::move(*found) : Value::undefined("no such attribute");
}

// In equal runs, or in runs of `n`, as lists of a list.
Result<Value> batch(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<2>(in, "batch", args, {"linecount", "fill_with"}, {Value(), None{}}, 1)));
  MILLRACE_ASSIGN(const int64_t n, int_arg(in, "batch", p[0]));
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  std::vector<Value> out, run;
  const auto flush = [&]() -> Status {
    MILLRACE_ASSIGN(Value list, in.list(ListKind::list, std::exchange(run, {})));
    out.push_back(std::move(list));
    return {};
  };
  for (const Value& item : given->items) {
    if (static_cast<int64_t>(run.size()) == n) MILLRACE_TRY(flush());
    run.push_back(item);
  }
  const auto left = static_cast<int64_t>(run.size());
  if (left > 0 && !p[1].is_none() && left < n) {
    if (n > static_cast<int64_t>(in.budget().room() / sizeof(Value)))
      return in.fail("batch would fill up {} items", n);
    MILLRACE_TRY(in.spend(static_cast<size_t>(n)));
    run.resize(static_cast<size_t>(n), p[1]);
  }
  if (left > 0) MILLRACE_TRY(flush());
  return in.list(ListKind::iterator, std::move(out));
}

Result<Value> slice(Interpreter& in, const Value& value, Args& args) {
  constexpr int64_t kMaxSlices = 100'000;
  MILLRACE_ASSIGN(const auto p,
                  (bound<2>(in, "slice", args, {"slices", "fill_with"}, {Value(), None{}}, 1)));
  MILLRACE_ASSIGN(const int64_t n, int_arg(in, "slice", p[0]));
  if (n == 0 || n > kMaxSlices) return in.fail("slice makes 1 to {} slices", kMaxSlices);
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  const auto size = static_cast<int64_t>(given->items.size());
  std::vector<Value> out;
  auto at = given->items.begin();
  for (int64_t i = 0; i < n; ++i) {
    const bool extra = i < size % n;
    const auto end = at + size / n + (extra ? 1 : 0);
    std::vector<Value> run(at, end);
    if (!p[1].is_none() && !extra) run.push_back(p[1]);
    MILLRACE_ASSIGN(Value list, in.list(ListKind::list, std::move(run)));
    out.push_back(std::move(list));
    at = end;
  }
  return in.list(ListKind::iterator, std::move(out));
}

Result<Value> sum(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<2>(in, "sum", args, {"attribute", "start"}, {None{}, Value(int64_t{0})})));
  if (p[1].is_text()) return in.fail("sum cannot add strings; use join");
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  Value total = p[1];
  for (const Value& item : given->items) {
    MILLRACE_TRY(in.spend(1));
    MILLRACE_ASSIGN(const Value part, attribute_path(in, item, p[0]));
    MILLRACE_ASSIGN(total, in.binary(Op::add, total, part));
  }
  return total;
}

Result<Value> map(Interpreter& in, const Value& value, Args& args) {
  std::vector<Value> out;
  if (!truthy(value)) return in.list(ListKind::iterator, {});
  const bool by_attribute = args.positional.empty() && !args.named.empty();
  if (!by_attribute && args.positional.empty()) return in.fail("map needs a filter's name");
  std::array<Value, 2> p = {Value(), None{}};
  if (by_attribute)
    MILLRACE_TRY(
        bind_args(in, "map", args, std::array<std::string_view, 2>{"attribute", "default"}, p, 1));
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  for (const Value& item : given->items) {
    Value result;
    if (by_attribute) {
      MILLRACE_ASSIGN(result, attribute_path(in, item, p[0]));
      if (result.is_undefined() && !p[1].is_none()) result = p[1];
    } else {
      MILLRACE_ASSIGN(const Text* name, text_arg(in, "map", args.positional[0]));
      MILLRACE_ASSIGN(
          result, in.filter(name->bytes, item,
                            {{args.positional.begin() + 1, args.positional.end()}, args.named}));
    }
    out.push_back(std::move(result));
  }
  return in.list(ListKind::iterator, std::move(out));
}

struct Wanted {
  bool by_attribute, keep;
};

Result<Value> chosen(Interpreter& in, const Value& value, Args& args, Wanted wanted) {
  std::vector<Value> out;
  if (!truthy(value)) return in.list(ListKind::iterator, {});
  const size_t off = wanted.by_attribute ? 1 : 0;
  if (args.positional.size() < off) return in.fail("selectattr needs an attribute's name");
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  for (const Value& item : given->items) {
    Value subject = item;
    if (wanted.by_attribute) {
      MILLRACE_ASSIGN(subject, attribute_path(in, item, args.positional[0]));
    }
    bool holds = truthy(subject);
    if (args.positional.size() > off) {
      MILLRACE_ASSIGN(const Text* name, text_arg(in, "select", args.positional[off]));
      const auto rest = args.positional.begin() + static_cast<ptrdiff_t>(off) + 1;
      MILLRACE_ASSIGN(holds,
                      in.test(name->bytes, subject, {{rest, args.positional.end()}, args.named}));
    }
    if (holds == wanted.keep) out.push_back(item);
  }
  return in.list(ListKind::iterator, std::move(out));
}

template <bool kByAttribute, bool kKeep>
Result<Value> choose(Interpreter& in, const Value& value, Args& args) {
  return chosen(in, value, args, {kByAttribute, kKeep});
}

struct Keyed {
  Value key, item;
};

Result<Value> without_case(Interpreter& in, Value value) {
  if (!value.is_text()) return value;
  return mapped(in, *value.text(), append_lower);
}

// Stable, with Python's order; an error where two keys have none.
Status sort_by_key(Interpreter& in, std::vector<Keyed>& rows, bool reverse) {
  const Keyed *a = nullptr, *b = nullptr;  // the pair that has no order
  if (reverse) std::reverse(rows.begin(), rows.end());
  std::stable_sort(rows.begin(), rows.end(), [&](const Keyed& x, const Keyed& y) {
    if (a != nullptr || in.budget().spent()) return false;
    in.budget().spend(3);  // to move a row costs more than to compare short keys
    const auto is_less = less(x.key, y.key, in.budget());
    if (!is_less) a = &x, b = &y;
    return is_less.value_or(false);
  });
  if (reverse) std::reverse(rows.begin(), rows.end());
  MILLRACE_TRY(in.spend(0));
  if (a != nullptr && b != nullptr) return in.fail("some of the items to sort cannot be compared");
  return {};
}

Result<Value> items_of(Interpreter& in, std::vector<Keyed> rows) {
  std::vector<Value> out;
  for (Keyed& row : rows) out.push_back(std::move(row.item));
  return in.list(ListKind::list, std::move(out));
}

Result<Value> dictsort(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "dictsort", args, {"case_sensitive", "by", "reverse"},
                                          {Value(false), Value::literal("key"), Value(false)})));
  const std::string_view by = p[1].is_text() ? p[1].view() : "";
  if (by != "key" && by != "value") return in.fail("dictsort sorts by 'key' or by 'value'");
  if (value.is_undefined()) return in.undefined_error(value);
  if (value.dict() == nullptr)
    return in.fail("dictsort needs a mapping, not a {}", type_name(value));
  std::vector<Keyed> rows;
  for (const auto& [key, held] : value.dict()->entries) {
    Value sorted_by = by == "key" ? key : held;
    if (!truthy(p[0])) {
      MILLRACE_ASSIGN(sorted_by, without_case(in, std::move(sorted_by)));
    }
    MILLRACE_ASSIGN(Value pair, in.list(ListKind::tuple, {key, held}));
    rows.push_back({std::move(sorted_by), std::move(pair)});
  }
  MILLRACE_TRY(sort_by_key(in, rows, truthy(p[2])));
  return items_of(in, std::move(rows));
}

// The values that `sort` compares an item by: one for each of its attributes.
Result<Value> sort_key(Interpreter& in, const Value& item, const Value& attributes,
                       bool case_sensitive) {
  std::vector<Value> key;
  std::vector<Value> paths = {attributes};
  if (attributes.is_text()) {
    paths.clear();
    std::string_view rest = attributes.view();
    for (bool more = true; more;) {
      const size_t comma = rest.find(',');
      more = comma != std::string_view::npos;
      MILLRACE_ASSIGN(Value path, in.text(rest.substr(0, comma)));
      paths.push_back(std::move(path));
      rest = more ? rest.substr(comma + 1) : "";
    }
  }
  for (const Value& path : paths) {
    MILLRACE_ASSIGN(Value part, attribute_path(in, item, path));
    if (!case_sensitive) {
      MILLRACE_ASSIGN(part, without_case(in, std::move(part)));
    }
    key.push_back(std::move(part));
  }
  return in.list(ListKind::list, std::move(key));
}

Result<Value> sort(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<3>(in, "sort", args, {"reverse", "case_sensitive", "attribute"},
                            {Value(false), Value(false), None{}})));
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  std::vector<Keyed> rows;
  for (const Value& item : given->items) {
    MILLRACE_ASSIGN(Value key, sort_key(in, item, p[2], truthy(p[1])));
    rows.push_back({std::move(key), item});
  }
  MILLRACE_TRY(sort_by_key(in, rows, truthy(p[0])));
  return items_of(in, std::move(rows));
}

// What `unique`, `min`, `max` and `groupby` go by.
Result<Value> simple_key(Interpreter& in, const Value& item, const Value& attribute,
                         bool case_sensitive) {
  MILLRACE_TRY(in.spend(1));
  MILLRACE_ASSIGN(Value key, attribute_path(in, item, attribute));
  return case_sensitive ? Result<Value>(std::move(key)) : without_case(in, std::move(key));
}

Result<Value> unique(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<2>(in, "unique", args, {"case_sensitive", "attribute"},
                                          {Value(false), None{}})));
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  std::set<std::string_view> texts;
  std::vector<Value> held, others, out;  // held: what the views are of
  for (const Value& item : given->items) {
    MILLRACE_ASSIGN(Value key, simple_key(in, item, p[1], truthy(p[0])));
    if (!hashable(key, in.budget()))
      return in.fail("unique cannot tell values of type {} apart", type_name(key));
    bool is_new = true;
    if (key.is_text()) {
      const auto n_compared = static_cast<size_t>(std::bit_width(texts.size()));
      MILLRACE_TRY(in.spend((1 + key.view().size() / 64) * (1 + n_compared)));
      is_new = texts.emplace(key.view()).second;
      if (is_new) held.push_back(key);
    } else {
      is_new = std::none_of(others.begin(), others.end(),
                            [&](const Value& other) { return equal(other, key, in.budget()); });
      if (is_new) others.push_back(key);
    }
    MILLRACE_TRY(in.spend(0));
    if (is_new) out.push_back(item);
  }
  return in.list(ListKind::iterator, std::move(out));
}

template <bool kMax>
Result<Value> extreme(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<2>(in, kMax ? "max" : "min", args, {"case_sensitive", "attribute"},
                            {Value(false), None{}})));
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  Value best = Value::undefined("there is no least or greatest item: the list is empty"), best_key;
  for (size_t i = 0; i < given->items.size(); ++i) {
    const Value& item = given->items[i];
    MILLRACE_ASSIGN(Value key, simple_key(in, item, p[1], truthy(p[0])));
    bool better = i == 0;
    if (!better) {
      MILLRACE_ASSIGN(better, in.compare(kMax ? Op::greater : Op::less, key, best_key));
    }
    if (!better) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Result<Value> group_of(Interpreter& in, Value grouper, std::vector<Value> members) {
  MILLRACE_ASSIGN(Value list, in.list(ListKind::list, std::move(members)));
  MILLRACE_ASSIGN(Value pair, in.list(ListKind::tuple, {std::move(grouper), std::move(list)}));
  pair.list()->grouped = true;
  return pair;
}

Result<Value> groupby(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<3>(in, "groupby", args, {"attribute", "default", "case_sensitive"},
                            {Value(), None{}, Value(false)}, 1)));
  const auto key_of = [&](const Value& item, bool case_sensitive) -> Result<Value> {
    MILLRACE_ASSIGN(Value key, attribute_path(in, item, p[0]));
    if (key.is_undefined() && !p[1].is_none()) key = p[1];
    return case_sensitive ? Result<Value>(std::move(key)) : without_case(in, std::move(key));
  };
  MILLRACE_ASSIGN(const auto given, in.iterate(value));
  std::vector<Keyed> rows;
  for (const Value& item : given->items) {
    MILLRACE_ASSIGN(Value key, key_of(item, truthy(p[2])));
    rows.push_back({std::move(key), item});
  }
  MILLRACE_TRY(sort_by_key(in, rows, false));
  std::vector<Value> out;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    std::vector<Value> members;
    for (; end < rows.size() && equal(rows[begin].key, rows[end].key, in.budget()); ++end)
      members.push_back(rows[end].item);
    MILLRACE_TRY(in.spend(0));
    if (end == begin) end = begin + 1;  // a NaN, which is not even equal to itself
    MILLRACE_ASSIGN(Value grouper, key_of(rows[begin].item, true));
    MILLRACE_ASSIGN(Value group, group_of(in, std::move(grouper), std::move(members)));
    out.push_back(std::move(group));
    begin = end;
  }
  return in.list(ListKind::list, std::move(out));
}

constexpr Pays kItself = Pays::by_itself;  // for each item, or it looks at none
constexpr NamedFilter kFilters[] = {
    {"attr", attr, kItself},
    {"batch", batch, kItself, true},
    {"count", length, kItself},
    {"d", default_, kItself},
    {"default", default_, kItself},
    {"dictsort", dictsort, kItself},
    {"first", first, kItself},
    {"groupby", groupby, kItself},
    {"items", items, kItself, true},
    {"join", join, kItself},
    {"last", last, kItself},
    {"length", length, kItself},
    {"list", to_list, kItself},
    {"map", map, kItself, true},
    {"max", extreme<true>, kItself},
    {"min", extreme<false>, kItself},
    {"reject", choose<false, false>, kItself, true},
    {"rejectattr", choose<true, false>, kItself, true},
    {"reverse", reverse, kItself},
    {"select", choose<false, true>, kItself, true},
    {"selectattr", choose<true, true>, kItself, true},
    {"slice", slice, kItself, true},
    {"sort", sort, kItself},
    {"sum", sum, kItself},
    {"unique", unique, kItself, true},
};

}  // namespace

std::span<const NamedFilter> list_filters() {
  return kFilters;
}

}  // namespace millrace::jinja
