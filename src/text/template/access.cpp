#include <fmt/format.h>

#include <algorithm>

#include "text/template/interpreter.h"
#include "text/template/objects.h"

namespace millrace::jinja {

size_t cost_of(const TextBuilder& built) {
  const size_t counted = is_ascii(built.bytes()) ? 0 : built.size() / 16;  // its characters
  return 2 + built.size() / 64 + counted + built.input().size() / 4;
}

Result<Value> Interpreter::text(TextBuilder built) {
  if (built.over()) return exhausted();
  MILLRACE_TRY(spend(cost_of(built)));
  return Value(
      std::make_shared<const Text>(built.take_bytes(), built.take_input(), &budget_.memory));
}

Result<Value> Interpreter::text(std::string_view bytes, bool from_input) {
  TextBuilder out = builder();
  out.append(bytes, from_input);
  return text(std::move(out));
}

Result<Value> Interpreter::part(const Text& whole, size_t begin, size_t end) {
  TextBuilder out = builder();
  if (begin < end) out.append(whole.bytes, whole.input, begin, end);
  return text(std::move(out));
}

Result<Value> Interpreter::to_text(const Value& value) {
  if (value.is_text()) return value;
  TextBuilder out = builder();
  jinja::print(value, out, budget_);
  return text(std::move(out));
}

Result<Value> Interpreter::list(ListKind kind, std::vector<Value> items) {
  MILLRACE_TRY(spend(1 + items.size() / 4));
  auto out = std::make_shared<List>(kind, std::move(items), &budget_.memory);
  if (out->depth > kMaxNesting) return fail("lists nest deeper than {} levels", kMaxNesting);
  return Value(std::move(out));
}

Result<Value> Interpreter::dict(std::vector<Dict::Entry> entries) {
  MILLRACE_TRY(spend(1 + 2 * entries.size()));
  auto out = std::make_shared<const Dict>(std::move(entries), budget_);
  MILLRACE_TRY(spend(0));
  if (out->depth > kMaxNesting) return fail("dicts nest deeper than {} levels", kMaxNesting);
  return Value(std::move(out));
}

// Materialised: a range is at most as long as jinja2's sandbox allows.
Result<Value> Interpreter::range(List::Range range) {
  constexpr __int128 kMaxRange = 100'000;
  if (range.step == 0) return fail("the step of range() cannot be zero");
  const __int128 span = static_cast<__int128>(range.stop) - range.start;
  const __int128 step = range.step;
  const __int128 n = step > 0 ? (span + step - 1) / step : (-span - step - 1) / -step;
  if (n > kMaxRange) return fail("range() gives at most {} numbers", static_cast<int>(kMaxRange));
  MILLRACE_TRY(spend(static_cast<size_t>(std::max<__int128>(n, 0)) / 4));
  std::vector<Value> items;
  for (__int128 i = 0; i < n; ++i) items.push_back(static_cast<int64_t>(range.start + i * step));
  MILLRACE_ASSIGN(Value out, list(ListKind::range, std::move(items)));
  out.list()->range = range;
  return out;
}

Result<Value> Interpreter::object(std::shared_ptr<Object> object, std::span<const Value> holds) {
  constexpr size_t kObjectBytes = 256;  // with what it holds, about
  for (const Value& value : holds) object->depth = std::max(object->depth, depth_of(value) + 1);
  if (object->depth > kMaxNesting) return fail("values nest deeper than {} levels", kMaxNesting);
  object->charge.set(&budget_.memory, kObjectBytes + holds.size() * sizeof(Value));
  return Value(std::move(object));
}

Result<std::shared_ptr<List>> Interpreter::iterate(const Value& value) {
  if (const List* list = value.list()) {
    MILLRACE_TRY(list->fault);
    MILLRACE_TRY(spend(list->items.size() / 4));
    if (list->kind != ListKind::iterator) return value.list_ref();
    return std::make_shared<List>(ListKind::list, std::exchange(value.list()->items, {}),
                                  &budget_.memory);
  }
  MILLRACE_TRY(spend(1));
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    for (const auto& entry : dict->entries) items.push_back(entry.first);
  } else if (const Text* text = value.text()) {
    for (size_t at = 0; at < text->bytes.size();) {
      const size_t end = at + point_at(text->bytes, at).bytes;
      MILLRACE_ASSIGN(Value one, part(*text, at, end));
      items.push_back(std::move(one));
      at = end;
    }
  } else if (!value.is_undefined()) {
    return fail("a {} cannot be iterated over", type_name(value));
  }
  MILLRACE_ASSIGN(const Value out, list(ListKind::list, std::move(items)));
  return out.list_ref();
}

Result<int64_t> Interpreter::length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const Text* text = value.text()) return static_cast<int64_t>(text->n_points);
  if (const Dict* dict = value.dict()) return static_cast<int64_t>(dict->entries.size());
  if (const List* list = value.list(); list != nullptr && list->kind != ListKind::iterator)
    return static_cast<int64_t>(list->items.size());
  if (auto* loop = value.object_as<Loop>()) return loop->length(*this);
  return fail("a {} has no length", type_name(value));
}

namespace {

// Methods that Python has and the sandbox of chat templates forbids: they would change the value.
bool would_change(const Value& value, std::string_view name) {
  constexpr std::string_view kList[] = {"append", "clear", "pop",    "reverse",
                                        "insert", "sort",  "extend", "remove"};
  constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const List* list = value.list();
  if (list != nullptr && list->kind == ListKind::list)
    return std::find(std::begin(kList), std::end(kList), name) != std::end(kList);
  return value.dict() != nullptr &&
         std::find(std::begin(kDict), std::end(kDict), name) != std::end(kDict);
}

const Value* grouped_part(const Value& value, std::string_view name) {
  const List* list = value.list();
  if (list == nullptr || !list->grouped) return nullptr;
  if (name == "grouper") return &list->items[0];
  return name == "list" ? &list->items[1] : nullptr;
}

}  // namespace

