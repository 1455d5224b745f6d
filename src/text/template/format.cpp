#include "text/template/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace millrace::jinja {
namespace {

// How one value is to be laid out: [[fill]align][sign][#][0][width][,][.precision][type].
struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  char group = '\0';
  size_t width = 0;
  int precision = -1;
  char type = '\0';
};

constexpr size_t kMaxWidth = 100'000;
constexpr int kMaxPrecision = 500;

void append_padded(const TextBuilder& body, const Spec& spec, char default_align,
                   TextBuilder& out) {
  const size_t n = count_points(body.bytes());
  const size_t pad = spec.width > n ? spec.width - n : 0;
  const char align = spec.align != '\0' ? spec.align : default_align;
  const size_t left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
  if (align == '=' && !body.bytes().empty() &&
      std::string_view("+- ").find(body.bytes()[0]) != std::string_view::npos) {
    out.append(body.bytes().substr(0, 1), false);
    out.repeat(spec.fill, pad, false);
    out.append(body.bytes().substr(1), false);
    return;
  }
  out.repeat(spec.fill, left, false);
  out.append(body);
  out.repeat(spec.fill, pad - left, false);
}

std::string grouped(std::string digits, char group) {
  if (group == '\0') return digits;
  size_t end = digits.find_first_not_of("0123456789");
  if (end == std::string::npos) end = digits.size();
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, group);
  return digits;
}

std::string with_sign(bool negative, std::string digits, char sign) {
  if (negative) return "-" + digits;
  return sign == '-' ? digits : sign + digits;
}

// An integer in one of Python's types d, x, X, o, b, c.
std::string int_digits(int64_t value, const Spec& spec) {
  const auto magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + fmt::format("{:x}", magnitude);
    case 'X':
      return (spec.alternate ? "0X" : "") + fmt::format("{:X}", magnitude);
    case 'o':
      return (spec.alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    case 'b':
      return (spec.alternate ? "0b" : "") + fmt::format("{:b}", magnitude);
    default:
      return grouped(fmt::format("{}", magnitude), spec.group);
  }
}

std::string float_digits(double value, const Spec& spec) {
  const double magnitude = std::fabs(value);
  if (!std::isfinite(magnitude)) return std::isnan(magnitude) ? "nan" : "inf";
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  switch (spec.type) {
    case 'e':
      return fmt::format("{:.{}e}", magnitude, precision);
    case 'E':
      return fmt::format("{:.{}E}", magnitude, precision);
    case 'G':
      return fmt::format("{:.{}G}", magnitude, std::max(precision, 1));
    case 'g':
      return fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
    case '%':
      return grouped(fmt::format("{:.{}f}", magnitude * 100, precision), spec.group) + "%";
    case '\0':
      return spec.precision < 0 ? grouped(float_repr(magnitude), spec.group)
                                : fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
    default:
      return grouped(fmt::format("{:.{}f}", magnitude, precision), spec.group);
  }
}

void append_number(std::string digits, bool negative, const Spec& spec, TextBuilder& out) {
  TextBuilder body(SIZE_MAX);
  body.append(with_sign(negative, std::move(digits), spec.sign), false);
  append_padded(body, spec, '>', out);
}

void append_string(Interpreter& in, const Value& value, const Spec& spec, TextBuilder& out) {
  TextBuilder whole = in.builder();
  print(value, whole, in.budget());
  TextBuilder body = in.builder();
  size_t end = whole.size();
  if (spec.precision >= 0) {
    end = 0;
    for (int i = 0; i < spec.precision && end < whole.size(); ++i)
      end += point_at(whole.bytes(), end).bytes;
  }
  body.append(whole.bytes(), whole.input(), 0, end);
  append_padded(body, spec, '<', out);
}

// Reads a small non-negative number; -1 when there is none.
int read_int(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] < '0' || text[at] > '9') return -1;
  int value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    value = std::min(value * 10 + (text[at] - '0'), 1'000'000);
  return value;
}

// Whether a layout is within bounds; pays for it.
Status check_size(Interpreter& in, const Spec& spec) {
  if (spec.width > kMaxWidth || spec.precision > kMaxPrecision)
    return in.fail("a format is wider than {} or more precise than {}", kMaxWidth, kMaxPrecision);
  return in.spend(4 + spec.width / 64);
}

// Digits past those that tell doubles apart take long arithmetic: up to 0.3 ms.
Status pay_for_digits(Interpreter& in, double value, const Spec& spec) {
  const bool fixed = std::string_view("fF%").find(spec.type) != std::string_view::npos;
  const bool many = spec.precision > 17 || (fixed && std::fabs(value) > 1e18);
  return in.spend(many ? 3000 : 0);
}

