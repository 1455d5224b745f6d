#include "text/template/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace millrace::jinja {
namespace {

constexpr size_t kIndexedFrom = 16;  // entries; below, looking through them is as fast

uint32_t deepest(std::span<const Value> values) {
  uint32_t depth = 0;
  for (const Value& v : values) depth = std::max(depth, depth_of(v));
  return depth;
}

uint32_t deepest(const std::vector<Dict::Entry>& entries) {
  uint32_t depth = 0;
  for (const auto& [key, value] : entries)
    depth = std::max({depth, depth_of(key), depth_of(value)});
  return depth;
}

// UTF-8 sorts as its code points do.
bool before(std::string_view a, std::string_view b, Budget& budget) {
  budget.spend(1 + std::min(a.size(), b.size()) / 64);
  return a < b;
}

}  // namespace

Result<std::optional<Value>> Object::attribute(Interpreter&, std::string_view) {
  return std::optional<Value>();
}

void Object::repr(TextBuilder& out, Budget&, uint32_t) const {
  out.append(fmt::format("<{}>", type_name()), false);
}

Value Value::literal(std::string_view text) {
  static const auto kEmpty = std::make_shared<const Text>("", std::vector<Span>(), nullptr);
  if (text.empty()) return kEmpty;
  return std::make_shared<const Text>(std::string(text), std::vector<Span>(), nullptr);
}

std::optional<int64_t> Value::as_int() const {
  if (is_int()) return std::get<int64_t>(held_);
  if (is_bool()) return as_bool() ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::as_number() const {
  if (is_float()) return std::get<double>(held_);
  if (const auto i = as_int()) return static_cast<double>(*i);
  return std::nullopt;
}

List::List(ListKind k, std::vector<Value> values, Meter* meter)
    : kind(k),
      items(std::move(values)),
      depth(deepest(items) + 1),
      charge(meter, sizeof(List) + items.capacity() * sizeof(Value)) {}

Dict::Dict(std::vector<Entry> all, Budget& budget)
    : entries(std::move(all)),
      depth(deepest(entries) + 1),
      charge_(&budget.memory, sizeof(Dict) + entries.capacity() * (sizeof(Entry) + 64)) {
  if (entries.size() < kIndexedFrom) return;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].first.is_text()) by_text_.push_back(static_cast<uint32_t>(i));
  std::sort(by_text_.begin(), by_text_.end(), [&](uint32_t i, uint32_t j) {
    return before(entries[i].first.view(), entries[j].first.view(), budget);
  });
}

const Value* Dict::find(std::string_view key, Budget& budget) const {
  if (!by_text_.empty()) {
    const auto at = std::lower_bound(
        by_text_.begin(), by_text_.end(), key,
        [&](uint32_t i, auto wanted) { return before(entries[i].first.view(), wanted, budget); });
    if (at == by_text_.end() || !equal(entries[*at].first.view(), key, budget)) return nullptr;
    return &entries[*at].second;
  }
  for (const auto& [k, v] : entries)
    if (k.is_text() && equal(k.view(), key, budget)) return &v;
  return nullptr;
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  if (key.is_text()) return find(key.view(), budget);
  budget.spend(entries.size());
  for (const auto& [k, v] : entries)
    if (equal(k, key, budget)) return &v;
  return nullptr;
}

uint32_t depth_of(const Value& value) {
  if (const List* list = value.list()) return list->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  if (const Object* object = value.object()) return object->depth;
  return 0;
}

bool truthy(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const auto number = value.as_number()) return *number != 0;
  if (const Text* text = value.text()) return !text->bytes.empty();
  if (const List* list = value.list())
    return list->kind == ListKind::iterator || !list->items.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return true;
}