Result<Value> Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) return undefined_error(object);
  MILLRACE_TRY(spend(1));
  if (would_change(object, name))
    return Value::undefined("'{}' would change its list or dict, which templates may not do");
  if (object.object() != nullptr) {
    MILLRACE_ASSIGN(std::optional<Value> found, object.object()->attribute(*this, name));
    if (found) return std::move(*found);
    return Value::undefined("there is no attribute '{}'");
  }
  if (const Value* part = grouped_part(object, name)) return *part;
  MILLRACE_ASSIGN(std::optional<Value> method, method_of(*this, object, name));
  if (method) return std::move(*method);
  if (const Dict* dict = object.dict()) {
    const Value* value = dict->find(name, budget_);
    MILLRACE_TRY(spend(0));
    if (value != nullptr) return *value;
  }
  return object.dict() != nullptr   ? Value::undefined("a dict has no attribute '{}'")
         : object.is_text()         ? Value::undefined("a string has no attribute '{}'")
         : object.list() != nullptr ? Value::undefined("a list has no attribute '{}'")
                                    : Value::undefined("there is no attribute '{}'");
}

Result<Value> Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) return undefined_error(object);
  MILLRACE_TRY(spend(1));
  if (const Dict* dict = object.dict(); dict != nullptr && hashable(key, budget_)) {
    const Value* value = dict->find(key, budget_);
    MILLRACE_TRY(spend(0));
    if (value != nullptr) return *value;
  }
  const auto index = key.as_int();
  const List* list = object.list();
  const Text* text = object.text();
  if (index && ((list != nullptr && list->indexable()) || text != nullptr)) {
    const auto n = static_cast<int64_t>(list != nullptr ? list->items.size() : text->n_points);
    const int64_t i = *index < 0 ? *index + n : *index;
    if (i < 0 || i >= n) return Value::undefined("an index lies outside of its list or string");
    if (list != nullptr) return list->items[static_cast<size_t>(i)];
    const size_t begin = text->byte_of(static_cast<size_t>(i), budget_);
    MILLRACE_TRY(spend(0));
    return part(*text, begin, begin + point_at(text->bytes, begin).bytes);
  }
  if (key.is_text()) return attribute(object, key.view());
  return Value::undefined("there is no such element");
}

namespace {

struct Slice {
  int64_t begin, step, n;
};

// Python's rule: indices from the end, cut to what is there, n elements in steps.
Result<Slice> slice_of(const Interpreter& in, int64_t size, const Value& begin, const Value& end,
                       const Value& by) {
  for (const Value* v : {&begin, &end, &by})
    if (!v->is_none() && !v->as_int())
      return in.fail("a slice wants integers, not a {}", type_name(*v));
  const int64_t step = by.as_int().value_or(1);
  if (step == 0) return in.fail("the step of a slice cannot be zero");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto place = [&](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    const int64_t i = *v.as_int();
    return i < 0 ? std::max(i < -size ? low : i + size, low) : std::min(i, high);
  };
  const int64_t first = place(begin, step > 0 ? low : high),
                last = place(end, step > 0 ? high : low);
  const __int128 span = step > 0 ? last - first : first - last;
  const __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
  const __int128 n = span <= 0 ? 0 : (span + stride - 1) / stride;
  return Slice{first, step, static_cast<int64_t>(n)};
}

}  // namespace

Result<Value> Interpreter::slice(const Value& object, const Value& begin, const Value& end,
                                 const Value& step) {
  if (object.is_undefined()) return undefined_error(object);
  const List* from = object.list();
  const Text* whole = object.text();
  if (whole == nullptr && (from == nullptr || !from->indexable()))
    return fail("a {} cannot be sliced", type_name(object));
  const auto size = static_cast<int64_t>(from != nullptr ? from->items.size() : whole->n_points);
  MILLRACE_ASSIGN(const Slice s, slice_of(*this, size, begin, end, step));
  if (whole != nullptr && s.step == 1)
    return part(*whole, whole->byte_of(static_cast<size_t>(s.begin), budget_),
                whole->byte_of(static_cast<size_t>(s.begin + s.n), budget_));
  if (from != nullptr && from->kind == ListKind::range) {
    const auto [start, stop, by] = from->range;
    const auto clamped = [](__int128 v) {
      return static_cast<int64_t>(std::clamp<__int128>(v, INT64_MIN, INT64_MAX));
    };
    const __int128 stride = static_cast<__int128>(s.step) * by;
    const __int128 first = start + static_cast<__int128>(s.begin) * by;
    return range({clamped(first), clamped(first + s.n * stride), clamped(stride)});
  }
  std::vector<Value> items;
  std::shared_ptr<List> points;
  if (whole != nullptr) {
    MILLRACE_ASSIGN(points, iterate(object));
    from = points.get();
  }
  MILLRACE_TRY(spend(static_cast<size_t>(s.n) / 4));
  for (int64_t i = 0; i < s.n; ++i)
    items.push_back(from->items[static_cast<size_t>(s.begin + i * s.step)]);
  if (whole == nullptr) return list(from->kind, std::move(items));
  TextBuilder out = builder();
  for (const Value& point : items) jinja::print(point, out, budget_);
  return text(std::move(out));
}

}  // namespace millrace::jinja