// The % operator, walking its format.
class Percent {
 public:
  Percent(Interpreter& in, const Text& format, const Value& values)
      : in_(in), format_(format), origins_(format.input), values_(values), out_(in.builder()) {
    const List* list = values.list();
    is_tuple_ = list != nullptr && list->kind == ListKind::tuple;
  }
  Result<Value> run();

 private:
  Status directive();
  Result<Value> next_value();
  Status append(const Value& value, const Spec& spec);
  Status named(std::optional<Value>& value);
  Status read_flags(Spec& spec);

  Interpreter& in_;
  const Text& format_;
  Origins origins_;
  const Value& values_;
  TextBuilder out_;
  bool is_tuple_;
  size_t at_ = 0, n_used_ = 0;
};

Result<Value> Percent::next_value() {
  if (is_tuple_) {
    if (n_used_ >= values_.list()->items.size()) return in_.fail("too few values for a % format");
    return values_.list()->items[n_used_++];
  }
  if (n_used_++ > 0) return in_.fail("too few values for a % format");
  return values_;
}

Status Percent::named(std::optional<Value>& value) {
  const size_t close = format_.bytes.find(')', at_);
  if (close == std::string::npos) return in_.fail("a % format has a name that is never closed");
  if (values_.dict() == nullptr) return in_.fail("a % format with names wants a mapping");
  const std::string key = format_.bytes.substr(at_ + 1, close - at_ - 1);
  const Value* found = values_.dict()->find(key, in_.budget());
  if (found == nullptr)
    return in_.fail("a % format names '{}', which is not there", printable(key, kMaxShownBytes));
  value = *found;
  n_used_ = 1;
  at_ = close + 1;
  return {};
}

Status Percent::read_flags(Spec& spec) {
  const std::string_view text = format_.bytes;
  for (; at_ < text.size() && std::string_view("-+ #0").find(text[at_]) != std::string_view::npos;
       ++at_) {
    if (text[at_] == '-') spec.align = '<';
    if (text[at_] == '+') spec.sign = '+';
    if (text[at_] == ' ' && spec.sign == '-') spec.sign = ' ';
    if (text[at_] == '#') spec.alternate = true;
    if (text[at_] == '0' && spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  if (spec.align == '<') spec.fill = " ";
  spec.width = static_cast<size_t>(std::max(read_int(text, at_), 0));
  if (at_ < text.size() && text[at_] == '.') spec.precision = std::max(read_int(text, ++at_), 0);
  return check_size(in_, spec);
}

Status Percent::append(const Value& value, const Spec& spec) {
  Spec plain = spec;
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
    if (plain.align == '=') plain.align = '>', plain.fill = " ";
    if (plain.align == '\0') plain.align = '>';
    Value shown = value;
    if (spec.type != 's') {
      TextBuilder text = in_.builder();
      repr(value, text, in_.budget());
      MILLRACE_ASSIGN(shown, in_.text(std::move(text)));
    }
    append_string(in_, shown, plain, out_);
    return {};
  }
  if (spec.type == 'c') {
    if (!value.is_text() || value.text()->n_points != 1) return in_.fail("%c wants one character");
    append_string(in_, value, plain, out_);
    return {};
  }
  if (value.is_undefined()) return in_.undefined_error(value);
  const auto number = value.as_number();
  if (!number) return in_.fail("%{} wants a number, not a {}", spec.type, type_name(value));
  if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
    MILLRACE_TRY(pay_for_digits(in_, *number, spec));
    append_number(float_digits(*number, spec), std::signbit(*number), spec, out_);
    return {};
  }
  const bool hex = std::string_view("xXo").find(spec.type) != std::string_view::npos;
  if (value.is_float() && (hex || std::fabs(*number) > 9e18))
    return in_.fail("%{} wants an integer of 64 bits", spec.type);
  const int64_t whole = value.is_float() ? static_cast<int64_t>(*number) : *value.as_int();
  append_number(int_digits(whole, spec), whole < 0, spec, out_);
  return {};
}

