// The filters, tests and string methods that templates call by name. Each works as its namesake in
// jinja2 or Python does; what is left out of jinja2's (random, urlize, ...) answers that it is.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "text/template/interpreter.h"
#include "text/template/objects.h"

namespace millrace::jinja {

using Filter = Result<Value> (*)(Interpreter& in, const Value& value, Args& args);

struct NamedFilter {
  std::string_view name;
  Filter filter;
  Pays pays = Pays::for_all_it_is_given;
  bool lazy = false;  // a generator in jinja2: fails when its items are asked for, not before
};
std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> list_filters();
std::span<const NamedFilter> text_methods();
bool has_filter(std::string_view name);
bool has_test(std::string_view name);

// bind_args() into an array, with the defaults it begins with.
template <size_t N>
Result<std::array<Value, N>> bound(const Interpreter& in, std::string_view function, Args& args,
                                   const std::array<std::string_view, N>& names,
                                   std::array<Value, N> defaults, size_t required = 0) {
  MILLRACE_TRY(bind_args(in, function, args, names, defaults, required));
  return defaults;
}
Status no_args(const Interpreter& in, std::string_view function, const Args& args);
Result<int64_t> int_arg(const Interpreter& in, std::string_view function, const Value& value);
Result<const Text*> text_arg(const Interpreter& in, std::string_view function, const Value& value);

// An attribute's path as `map`, `sort` and their like take it: "a.b.0", an integer, or none.
Result<Value> attribute_path(Interpreter& in, Value item, const Value& path);

// The lines of a text as str.splitlines() finds them, without their ends.
struct Line {
  size_t begin, end, next;
};
Result<std::vector<Line>> lines_of(Interpreter& in, std::string_view text);

// The rest of these pay by themselves.
// Maps every code point, keeping what came from input.
using Mapper = void (*)(std::string& out, uint32_t code);
Result<Value> mapped(Interpreter& in, const Text& text, Mapper mapper);
Result<Value> capitalized(Interpreter& in, const Text& text);
Result<Value> replaced(Interpreter& in, const Text& text, const Text& old, const Text& with,
                       int64_t count);
Result<Value> joined(Interpreter& in, const Text& separator, std::span<const Value> items);
// Spaces (or `fill`) on both sides, as str.center() and its like put them.
enum class Side : unsigned char { left, right, both };
Result<Value> padded(Interpreter& in, const Text& text, int64_t width, std::string_view fill,
                     Side side);

}  // namespace millrace::jinja
