// Text from values: Python's two ways to format (the % operator and str.format), JSON as json.dumps
// writes it, and HTML escapes.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/template/interpreter.h"

namespace millrace::jinja {

// `format % values`.
Result<Value> format_percent(Interpreter& in, const Text& format, const Value& values);
// `format.format(args)`.
Result<Value> format_braces(Interpreter& in, const Text& format, Args& args);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;  // of one level
  std::string item_separator = ", ", key_separator = ": ";
};
Result<Value> to_json(Interpreter& in, const Value& value, const JsonStyle& style);

// & < > ' " as entities, where `escapes`.
void append_escaped(const Text& text, bool escapes, TextBuilder& out);
Result<Value> safe_text(Interpreter& in, TextBuilder built);

}  // namespace millrace::jinja
