#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "text/template/filters.h"
#include "text/template/format.h"

namespace millrace::jinja {
namespace {

// str() of what a filter is given; most filters on strings begin so.
template <Result<Value> (*F)(Interpreter&, const Text&, Args&)>
Result<Value> on_text(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const Value text, in.to_text(value));
  if (!value.is_text()) MILLRACE_TRY(in.spend_points(text.view().size()));
  return F(in, *text.text(), args);
}

Result<Value> upper(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "upper", args));
  return mapped(in, text, append_upper);
}

Result<Value> lower(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "lower", args));
  return mapped(in, text, append_lower);
}

Result<Value> capitalize(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "capitalize", args));
  return capitalized(in, text);
}

// Words begin behind white space and opening brackets, unlike str.title()'s.
Result<Value> title(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "title", args));
  TextBuilder out = in.builder();
  MILLRACE_TRY(in.spend_points(text.bytes.size()));  // a second time: it maps and builds
  Origins origins(text.input);
  bool begins = true;
  std::string one;
  for (size_t at = 0; at < text.bytes.size();) {
    const Point p = point_at(text.bytes, at);
    one.clear();
    begins ? append_upper(one, p.code) : append_lower(one, p.code);
    out.append(one, origins.at(at));
    begins = is_space(p.code) ||
             (p.code < 0x80 &&
              std::string_view("-({[<").find(static_cast<char>(p.code)) != std::string_view::npos);
    at += p.bytes;
  }
  return in.text(std::move(out));
}

Result<Value> trim(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "trim", args, {"chars"}, {None{}})));
  Span kept;
  if (p[0].is_none()) {
    kept = stripped(text.bytes, {}, in.budget());
  } else {
    MILLRACE_ASSIGN(const Text* chars, text_arg(in, "trim", p[0]));
    const std::string_view view = chars->bytes;
    kept = stripped(text.bytes, {}, in.budget(), &view);
  }
  return in.part(text, kept.begin, kept.end);
}

Result<Value> replace(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "replace", args, {"old", "new", "count"},
                                          {Value(), Value(), None{}}, 2)));
  MILLRACE_ASSIGN(const Value old, in.to_text(p[0]));
  MILLRACE_ASSIGN(const Value with, in.to_text(p[1]));
  int64_t count = -1;
  if (!p[2].is_none()) {
    MILLRACE_ASSIGN(count, int_arg(in, "replace", p[2]));
  }
  return replaced(in, text, *old.text(), *with.text(), count);
}

Result<Value> center(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "center", args, {"width"}, {Value(int64_t{80})})));
  MILLRACE_ASSIGN(const int64_t width, int_arg(in, "center", p[0]));
  return padded(in, text, width, " ", Side::both);
}

Result<Value> escape(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "escape", args));
  MILLRACE_ASSIGN(const Value text, in.to_text(value));
  MILLRACE_TRY(in.spend_points(text.view().size()));
  TextBuilder out = in.builder();
  append_escaped(*text.text(), !text.text()->safe, out);
  return safe_text(in, std::move(out));
}

Result<Value> force_escape(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "forceescape", args));
  TextBuilder out = in.builder();
  append_escaped(text, true, out);
  return safe_text(in, std::move(out));
}

Result<Value> safe(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "safe", args));
  TextBuilder out = in.builder();
  append_escaped(text, false, out);
  return safe_text(in, std::move(out));
}

Result<Value> string(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "string", args));
  return in.to_text(value);
}

Result<Value> format(Interpreter& in, const Text& text, Args& args) {
  if (args.named.empty()) {
    MILLRACE_ASSIGN(const Value values, in.list(ListKind::tuple, std::move(args.positional)));
    return format_percent(in, text, values);
  }
  if (!args.positional.empty())
    return in.fail("format takes values by position or by name, not both");
  std::vector<Dict::Entry> entries;
  for (auto& [name, value] : args.named) {
    MILLRACE_ASSIGN(Value key, in.text(name));
    entries.emplace_back(std::move(key), std::move(value));
  }
  MILLRACE_ASSIGN(const Value values, in.dict(std::move(entries)));
  return format_percent(in, text, values);
}