namespace {

// `left` counts down: a tuple of tuples that share their parts could be walked for ever.
bool hashable(const Value& value, int& left) {
  if (value.dict() != nullptr || --left < 0) return false;
  const List* list = value.list();
  if (list == nullptr || list->kind == ListKind::range || list->kind == ListKind::iterator)
    return true;
  return list->kind == ListKind::tuple &&
         std::all_of(list->items.begin(), list->items.end(),
                     [&](const Value& item) { return hashable(item, left); });
}

}  // namespace

bool hashable(const Value& value, Budget& budget) {
  constexpr int kMost = 10'000;
  int left = kMost;
  const bool holds = hashable(value, left);
  budget.spend(static_cast<size_t>(kMost - left) / 8);
  return holds;
}

std::string_view type_name(const Value& value) {
  constexpr std::string_view kLists[] = {"list",       "tuple", "dict_keys", "dict_values",
                                         "dict_items", "range", "generator"};
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.is_text()) return "str";
  if (const List* list = value.list()) return kLists[static_cast<size_t>(list->kind)];
  if (value.dict() != nullptr) return "dict";
  return value.object()->type_name();
}

namespace {

// Integers are compared as integers: past 2^53 doubles would call neighbours equal.
std::optional<int> compare_numbers(const Value& a, const Value& b) {
  if (const auto i = a.as_int(), j = b.as_int(); i && j) return *i < *j ? -1 : *i > *j;
  const double x = *a.as_number(), y = *b.as_number();
  if (std::isnan(x) || std::isnan(y)) return std::nullopt;
  return x < y ? -1 : x > y;
}

bool equal_dicts(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.first, budget);
    return other != nullptr && equal(entry.second, *other, budget);
  });
}

bool comparable(const List& a, const List& b) {
  return a.kind == b.kind && (a.indexable() || a.kind == ListKind::keys);
}

bool equal_lists(const List& a, const List& b, Budget& budget) {
  if (&a == &b) return true;
  if (!comparable(a, b) || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!equal(a.items[i], b.items[i], budget)) return false;
  return true;
}

}  // namespace

bool equal(std::string_view a, std::string_view b, Budget& budget) {
  if (a.size() != b.size()) return false;
  budget.spend_bytes(a.size());
  return !budget.spent() && a == b;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (budget.spent()) return false;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.is_text() && b.is_text()) return equal(a.view(), b.view(), budget);
  if (a.list() != nullptr && b.list() != nullptr) return equal_lists(*a.list(), *b.list(), budget);
  if (a.dict() != nullptr && b.dict() != nullptr) return equal_dicts(*a.dict(), *b.dict(), budget);
  if (a.object() != nullptr) return a.object() == b.object();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

std::optional<bool> less(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (budget.spent()) return std::nullopt;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == -1;
  if (a.is_text() && b.is_text()) return before(a.view(), b.view(), budget);
  const List *x = a.list(), *y = b.list();
  if (x == nullptr || y == nullptr || x->kind != y->kind || x->kind > ListKind::tuple)
    return std::nullopt;
  for (size_t i = 0; i < std::min(x->items.size(), y->items.size()); ++i)
    if (!equal(x->items[i], y->items[i], budget)) return less(x->items[i], y->items[i], budget);
  return x->items.size() < y->items.size();
}

