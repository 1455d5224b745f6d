#include <fmt/format.h>

#include <cmath>

#include "text/template/format.h"
#include "text/template/interpreter.h"

namespace millrace::jinja {
namespace {

std::string_view name_of(Op op) {
  constexpr std::string_view kNames[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kNames[static_cast<size_t>(op)];
}

int64_t floor_divided(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

double float_modulo(double a, double b) {
  const double m = std::fmod(a, b);
  if (m == 0) return std::copysign(0.0, b);
  return (m < 0) != (b < 0) ? m + b : m;
}

// a ** b for b >= 0; nothing when it does not fit.
std::optional<int64_t> int_power(int64_t a, int64_t b) {
  int64_t out = 1;
  if (a == 0 || a == 1) return b == 0 ? 1 : a;
  if (a == -1) return b % 2 == 0 ? 1 : -1;
  for (; b > 0; --b)
    if (__builtin_mul_overflow(out, a, &out)) return std::nullopt;
  return out;
}

std::optional<int64_t> int_result(Op op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case Op::add:
      return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case Op::subtract:
      return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case Op::multiply:
      return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case Op::floor_divide:
      return b == -1 && a == INT64_MIN ? std::nullopt : std::optional(floor_divided(a, b));
    case Op::modulo:
      return b == -1 ? 0 : a - floor_divided(a, b) * b;
    default:
      return int_power(a, b);
  }
}

double float_result(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return a / b;
    case Op::floor_divide:
      return std::floor(a / b);
    case Op::modulo:
      return float_modulo(a, b);
    default:
      return std::pow(a, b);
  }
}

}  // namespace

Result<Value> Interpreter::arithmetic(Op op, const Value& a, const Value& b) {
  const auto i = a.as_int(), j = b.as_int();
  const double x = *a.as_number(), y = *b.as_number();
  const bool divides = op == Op::divide || op == Op::floor_divide || op == Op::modulo;
  if (divides && y == 0) return fail("division by zero");
  if (op == Op::power && x == 0 && y < 0) return fail("zero to a negative power");
  if (i && j && op != Op::divide && !(op == Op::power && *j < 0)) {
    if (const auto out = int_result(op, *i, *j)) return Value(*out);
    return fail("{} {} {} does not fit 64 bits", *i, name_of(op), *j);
  }
  const double out = float_result(op, x, y);
  if (op == Op::power && (std::isnan(out) || std::isinf(out)) && std::isfinite(x) &&
      std::isfinite(y))
    return fail("{} ** {} is no number to count with", x, y);
  return Value(out);
}

Result<Value> Interpreter::add(const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    const Text &x = *a.text(), &y = *b.text();
    TextBuilder out = builder();
    const bool safe = x.safe || y.safe;
    if (safe) MILLRACE_TRY(spend_points(x.bytes.size() + y.bytes.size()));
    append_escaped(x, safe && !x.safe, out);
    append_escaped(y, safe && !y.safe, out);
    if (!safe) return text(std::move(out));
    return safe_text(*this, std::move(out));
  }
  const List *x = a.list(), *y = b.list();
  if (x != nullptr && y != nullptr && x->kind == y->kind && x->kind <= ListKind::tuple) {
    MILLRACE_TRY(spend((x->items.size() + y->items.size()) / 4));
    std::vector<Value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    return list(x->kind, std::move(items));
  }
  return fail("cannot add a {} and a {}", type_name(a), type_name(b));
}

Result<Value> Interpreter::multiply(const Value& a, const Value& b) {
  const bool second = b.is_text() || b.list() != nullptr;
  const Value &items = second ? b : a, &times = second ? a : b;
  const auto n = times.as_int();
  const List* from = items.list();
  const bool repeats = n && (items.is_text() || (from != nullptr && from->kind <= ListKind::tuple));
  if (!repeats) return fail("cannot multiply a {} and a {}", type_name(a), type_name(b));
  const size_t count = *n > 0 ? static_cast<size_t>(*n) : 0;
  const size_t size = from != nullptr ? from->items.size() * sizeof(Value) : items.view().size();
  if (size == 0 || count == 0)
    return from != nullptr ? list(from->kind, {}) : text(std::string_view());
  if (count > budget_.room() / size) return exhausted();
  const size_t n_spans = from == nullptr ? items.text()->input.size() : from->items.size();
  MILLRACE_TRY(spend(count * (size / 64 + n_spans + 1)));
  if (from == nullptr) {
    TextBuilder out = builder();
    const Text& one = *items.text();
    for (size_t i = 0; i < count; ++i) out.append(one.bytes, one.input, 0, one.bytes.size());
    return text(std::move(out));
  }
  std::vector<Value> all;
  for (size_t i = 0; i < count; ++i) all.insert(all.end(), from->items.begin(), from->items.end());
  return list(from->kind, std::move(all));
}

Result<Value> Interpreter::binary(Op op, const Value& a, const Value& b) {
  if (op == Op::modulo && a.is_text()) return format_percent(*this, *a.text(), b);
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
  if (op == Op::add) return add(a, b);
  if (op == Op::multiply) return multiply(a, b);
  return fail("a {} and a {} do not go with '{}'", type_name(a), type_name(b), name_of(op));
}

Result<bool> Interpreter::compare(Op op, const Value& a, const Value& b) {
  if (op == Op::in || op == Op::not_in) {
    MILLRACE_ASSIGN(const bool in, contains(b, a));
    return in == (op == Op::in);
  }
  if (op == Op::equal || op == Op::not_equal) {
    const bool same = equal(a, b, budget_);
    MILLRACE_TRY(spend(0));
    return same == (op == Op::equal);
  }
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  const bool swap = op == Op::greater || op == Op::less_equal;
  const auto is_less = swap ? less(b, a, budget_) : less(a, b, budget_);
  MILLRACE_TRY(spend(0));
  if (!is_less) return fail("a {} and a {} have no order", type_name(a), type_name(b));
  const bool nan =
      (a.is_float() && std::isnan(*a.as_number())) || (b.is_float() && std::isnan(*b.as_number()));
  if (nan) return false;
  return *is_less == (op == Op::less || op == Op::greater);
}

Result<bool> Interpreter::contains(const Value& container, const Value& value) {
  if (const Text* text = container.text()) {
    if (!value.is_text()) return fail("a string holds no {}", type_name(value));
    const bool found = find_in(text->bytes, value.view(), 0, budget_) != std::string_view::npos;
    MILLRACE_TRY(spend(0));
    return found;
  }
  if (const Dict* dict = container.dict()) {
    if (!hashable(value, budget_)) return fail("a {} cannot be a key", type_name(value));
    const bool found = dict->find(value, budget_) != nullptr;
    MILLRACE_TRY(spend(0));
    return found;
  }
  MILLRACE_ASSIGN(const auto items, iterate(container));
  for (const Value& item : items->items)
    if (equal(item, value, budget_)) return true;
  MILLRACE_TRY(spend(0));
  return false;
}

}  // namespace millrace::jinja