Result<Value> indent(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "indent", args, {"width", "first", "blank"},
                                          {Value(int64_t{4}), Value(false), Value(false)})));
  if (value.is_undefined()) return in.undefined_error(value);
  MILLRACE_ASSIGN(const Text* text, text_arg(in, "indent", value));
  TextBuilder margin = in.builder();
  if (p[0].is_text()) {
    print(p[0], margin, in.budget());
  } else {
    MILLRACE_ASSIGN(const int64_t width, int_arg(in, "indent", p[0]));
    margin.repeat(" ", width > 0 ? static_cast<size_t>(width) : 0, false);
  }
  TextBuilder out = in.builder();
  if (truthy(p[1])) out.append(margin);
  // A newline is put behind the text before it is cut, so an empty last line counts.
  MILLRACE_ASSIGN(auto lines, lines_of(in, text->bytes));
  if (lines.empty() || lines.back().next != lines.back().end)
    lines.push_back({text->bytes.size(), text->bytes.size(), text->bytes.size()});
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n", false);
    const bool empty = lines[i].begin == lines[i].end;
    if (i > 0 && (!empty || truthy(p[2]))) out.append(margin);
    out.append(text->bytes, text->input, lines[i].begin, lines[i].end);
  }
  if (margin.over()) return in.text(std::move(margin));
  return in.text(std::move(out));
}

Result<Value> truncate(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p,
                  (bound<4>(in, "truncate", args, {"length", "killwords", "end", "leeway"},
                            {Value(int64_t{255}), Value(false), Value::literal("..."), None{}})));
  MILLRACE_ASSIGN(const int64_t length, int_arg(in, "truncate", p[0]));
  MILLRACE_ASSIGN(const Text* end, text_arg(in, "truncate", p[2]));
  int64_t leeway = 5;
  if (!p[3].is_none()) {
    MILLRACE_ASSIGN(leeway, int_arg(in, "truncate", p[3]));
  }
  const auto n_end = static_cast<int64_t>(end->n_points);
  if (length < n_end || leeway < 0) return in.fail("truncate wants a length of at least {}", n_end);
  MILLRACE_ASSIGN(const int64_t n, in.length(value));
  if (n <= length || n - length <= leeway) return value;
  MILLRACE_ASSIGN(const Text* text, text_arg(in, "truncate", value));
  size_t cut = text->byte_of(static_cast<size_t>(length - n_end), in.budget());
  if (!truthy(p[1])) {
    const size_t space = std::string_view(text->bytes).substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  TextBuilder out = in.builder();
  out.append(text->bytes, text->input, 0, cut);
  print(p[2], out, in.budget());
  return in.text(std::move(out));
}

Result<Value> wordcount(Interpreter& in, const Text& text, Args& args) {
  MILLRACE_TRY(no_args(in, "wordcount", args));
  int64_t n = 0;
  bool inside = false;
  for (size_t at = 0; at < text.bytes.size();) {
    const Point p = point_at(text.bytes, at);
    const bool word = is_word(p.code);
    n += word && !inside ? 1 : 0;
    inside = word;
    at += p.bytes;
  }
  return Value(n);
}

Status append_quoted(Interpreter& in, const Text& text, bool query, TextBuilder& out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  MILLRACE_TRY(in.spend_points(text.bytes.size()));
  Origins origins(text.input);
  for (size_t at = 0; at < text.bytes.size(); ++at) {
    const char c = text.bytes[at];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos ||
                       (c == '/' && !query);
    const auto byte = static_cast<uint8_t>(c);
    const char escape[] = {'%', kHex[byte >> 4], kHex[byte & 15]};
    const std::string_view one = plain               ? std::string_view(&c, 1)
                                 : query && c == ' ' ? "+"
                                                     : std::string_view(escape, 3);
    out.append(one, origins.at(at));
  }
  return {};
}

Result<Value> urlencode(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "urlencode", args));
  TextBuilder out = in.builder();
  if (value.list() == nullptr && value.dict() == nullptr) {
    MILLRACE_ASSIGN(const Value text, in.to_text(value));
    MILLRACE_TRY(append_quoted(in, *text.text(), false, out));
    return in.text(std::move(out));
  }
  Value pairs = value;
  if (value.dict() != nullptr) {
    Args none;
    MILLRACE_ASSIGN(std::optional<Value> items, call_method(in, value, "items", none));
    pairs = std::move(*items);
  }
  MILLRACE_ASSIGN(const auto items, in.iterate(pairs));
  for (size_t i = 0; i < items->items.size(); ++i) {
    MILLRACE_ASSIGN(const auto pair, in.iterate(items->items[i]));
    if (pair->items.size() != 2) return in.fail("urlencode wants pairs");
    if (i > 0) out.append("&", false);
    for (size_t side = 0; side < 2; ++side) {
      if (side == 1) out.append("=", false);
      MILLRACE_ASSIGN(const Value text, in.to_text(pair->items[side]));
      MILLRACE_TRY(append_quoted(in, *text.text(), true, out));
    }
  }
  return in.text(std::move(out));
}