namespace {

// Python prefers single quotes, and double ones where the text holds a single quote and no double.
void repr_text(const Text& text, TextBuilder& out, Budget& budget) {
  budget.spend(text.bytes.size());
  if (budget.spent()) return;
  Origins origins(text.input);
  const bool has_single = text.bytes.find('\'') != std::string::npos;
  const bool has_double = text.bytes.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  if (text.safe) out.append("Markup(", false);
  out.append({&quote, 1}, text.any_input());
  for (size_t at = 0; at < text.bytes.size() && !out.over();) {
    const Point p = point_at(text.bytes, at);
    std::string escaped;
    if (p.code == static_cast<uint32_t>(quote) || p.code == '\\')
      escaped = {'\\', static_cast<char>(p.code)};
    else if (p.code == '\n')
      escaped = "\\n";
    else if (p.code == '\r')
      escaped = "\\r";
    else if (p.code == '\t')
      escaped = "\\t";
    else if (is_printable(p.code))
      escaped = text.bytes.substr(at, p.bytes);
    else
      escaped = p.code < 0x100     ? fmt::format("\\x{:02x}", p.code)
                : p.code < 0x10000 ? fmt::format("\\u{:04x}", p.code)
                                   : fmt::format("\\U{:08x}", p.code);
    out.append(escaped, origins.at(at));
    at += p.bytes;
  }
  out.append({&quote, 1}, text.any_input());
  if (text.safe) out.append(")", false);
}

void repr_items(const List& list, TextBuilder& out, Budget& budget, uint32_t depth) {
  for (size_t i = 0; i < list.items.size() && !out.over() && !budget.spent(); ++i) {
    if (i > 0) out.append(", ", false);
    repr(list.items[i], out, budget, depth + 1);
  }
}

void repr_list(const List& list, TextBuilder& out, Budget& budget, uint32_t depth) {
  constexpr std::string_view kOpen[] = {
      "[", "(", "dict_keys([", "dict_values([", "dict_items([", "range(", "<generator"};
  constexpr std::string_view kClose[] = {"]", ")", "])", "])", "])", ")", ">"};
  const auto kind = static_cast<size_t>(list.kind);
  out.append(kOpen[kind], false);
  if (list.kind == ListKind::range) {
    const auto [start, stop, step] = list.range;
    out.append(step == 1 ? fmt::format("{}, {}", start, stop)
                         : fmt::format("{}, {}, {}", start, stop, step),
               false);
  } else if (list.kind != ListKind::iterator) {
    repr_items(list, out, budget, depth);
  }
  if (list.kind == ListKind::tuple && list.items.size() == 1) out.append(",", false);
  out.append(kClose[kind], false);
}

void repr_dict(const Dict& dict, TextBuilder& out, Budget& budget, uint32_t depth) {
  out.append("{", false);
  for (size_t i = 0; i < dict.entries.size() && !out.over() && !budget.spent(); ++i) {
    if (i > 0) out.append(", ", false);
    repr(dict.entries[i].first, out, budget, depth + 1);
    out.append(": ", false);
    repr(dict.entries[i].second, out, budget, depth + 1);
  }
  out.append("}", false);
}

}  // namespace

void repr(const Value& value, TextBuilder& out, Budget& budget, uint32_t depth) {
  budget.spend(2);
  if (depth > kMaxNesting) budget.spend(SIZE_MAX);  // namespaces that hold each other
  if (budget.spent()) return;
  if (value.is_undefined()) return out.append("Undefined", false);
  if (value.is_none()) return out.append("None", false);
  if (value.is_bool()) return out.append(value.as_bool() ? "True" : "False", false);
  if (value.is_int()) return out.append(fmt::format("{}", *value.as_int()), false);
  if (value.is_float()) return out.append(float_repr(*value.as_number()), false);
  if (const Text* text = value.text()) return repr_text(*text, out, budget);
  if (const List* list = value.list()) return repr_list(*list, out, budget, depth);
  if (const Dict* dict = value.dict()) return repr_dict(*dict, out, budget, depth);
  value.object()->repr(out, budget, depth);
}

void print(const Value& value, TextBuilder& out, Budget& budget) {
  if (value.is_undefined()) return;
  const Text* text = value.text();
  if (text == nullptr) return repr(value, out, budget);
  budget.spend(text->bytes.size() / 64 + text->input.size() / 4);
  if (!budget.spent()) out.append(text->bytes, text->input, 0, text->bytes.size());
}

void set_entry(std::vector<Dict::Entry>& entries, Value key, Value value, Budget& budget) {
  budget.spend(entries.size() / 4 + 1);
  for (auto& [k, v] : entries)
    if (equal(k, key, budget)) {
      v = std::move(value);
      return;
    }
  entries.emplace_back(std::move(key), std::move(value));
}

}  // namespace millrace::jinja
