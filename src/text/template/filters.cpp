#include "text/template/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace millrace::jinja {
namespace {

// jinja2 has these; no chat template known uses them.
constexpr std::array<std::string_view, 7> kLeftOut = {
    "filesizeformat", "pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"};

const NamedFilter* named(std::span<const NamedFilter> all, std::string_view name) {
  const auto at = std::lower_bound(
      all.begin(), all.end(), name,
      [](const NamedFilter& filter, std::string_view wanted) { return filter.name < wanted; });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

const NamedFilter* find_filter(std::string_view name) {
  const NamedFilter* found = named(text_filters(), name);
  return found != nullptr ? found : named(list_filters(), name);
}

}  // namespace

bool has_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Result<Value> Interpreter::filter(std::string_view name, const Value& value, Args args) {
  Deeper deeper(*this);
  MILLRACE_TRY(deeper.status());
  if (const NamedFilter* found = find_filter(name)) {
    MILLRACE_TRY(pay(*this, found->pays, value, args));
    auto result = found->filter(*this, value, args);
    if (result.ok() || !found->lazy || result.status().code() != Code::invalid_argument)
      return result;
    MILLRACE_ASSIGN(Value broken, list(ListKind::iterator, {}));
    broken.list()->fault = result.status();
    return broken;
  }
  if (std::find(kLeftOut.begin(), kLeftOut.end(), name) != kLeftOut.end())
    return error(Code::unsupported, "template line {}: the filter '{}' is not supported", line_,
                 name);
  return fail("there is no filter '{}'", printable(name, 80));
}

Status no_args(const Interpreter& in, std::string_view function, const Args& args) {
  if (args.positional.empty() && args.named.empty()) return {};
  return in.fail("{} takes no arguments", function);
}

Result<int64_t> int_arg(const Interpreter& in, std::string_view function, const Value& value) {
  if (const auto i = value.as_int()) return *i;
  return in.fail("{} wants an integer, not a {}", function, type_name(value));
}

Result<const Text*> text_arg(const Interpreter& in, std::string_view function, const Value& value) {
  if (const Text* text = value.text()) return text;
  return in.fail("{} wants a string, not a {}", function, type_name(value));
}

Result<Value> attribute_path(Interpreter& in, Value item, const Value& path) {
  if (path.is_none()) return item;
  if (!path.is_text()) return in.item(item, path);
  MILLRACE_TRY(in.spend_points(path.view().size()));
  std::string_view rest = path.view();
  for (bool more = true; more;) {
    const size_t dot = rest.find('.');
    more = dot != std::string_view::npos;
    const std::string_view part = rest.substr(0, dot);
    const bool digits = !part.empty() && part.size() < 18 &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    Value key;
    if (digits) {
      key = Value(static_cast<int64_t>(std::stoll(std::string(part))));
    } else {
      MILLRACE_ASSIGN(key, in.text(part));
    }
    MILLRACE_ASSIGN(item, in.item(item, key));
    rest = more ? rest.substr(dot + 1) : "";
  }
  return item;
}

Result<std::vector<Line>> lines_of(Interpreter& in, std::string_view text) {
  constexpr size_t kMaxLines = 1'000'000;
  MILLRACE_TRY(in.spend_points(text.size()));
  const auto ends_line = [](uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::vector<Line> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Point p = point_at(text, at);
    size_t next = at + p.bytes;
    if (ends_line(p.code)) {
      if (lines.size() == kMaxLines) return in.fail("a string has more than {} lines", kMaxLines);
      if (p.code == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.push_back({begin, at, next});
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.push_back({begin, text.size(), text.size()});
  MILLRACE_TRY(in.spend(lines.size()));
  return lines;
}

Result<Value> mapped(Interpreter& in, const Text& text, Mapper mapper) {
  MILLRACE_TRY(in.spend_points(text.bytes.size()));
  TextBuilder out = in.builder();
  std::string part;
  // One run of bytes with the same origin after the other.
  size_t span = 0;
  for (size_t at = 0; at < text.bytes.size();) {
    const bool has_span = span < text.input.size();
    const bool inside = has_span && text.input[span].begin <= at;
    const size_t end = !has_span ? text.bytes.size()
                       : inside  ? text.input[span].end
                                 : text.input[span].begin;
    part.clear();
    while (at < end) {
      const Point p = point_at(text.bytes, at);
      mapper(part, p.code);
      at += p.bytes;
    }
    out.append(part, inside);
    if (inside) ++span;
  }
  return in.text(std::move(out));
}

Result<Value> capitalized(Interpreter& in, const Text& text) {
  if (text.bytes.empty()) return in.text(std::string_view());
  const size_t first = point_at(text.bytes, 0).bytes;
  MILLRACE_ASSIGN(const Value head, in.part(text, 0, first));
  MILLRACE_ASSIGN(const Value tail, in.part(text, first, text.bytes.size()));
  MILLRACE_ASSIGN(const Value upper, mapped(in, *head.text(), append_upper));
  MILLRACE_ASSIGN(const Value lower, mapped(in, *tail.text(), append_lower));
  return in.binary(Op::add, upper, lower);
}

Result<Value> replaced(Interpreter& in, const Text& text, const Text& old, const Text& with,
                       int64_t count) {
  TextBuilder out = in.builder();
  Budget& budget = in.budget();
  const auto put = [&] {
    budget.spend(1 + with.bytes.size() / 64 + with.input.size() / 4);
    out.append(with.bytes, with.input, 0, with.bytes.size());
  };
  const auto goes_on = [&] { return count != 0 && !out.over() && !budget.spent(); };
  size_t at = 0;
  if (old.bytes.empty()) {  // before every character, and at the end
    for (; goes_on(); count -= count > 0 ? 1 : 0) {
      put();
      if (at >= text.bytes.size()) break;
      const size_t end = at + point_at(text.bytes, at).bytes;
      out.append(text.bytes, text.input, at, end);
      at = end;
    }
  } else {
    for (; goes_on(); count -= count > 0 ? 1 : 0) {
      const size_t found = find_in(text.bytes, old.bytes, at, budget);
      if (found == std::string_view::npos) break;
      out.append(text.bytes, text.input, at, found);
      put();
      at = found + old.bytes.size();
    }
  }
  if (at < text.bytes.size()) out.append(text.bytes, text.input, at, text.bytes.size());
  return in.text(std::move(out));
}

Result<Value> joined(Interpreter& in, const Text& separator, std::span<const Value> items) {
  MILLRACE_TRY(in.spend(items.size()));
  TextBuilder out = in.builder();
  const size_t per_separator = separator.bytes.size() / 64 + separator.input.size() / 4;
  for (size_t i = 0; i < items.size() && !out.over() && !in.budget().spent(); ++i) {
    if (i > 0) {
      in.budget().spend(per_separator);
      out.append(separator.bytes, separator.input, 0, separator.bytes.size());
    }
    print(items[i], out, in.budget());
  }
  return in.text(std::move(out));
}

Result<Value> padded(Interpreter& in, const Text& text, int64_t width, std::string_view fill,
                     Side side) {
  const auto n = static_cast<int64_t>(text.n_points);
  const auto pad = static_cast<size_t>(std::max<int64_t>(width > n ? width - n : 0, 0));
  // str.center() puts the odd one left where the width is odd as well.
  const size_t middle = pad / 2 + (pad & static_cast<size_t>(width) & 1);
  const size_t left = side == Side::left ? pad : side == Side::right ? 0 : middle;
  TextBuilder out = in.builder();
  out.repeat(fill, left, false);
  out.append(text.bytes, text.input, 0, text.bytes.size());
  out.repeat(fill, pad - left, false);
  return in.text(std::move(out));
}

}  // namespace millrace::jinja