Result<Value> tojson(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<4>(in, "tojson", args,
                                          {"ensure_ascii", "indent", "separators", "sort_keys"},
                                          {Value(false), None{}, None{}, Value(false)})));
  constexpr int64_t kMaxIndent = 1000;
  JsonStyle style;
  style.ensure_ascii = truthy(p[0]);
  style.sort_keys = truthy(p[3]);
  style.indented = !p[1].is_none();
  if (style.indented) style.item_separator = ",";
  if (p[1].is_text()) {
    style.indent = p[1].view();
  } else if (style.indented) {
    MILLRACE_ASSIGN(const int64_t width, int_arg(in, "tojson", p[1]));
    if (width > kMaxIndent) return in.fail("tojson indents by at most {}", kMaxIndent);
    style.indent.assign(width > 0 ? static_cast<size_t>(width) : 0, ' ');
  }
  if (!p[2].is_none()) {
    MILLRACE_ASSIGN(const auto pair, in.iterate(p[2]));
    if (pair->items.size() != 2 || !pair->items[0].is_text() || !pair->items[1].is_text())
      return in.fail("tojson wants two strings as separators");
    style.item_separator = pair->items[0].view();
    style.key_separator = pair->items[1].view();
  }
  return to_json(in, value, style);
}

// A number as Python's int() and float() read it: white space around it, underscores inside.
std::optional<std::string> number_text(std::string_view text) {
  Budget unlimited;  // the text was paid for
  const Span kept = stripped(text, {}, unlimited);
  std::string out;
  for (size_t at = kept.begin; at < kept.end; ++at) {
    const auto is_alnum = [&](size_t i) {
      return std::isalnum(static_cast<unsigned char>(text[i]));
    };
    const bool between =
        at > kept.begin && at + 1 < kept.end && is_alnum(at - 1) && is_alnum(at + 1);
    if (static_cast<unsigned char>(text[at]) >= 0x80) return std::nullopt;
    if (text[at] != '_')
      out += text[at];
    else if (!between)
      return std::nullopt;
  }
  if (out.starts_with('+') && out.size() > 1 && out[1] != '-') out.erase(0, 1);
  return out;
}

std::optional<double> parsed_float(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits || digits->empty()) return std::nullopt;
  const char last = digits->back();
  if (digits->find_first_of("xX(") != std::string::npos) return std::nullopt;
  if (last == '.' && digits->size() < 2) return std::nullopt;
  double value = 0;
  const auto [at, fault] = std::from_chars(digits->data(), digits->data() + digits->size(), value);
  if (at != digits->data() + digits->size()) return std::nullopt;
  if (fault == std::errc::result_out_of_range) {
    const bool tiny =
        digits->find("e-") != std::string::npos || digits->find("E-") != std::string::npos;
    return tiny ? 0.0 : digits->starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  }
  return fault == std::errc() ? std::optional(value) : std::nullopt;
}

struct ParsedInt {
  bool is_int = false, fits = false;
  int64_t value = 0;
};

ParsedInt parsed_int(std::string_view text, int base) {
  auto digits = number_text(text);
  if (!digits) return {};
  const bool negative = digits->starts_with('-');
  std::string body = digits->substr(negative ? 1 : 0);
  const char prefix = body.size() > 2 && body[0] == '0' ? static_cast<char>(body[1] | 32) : '\0';
  const int named = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
  if (named != 0 && (base == named || base == 0)) {
    body.erase(0, 2);
    base = named;
  }
  if (base == 0) base = 10;
  if (body.empty() || body[0] == '-') return {};
  if (negative) body.insert(0, 1, '-');
  ParsedInt out;
  const auto [at, fault] = std::from_chars(body.data(), body.data() + body.size(), out.value, base);
  out.is_int = at == body.data() + body.size() && fault != std::errc::invalid_argument;
  out.fits = out.is_int && fault == std::errc();
  return out;
}

Result<Value> float_to_int(Interpreter& in, double value, const Value& otherwise) {
  if (!std::isfinite(value)) return otherwise;
  if (std::fabs(value) >= 9.2e18) return in.fail("{} does not fit 64 bits", value);
  return Value(static_cast<int64_t>(value));
}