Status Percent::directive() {
  ++at_;
  std::optional<Value> value;
  if (at_ < format_.bytes.size() && format_.bytes[at_] == '(') MILLRACE_TRY(named(value));
  Spec spec;
  MILLRACE_TRY(read_flags(spec));
  if (at_ >= format_.bytes.size()) return in_.fail("a % format ends inside a directive");
  spec.type = format_.bytes[at_++];
  if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
  if (spec.type == '%') {
    out_.append("%", origins_.at(at_ - 1));
    return {};
  }
  if (std::string_view("sracdxXoeEfFgG").find(spec.type) == std::string_view::npos)
    return in_.fail("a % format has no directive '{}'", spec.type);
  if (!value) {
    MILLRACE_ASSIGN(value, next_value());
  }
  return append(*value, spec);
}

Result<Value> Percent::run() {
  const std::string& text = format_.bytes;
  while (at_ < text.size()) {
    const size_t end = std::min(text.find('%', at_), text.size());
    out_.append(text, format_.input, at_, end);
    at_ = end;
    if (at_ < text.size()) MILLRACE_TRY(directive());
    MILLRACE_TRY(in_.spend(1));
  }
  // Python looks away where the values are a dict or something to index.
  const bool indexed =
      values_.dict() != nullptr || (values_.list() != nullptr && values_.list()->indexable());
  const bool unused = is_tuple_ ? n_used_ < values_.list()->items.size() : n_used_ == 0 && !indexed;
  if (unused) return in_.fail("a % format was given too many values");
  return in_.text(std::move(out_));
}

// str.format(), walking its format.
class Braces {
 public:
  Braces(Interpreter& in, const Text& format, Args& args)
      : in_(in), format_(format), args_(args), out_(in.builder()) {}
  Result<Value> run();

 private:
  Status field(size_t end);
  Result<Value> look_up(std::string_view name);
  Result<Value> first(std::string_view name);
  Result<Spec> read_spec(std::string_view text);
  Status append(const Value& value, const Spec& spec);

  Interpreter& in_;
  const Text& format_;
  Args& args_;
  TextBuilder out_;
  size_t at_ = 0, n_auto_ = 0;
};

Result<Value> Braces::first(std::string_view name) {
  size_t at = 0;
  const int index = name.empty() ? static_cast<int>(n_auto_++) : read_int(name, at);
  if (name.empty() || (index >= 0 && at == name.size())) {
    if (static_cast<size_t>(index) >= args_.positional.size())
      return in_.fail("format() was given no value {}", index);
    return args_.positional[static_cast<size_t>(index)];
  }
  MILLRACE_TRY(in_.spend(args_.named.size()));
  for (const auto& [key, value] : args_.named)
    if (equal(key, name, in_.budget())) return value;
  return in_.fail("format() was given no '{}'", printable(name, kMaxShownBytes));
}

// A field's name: an argument, then .attributes and [items] of it.
Result<Value> Braces::look_up(std::string_view name) {
  size_t at = std::min(name.find_first_of(".["), name.size());
  MILLRACE_ASSIGN(Value value, first(name.substr(0, at)));
  while (at < name.size()) {
    MILLRACE_TRY(in_.spend(1));
    const bool bracket = name[at++] == '[';
    const size_t end =
        std::min(bracket ? name.find(']', at) : name.find_first_of(".[", at), name.size());
    const std::string_view part = name.substr(at, end - at);
    size_t digits = 0;
    const int index = read_int(part, digits);
    MILLRACE_ASSIGN(const Value key, in_.text(part));
    if (bracket && index >= 0 && digits == part.size()) {
      MILLRACE_ASSIGN(value, in_.item(value, Value(static_cast<int64_t>(index))));
    } else if (bracket) {
      MILLRACE_ASSIGN(value, in_.item(value, key));
    } else {
      MILLRACE_ASSIGN(value, in_.attribute(value, part));
    }
    at = bracket ? end + 1 : end;
  }
  return value;
}

Result<Spec> Braces::read_spec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const size_t first = text.empty() ? 0 : point_at(text, 0).bytes;
  if (first > 0 && first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' '))
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') spec.alternate = ++at > 0;
  if (at < text.size() && text[at] == '0' && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
    ++at;
  }
  spec.width = static_cast<size_t>(std::max(read_int(text, at), 0));
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.group = text[at++];
  if (at < text.size() && text[at] == '.') {
    spec.precision = read_int(text, ++at);
    if (spec.precision < 0) return in_.fail("a format names no precision after its point");
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size())
    return in_.fail("format() does not know the layout '{}'", printable(text, kMaxShownBytes));
  MILLRACE_TRY(check_size(in_, spec));
  return spec;
}

