// The tests that stand behind `is`. Those that look into a value pay for it (budget.h).
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/template/filters.h"

namespace millrace::jinja {
namespace {

using Test = Result<bool> (*)(Interpreter& in, const Value& value, std::span<const Value> args);
using Given = std::span<const Value>;

bool is_mapping(const Value& v) {
  return v.dict() != nullptr;
}

bool is_integer(const Value& v) {
  return v.is_int();
}

bool is_true(const Value& v) {
  return v.is_bool() && v.as_bool();
}

bool is_false(const Value& v) {
  return v.is_bool() && !v.as_bool();
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}

// What has a length and elements; an undefined value has both, in its way.
bool is_sequence(const Value& v) {
  const List* list = v.list();
  return v.is_text() || v.dict() != nullptr || v.is_undefined() ||
         (list != nullptr && list->indexable());
}

bool is_iterable(const Value& v) {
  return v.is_text() || v.dict() != nullptr || v.is_undefined() || v.list() != nullptr ||
         v.object_as<Loop>() != nullptr;
}

bool is_callable(const Value& v) {
  return v.is_undefined() || (v.object() != nullptr && v.object()->callable());
}

bool is_escaped(const Value& v) {
  return v.is_text() && v.text()->safe;
}

bool is_filter(const Value& v) {
  return v.is_text() && has_filter(v.view());
}

bool is_test(const Value& v) {
  return v.is_text() && has_test(v.view());
}

template <bool (Value::*kTest)() const>
Result<bool> kind(Interpreter&, const Value& value, Given) {
  return (value.*kTest)();
}

template <bool (*kTest)(const Value&)>
Result<bool> plain(Interpreter&, const Value& value, Given) {
  return kTest(value);
}

template <Op kOp>
Result<bool> compared(Interpreter& in, const Value& value, Given args) {
  return in.compare(kOp, value, args[0]);
}

Result<bool> leaves(Interpreter& in, const Value& value, const Value& by, int64_t rest) {
  MILLRACE_ASSIGN(const Value left, in.binary(Op::modulo, value, by));
  return equal(left, Value(rest), in.budget());
}

Result<bool> odd(Interpreter& in, const Value& value, Given) {
  return leaves(in, value, Value(int64_t{2}), 1);
}

Result<bool> even(Interpreter& in, const Value& value, Given) {
  return leaves(in, value, Value(int64_t{2}), 0);
}

Result<bool> divisible_by(Interpreter& in, const Value& value, Given args) {
  return leaves(in, value, args[0], 0);
}

Result<bool> same_as(Interpreter& in, const Value& value, Given args) {
  const Value& other = args[0];
  if (value.is_number() || other.is_number())
    return type_name(value) == type_name(other) && equal(value, other, in.budget());
  if (value.is_none() || value.is_undefined())
    return value.is_none() == other.is_none() && value.is_undefined() == other.is_undefined();
  return value.text() == other.text() && value.list() == other.list() &&
         value.dict() == other.dict() && value.object() == other.object();
}

// Whether there are cased letters, and all of them are of that case.
template <bool kUpper>
Result<bool> cased(Interpreter& in, const Value& value, Given) {
  MILLRACE_ASSIGN(const Value text, in.to_text(value));
  MILLRACE_TRY(in.spend_points(text.view().size()));
  bool any = false;
  for (size_t at = 0; at < text.view().size();) {
    const Point p = point_at(text.view(), at);
    if (kUpper ? is_lower(p.code) : is_upper(p.code)) return false;
    any |= kUpper ? is_upper(p.code) : is_lower(p.code);
    at += p.bytes;
  }
  return any;
}

struct NamedTest {
  std::string_view name;
  Test test;
  size_t n_args = 0;
};

constexpr NamedTest kTests[] = {
    {"!=", compared<Op::not_equal>, 1},
    {"<", compared<Op::less>, 1},
    {"<=", compared<Op::less_equal>, 1},
    {"==", compared<Op::equal>, 1},
    {">", compared<Op::greater>, 1},
    {">=", compared<Op::greater_equal>, 1},
    {"boolean", kind<&Value::is_bool>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisible_by, 1},
    {"eq", compared<Op::equal>, 1},
    {"equalto", compared<Op::equal>, 1},
    {"escaped", plain<is_escaped>},
    {"even", even},
    {"false", plain<is_false>},
    {"filter", plain<is_filter>},
    {"float", kind<&Value::is_float>},
    {"ge", compared<Op::greater_equal>, 1},
    {"greaterthan", compared<Op::greater>, 1},
    {"gt", compared<Op::greater>, 1},
    {"in", compared<Op::in>, 1},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compared<Op::less_equal>, 1},
    {"lessthan", compared<Op::less>, 1},
    {"lower", cased<false>},
    {"lt", compared<Op::less>, 1},
    {"mapping", plain<is_mapping>},
    {"ne", compared<Op::not_equal>, 1},
    {"none", kind<&Value::is_none>},
    {"number", kind<&Value::is_number>},
    {"odd", odd},
    {"sameas", same_as, 1},
    {"sequence", plain<is_sequence>},
    {"string", kind<&Value::is_text>},
    {"test", plain<is_test>},
    {"true", plain<is_true>},
    {"undefined", kind<&Value::is_undefined>},
    {"upper", cased<true>},
};

const NamedTest* find_test(std::string_view name) {
  const auto at = std::find_if(std::begin(kTests), std::end(kTests),
                               [&](const NamedTest& test) { return test.name == name; });
  return at == std::end(kTests) ? nullptr : at;
}

}  // namespace

bool has_test(std::string_view name) {
  return find_test(name) != nullptr;
}

Result<bool> Interpreter::test(std::string_view name, const Value& value, Args args) {
  MILLRACE_TRY(spend(1));
  const NamedTest* found = find_test(name);
  if (found == nullptr) return fail("there is no test '{}'", printable(name, 80));
  if (!args.named.empty() || args.positional.size() != found->n_args)
    return fail("the test '{}' takes {} arguments, by position", name, found->n_args);
  return found->test(*this, value, args.positional);
}

}  // namespace millrace::jinja