Result<Value> to_int(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<2>(in, "int", args, {"default", "base"},
                                          {Value(int64_t{0}), Value(int64_t{10})})));
  if (value.is_undefined()) return in.undefined_error(value);
  if (const auto i = value.as_int()) return Value(*i);
  if (value.is_float()) {
    if (std::isinf(*value.as_number())) return in.fail("infinity is no integer");
    return float_to_int(in, *value.as_number(), p[0]);
  }
  if (!value.is_text()) return p[0];
  MILLRACE_ASSIGN(const int64_t base, int_arg(in, "int", p[1]));
  if (base != 0 && (base < 2 || base > 36)) return p[0];
  const ParsedInt parsed = parsed_int(value.view(), static_cast<int>(base));
  if (parsed.fits) return Value(parsed.value);
  if (parsed.is_int) return in.fail("the integer {:.40} does not fit 64 bits", value.view());
  const auto number = parsed_float(value.view());
  return number ? float_to_int(in, *number, p[0]) : Result<Value>(p[0]);
}

Result<Value> to_float(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "float", args, {"default"}, {Value(0.0)})));
  if (value.is_undefined()) return in.undefined_error(value);
  if (const auto number = value.as_number()) return Value(*number);
  if (!value.is_text()) return p[0];
  const auto number = parsed_float(value.view());
  return number ? Value(*number) : p[0];
}

Result<Value> absolute(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_TRY(no_args(in, "abs", args));
  if (value.is_undefined()) return in.undefined_error(value);
  if (const auto i = value.as_int()) {
    if (*i == INT64_MIN) return in.fail("abs({}) does not fit 64 bits", *i);
    return Value(*i < 0 ? -*i : *i);
  }
  if (!value.is_float()) return in.fail("abs wants a number, not a {}", type_name(value));
  return Value(std::fabs(*value.as_number()));
}

// The nearest number with so many decimals, exact ties to even, as Python rounds.
double rounded(double value, int64_t precision) {
  constexpr double kWholeFrom = 4503599627370496.0;  // 2^52: larger ones have no decimals
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision >= 0 && std::fabs(value) >= kWholeFrom) return value;
  if (precision >= 0) {
    const std::string text = fmt::format("{:.{}f}", value, static_cast<int>(precision));
    double out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
  if (precision < -300) return std::copysign(0.0, value);
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / unit) * unit;
}

Result<Value> round_int(Interpreter& in, int64_t value, int64_t precision) {
  if (precision >= 0) return Value(value);
  if (precision < -18) return Value(int64_t{0});
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  const int64_t rest = ((value % unit) + unit) % unit;
  const __int128 down = static_cast<__int128>(value) - rest;
  const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
  const __int128 out = up ? down + unit : down;
  if (out > INT64_MAX || out < INT64_MIN) return in.fail("round() does not fit 64 bits");
  return Value(static_cast<int64_t>(out));
}

Result<Value> round(Interpreter& in, const Value& value, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<2>(in, "round", args, {"precision", "method"},
                                          {Value(int64_t{0}), Value::literal("common")})));
  const std::string_view method = p[1].is_text() ? p[1].view() : "";
  if (method != "common" && method != "ceil" && method != "floor")
    return in.fail("round knows the methods common, ceil and floor");
  if (value.is_undefined()) return in.undefined_error(value);
  const auto number = value.as_number();
  if (!number) return in.fail("round wants a number, not a {}", type_name(value));
  MILLRACE_ASSIGN(const int64_t precision, int_arg(in, "round", p[0]));
  if (precision > 17) MILLRACE_TRY(in.spend(3000));  // as in format.cpp
  if (method == "common") {
    if (const auto i = value.as_int()) return round_int(in, *i, precision);
    return Value(rounded(*number, precision));
  }
  if (precision > 300 || precision < -300) return in.fail("round wants fewer decimals");
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *number * unit;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

constexpr Pays kItself = Pays::by_itself;
constexpr NamedFilter kFilters[] = {
    {"abs", absolute},
    {"capitalize", on_text<capitalize>, kItself},
    {"center", on_text<center>, kItself},
    {"e", escape, kItself},
    {"escape", escape, kItself},
    {"float", to_float},
    {"forceescape", on_text<force_escape>},
    {"format", on_text<format>, kItself},
    {"indent", indent, kItself},
    {"int", to_int},
    {"lower", on_text<lower>, kItself},
    {"replace", on_text<replace>, kItself},
    {"round", round},
    {"safe", on_text<safe>, kItself},
    {"string", string, kItself},
    {"title", on_text<title>},
    {"tojson", tojson, kItself},
    {"trim", on_text<trim>, kItself},
    {"truncate", truncate},
    {"upper", on_text<upper>, kItself},
    {"urlencode", urlencode, kItself},
    {"wordcount", on_text<wordcount>},
};

}  // namespace

std::span<const NamedFilter> text_filters() {
  return kFilters;
}

}  // namespace millrace::jinja