Status Braces::append(const Value& value, const Spec& spec) {
  const bool is_int = value.as_int().has_value() && !(value.is_bool() && spec.type == '\0');
  const bool as_float = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (is_int && !as_float) {
    if (std::string_view("dxXobn").find(spec.type == '\0' ? 'd' : spec.type) ==
        std::string_view::npos)
      return in_.fail("format() does not lay out an int as '{}'", spec.type);
    append_number(int_digits(*value.as_int(), spec), *value.as_int() < 0, spec, out_);
    return {};
  }
  if (value.is_float() || (as_float && value.as_number())) {
    if (!as_float && spec.type != '\0')
      return in_.fail("format() does not lay out a float as '{}'", spec.type);
    MILLRACE_TRY(pay_for_digits(in_, *value.as_number(), spec));
    append_number(float_digits(*value.as_number(), spec), std::signbit(*value.as_number()), spec,
                  out_);
    return {};
  }
  if (spec.type != '\0' && spec.type != 's')
    return in_.fail("format() does not lay out a {} as '{}'", type_name(value), spec.type);
  if (spec.align == '=') return in_.fail("'=' is for numbers");
  append_string(in_, value, spec, out_);
  return {};
}

Status Braces::field(size_t end) {
  std::string_view text = std::string_view(format_.bytes).substr(at_ + 1, end - at_ - 1);
  const size_t colon = std::min(text.find(':'), text.size());
  std::string_view name = text.substr(0, colon);
  char conversion = '\0';
  if (const size_t bang = name.find('!'); bang != std::string_view::npos) {
    if (bang + 2 != name.size()) return in_.fail("a conversion in a format is one letter");
    conversion = name[bang + 1];
    name = name.substr(0, bang);
  }
  MILLRACE_ASSIGN(Value value, look_up(name));
  if (conversion == 'r' || conversion == 's') {
    TextBuilder shown = in_.builder();
    conversion == 'r' ? repr(value, shown, in_.budget()) : print(value, shown, in_.budget());
    MILLRACE_ASSIGN(value, in_.text(std::move(shown)));
  } else if (conversion != '\0') {
    return in_.fail("format() does not convert by '{}'", conversion);
  }
  MILLRACE_ASSIGN(const Spec spec, read_spec(colon < text.size() ? text.substr(colon + 1) : ""));
  return append(value, spec);
}

Result<Value> Braces::run() {
  const std::string& text = format_.bytes;
  while (at_ < text.size()) {
    MILLRACE_TRY(in_.spend(1));
    const size_t brace = std::min(text.find_first_of("{}", at_), text.size());
    out_.append(text, format_.input, at_, brace);
    at_ = brace;
    if (at_ >= text.size()) break;
    if (at_ + 1 < text.size() && text[at_ + 1] == text[at_]) {
      out_.append(text, format_.input, at_, at_ + 1);
      at_ += 2;
      continue;
    }
    const size_t end = text.find('}', at_);
    if (text[at_] == '}' || end == std::string::npos)
      return in_.fail("a brace of a format has no partner");
    if (text.substr(at_ + 1, end - at_ - 1).find('{') != std::string::npos)
      return in_.fail("a layout inside a layout is not supported in format()");
    MILLRACE_TRY(field(end));
    at_ = end + 1;
  }
  return in_.text(std::move(out_));
}

}  // namespace

Result<Value> format_percent(Interpreter& in, const Text& format, const Value& values) {
  MILLRACE_TRY(in.spend_points(format.bytes.size()));
  return Percent(in, format, values).run();
}

Result<Value> format_braces(Interpreter& in, const Text& format, Args& args) {
  MILLRACE_TRY(in.spend_points(format.bytes.size()));
  return Braces(in, format, args).run();
}

void append_escaped(const Text& text, bool escapes, TextBuilder& out) {
  if (!escapes) return out.append(text.bytes, text.input, 0, text.bytes.size());
  constexpr std::string_view kChars = "&<>'\"";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  Origins origins(text.input);
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t end = std::min(text.bytes.find_first_of(kChars, at), text.bytes.size());
    out.append(text.bytes, text.input, at, end);
    if (end < text.bytes.size())
      out.append(kEntities[kChars.find(text.bytes[end])], origins.at(end));
    at = end + 1;
  }
}

Result<Value> safe_text(Interpreter& in, TextBuilder built) {
  MILLRACE_TRY(in.spend(cost_of(built)));
  if (built.over()) return in.text(std::move(built));
  auto text = std::make_shared<Text>(built.take_bytes(), built.take_input(), &in.budget().memory);
  text->safe = true;
  return Value(std::shared_ptr<const Text>(std::move(text)));
}

}  // namespace millrace::jinja
