// Python's methods of strings.
#include <fmt/format.h>

#include <algorithm>

#include "text/template/filters.h"
#include "text/template/format.h"

namespace millrace::jinja {
namespace {

// What a search may look at: code points begin to end, as Python's optional arguments say.
struct Window {
  size_t begin, end;  // bytes
  bool empty;         // begin lies behind the end: nothing is found there, not even ""
};

Result<Window> window_of(const Interpreter& in, const Text& text, const Value& begin,
                         const Value& end) {
  const auto n = static_cast<int64_t>(text.n_points);
  const auto place = [&](const Value& value, int64_t otherwise) -> Result<int64_t> {
    if (value.is_none()) return otherwise;
    MILLRACE_ASSIGN(const int64_t i, int_arg(in, "a string's method", value));
    return i < 0 ? std::max<int64_t>(i + n, 0) : i;
  };
  MILLRACE_ASSIGN(const int64_t first, place(begin, 0));
  MILLRACE_ASSIGN(const int64_t last, place(end, n));
  const int64_t stop = std::min(last, n);
  return Window{text.byte_of(static_cast<size_t>(std::min(first, n))),
                text.byte_of(static_cast<size_t>(stop)), first > stop};
}

// Lists of more parts are refused before they are made.
constexpr size_t kMaxParts = 1'000'000;

Status spend_search(Interpreter& in, const Text& text, std::string_view wanted) {
  return in.spend(text.bytes.size() * (wanted.size() / 64 + 1) / 64);
}

// Python's find and its relations, in code points; -1 when it is not there.
Result<int64_t> found_at(Interpreter& in, const Value& self, Args& args, bool last) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "find()", args, {"sub", "start", "end"},
                                          {Value(), None{}, None{}}, 1)));
  const Text& text = *self.text();
  MILLRACE_ASSIGN(const Text* wanted, text_arg(in, "find()", p[0]));
  MILLRACE_ASSIGN(const Window w, window_of(in, text, p[1], p[2]));
  MILLRACE_TRY(spend_search(in, text, wanted->bytes));
  if (w.empty) return -1;
  const auto part = text.view().substr(w.begin, w.end - w.begin);
  const size_t at = last ? part.rfind(wanted->bytes) : part.find(wanted->bytes);
  if (at == std::string_view::npos) return -1;
  return static_cast<int64_t>(count_points(text.view().substr(0, w.begin + at)));
}

template <bool kLast>
Result<Value> find(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const int64_t at, found_at(in, self, args, kLast));
  return Value(at);
}

template <bool kLast>
Result<Value> index(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const int64_t at, found_at(in, self, args, kLast));
  if (at < 0) return in.fail("index(): the string is not in there");
  return Value(at);
}

Result<Value> count(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "count()", args, {"sub", "start", "end"},
                                          {Value(), None{}, None{}}, 1)));
  const Text& text = *self.text();
  MILLRACE_ASSIGN(const Text* wanted, text_arg(in, "count()", p[0]));
  MILLRACE_ASSIGN(const Window w, window_of(in, text, p[1], p[2]));
  MILLRACE_TRY(spend_search(in, text, wanted->bytes));
  if (w.empty) return Value(int64_t{0});
  const auto part = text.view().substr(w.begin, w.end - w.begin);
  if (wanted->bytes.empty()) return Value(static_cast<int64_t>(count_points(part)) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = part.find(wanted->bytes, at)) != std::string_view::npos; ++n)
    at += wanted->bytes.size();
  return Value(n);
}

template <bool kAtEnd>
Result<Value> has_affix(Interpreter& in, const Value& self, Args& args) {
  constexpr std::string_view kName = kAtEnd ? "endswith()" : "startswith()";
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, kName, args, {"prefix", "start", "end"},
                                          {Value(), None{}, None{}}, 1)));
  const Text& text = *self.text();
  MILLRACE_ASSIGN(const Window w, window_of(in, text, p[1], p[2]));
  const auto part = text.view().substr(w.begin, w.empty ? 0 : w.end - w.begin);
  const List* several = p[0].list();
  const bool is_tuple = several != nullptr && several->kind == ListKind::tuple;
  const auto wanted = is_tuple ? std::span<const Value>(several->items) : std::span(&p[0], 1);
  bool holds = false;
  for (const Value& one : wanted) {
    MILLRACE_ASSIGN(const Text* affix, text_arg(in, kName, one));
    MILLRACE_TRY(in.spend(affix->bytes.size() / 64));
    holds |= !w.empty && (kAtEnd ? part.ends_with(affix->bytes) : part.starts_with(affix->bytes));
  }
  return Value(holds);
}

template <bool kLeft, bool kRight>
Result<Value> strip(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "strip()", args, {"chars"}, {None{}})));
  const Text& text = *self.text();
  std::string_view chars;
  if (!p[0].is_none()) {
    MILLRACE_ASSIGN(const Text* given, text_arg(in, "strip()", p[0]));
    MILLRACE_TRY(in.spend(given->bytes.size() / 16));
    chars = given->bytes;
  }
  const Span kept =
      stripped(text.bytes, {.left = kLeft, .right = kRight}, p[0].is_none() ? nullptr : &chars);
  return in.part(text, kept.begin, kept.end);
}

template <Mapper kMapper>
Result<Value> map(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "a change of case", args));
  return mapped(in, *self.text(), kMapper);
}

void append_swapped(std::string& out, uint32_t code) {
  is_upper(code) ? append_lower(out, code) : append_upper(out, code);
}

void append_folded(std::string& out, uint32_t code) {
  if (code == 0xDF)
    out += "ss";
  else
    append_lower(out, code);
}

Result<Value> capitalize(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "capitalize()", args));
  return capitalized(in, *self.text());
}

Result<Value> title(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "title()", args));
  const Text& text = *self.text();
  TextBuilder out = in.builder();
  bool after_letter = false;
  std::string one;
  for (size_t at = 0; at < text.bytes.size();) {
    const Point p = point_at(text.bytes, at);
    one.clear();
    after_letter ? append_lower(one, p.code) : append_upper(one, p.code);
    out.append(one, text.input_at(at));
    after_letter = is_upper(p.code) || is_lower(p.code);
    at += p.bytes;
  }
  return in.text(std::move(out));
}

Result<Value> replace(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "replace()", args, {"old", "new", "count"},
                                          {Value(), Value(), Value(int64_t{-1})}, 2)));
  MILLRACE_ASSIGN(const Text* old, text_arg(in, "replace()", p[0]));
  MILLRACE_ASSIGN(const Text* with, text_arg(in, "replace()", p[1]));
  MILLRACE_ASSIGN(const int64_t n, int_arg(in, "replace()", p[2]));
  return replaced(in, *self.text(), *old, *with, n);
}

Result<Value> join(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "join()", args, {"items"}, {Value()}, 1)));
  MILLRACE_ASSIGN(const auto items, in.iterate(p[0]));
  for (const Value& item : items->items) MILLRACE_TRY(text_arg(in, "join()", item).status());
  return joined(in, *self.text(), items->items);
}

Result<Value> format(Interpreter& in, const Value& self, Args& args) {
  return format_braces(in, *self.text(), args);
}

Result<Value> texts(Interpreter& in, const Text& text, const std::vector<Span>& parts,
                    ListKind kind = ListKind::list) {
  std::vector<Value> out;
  if (parts.size() > kMaxParts)
    return in.fail("a string splits into more than {} parts", kMaxParts);
  for (const Span& span : parts) {
    MILLRACE_ASSIGN(Value part, in.part(text, span.begin, span.end));
    out.push_back(std::move(part));
  }
  return in.list(kind, std::move(out));
}

// At runs of white space, at most `n` times from the left; -1: everywhere.
std::vector<Span> words_from_left(std::string_view text, int64_t n) {
  std::vector<Span> out;
  size_t at = stripped(text, {.left = true, .right = false}).begin;
  while (at < text.size() && out.size() <= kMaxParts) {
    if (n == 0) {
      out.push_back({at, stripped(text, {.left = false, .right = true}).end});
      break;
    }
    size_t end = at;
    while (end < text.size() && !is_space(point_at(text, end).code))
      end += point_at(text, end).bytes;
    out.push_back({at, end});
    at = end + stripped(text.substr(end), {.left = true, .right = false}).begin;
    n -= n > 0 ? 1 : 0;
  }
  return out;
}

std::vector<Span> words_from_right(std::string_view text, int64_t n) {
  auto all = words_from_left(text, -1);
  const auto n_words = static_cast<int64_t>(all.size());
  if (n < 0 || n_words <= n) return all;
  const auto first_kept = static_cast<ptrdiff_t>(n_words - n);
  const size_t end = all[static_cast<size_t>(first_kept) - 1].end;
  all.erase(all.begin(), all.begin() + first_kept);
  all.insert(all.begin(), {0, end});
  return all;
}

std::vector<Span> split_at(std::string_view text, std::string_view separator, int64_t n) {
  std::vector<Span> out;
  size_t begin = 0;
  for (; n != 0 && out.size() <= kMaxParts; n -= n > 0 ? 1 : 0) {
    const size_t at = text.find(separator, begin);
    if (at == std::string_view::npos) break;
    out.push_back({begin, at});
    begin = at + separator.size();
  }
  out.push_back({begin, text.size()});
  return out;
}

std::vector<Span> split_at_from_right(std::string_view text, std::string_view separator,
                                      int64_t n) {
  std::vector<Span> out;
  size_t end = text.size();
  for (; n != 0 && end >= separator.size() && out.size() <= kMaxParts; n -= n > 0 ? 1 : 0) {
    const size_t at = text.rfind(separator, end - separator.size());
    if (at == std::string_view::npos) break;
    out.push_back({at + separator.size(), end});
    end = at;
  }
  out.push_back({0, end});
  std::reverse(out.begin(), out.end());
  return out;
}

template <bool kFromRight>
Result<Value> split(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<2>(in, "split()", args, {"sep", "maxsplit"},
                                          {None{}, Value(int64_t{-1})})));
  MILLRACE_ASSIGN(const int64_t n, int_arg(in, "split()", p[1]));
  const Text& text = *self.text();
  if (p[0].is_none())
    return texts(in, text,
                 kFromRight ? words_from_right(text.bytes, n) : words_from_left(text.bytes, n));
  MILLRACE_ASSIGN(const Text* separator, text_arg(in, "split()", p[0]));
  if (separator->bytes.empty()) return in.fail("split() wants a separator that is not empty");
  MILLRACE_TRY(spend_search(in, text, separator->bytes));
  return texts(in, text,
               kFromRight ? split_at_from_right(text.bytes, separator->bytes, n)
                          : split_at(text.bytes, separator->bytes, n));
}

Result<Value> splitlines(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "splitlines()", args, {"keepends"}, {Value(false)})));
  std::vector<Span> out;
  MILLRACE_ASSIGN(const auto lines, lines_of(in, self.view()));
  for (const Line& line : lines) out.push_back({line.begin, truthy(p[0]) ? line.next : line.end});
  return texts(in, *self.text(), out);
}

template <bool kFromRight>
Result<Value> partition(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "partition()", args, {"sep"}, {Value()}, 1)));
  const Text& text = *self.text();
  MILLRACE_ASSIGN(const Text* separator, text_arg(in, "partition()", p[0]));
  if (separator->bytes.empty()) return in.fail("partition() wants a separator that is not empty");
  MILLRACE_TRY(spend_search(in, text, separator->bytes));
  const size_t at =
      kFromRight ? text.bytes.rfind(separator->bytes) : text.bytes.find(separator->bytes);
  const size_t size = text.bytes.size();
  if (at == std::string::npos)
    return texts(in, text,
                 kFromRight ? std::vector<Span>{{0, 0}, {0, 0}, {0, size}}
                            : std::vector<Span>{{0, size}, {size, size}, {size, size}},
                 ListKind::tuple);
  const size_t behind = at + separator->bytes.size();
  return texts(in, text, {{0, at}, {at, behind}, {behind, size}}, ListKind::tuple);
}

template <bool kSuffix>
Result<Value> remove_affix(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "removeprefix()", args, {"affix"}, {Value()}, 1)));
  MILLRACE_ASSIGN(const Text* affix, text_arg(in, "removeprefix()", p[0]));
  const Text& text = *self.text();
  const size_t n = affix->bytes.size(), size = text.bytes.size();
  if (kSuffix && text.view().ends_with(affix->bytes)) return in.part(text, 0, size - n);
  if (!kSuffix && text.view().starts_with(affix->bytes)) return in.part(text, n, size);
  return self;
}

template <Side kSide>
Result<Value> justify(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<2>(in, "just()", args, {"width", "fillchar"},
                                          {Value(), Value::literal(" ")}, 1)));
  MILLRACE_ASSIGN(const int64_t width, int_arg(in, "just()", p[0]));
  MILLRACE_ASSIGN(const Text* fill, text_arg(in, "just()", p[1]));
  if (fill->n_points != 1) return in.fail("a string is filled up with one character");
  return padded(in, *self.text(), width, fill->bytes, kSide);
}

Result<Value> zfill(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_ASSIGN(const auto p, (bound<1>(in, "zfill()", args, {"width"}, {Value()}, 1)));
  MILLRACE_ASSIGN(const int64_t width, int_arg(in, "zfill()", p[0]));
  const Text& text = *self.text();
  const bool sign = text.bytes.starts_with('-') || text.bytes.starts_with('+');
  MILLRACE_ASSIGN(const Value digits, in.part(text, sign ? 1 : 0, text.bytes.size()));
  const int64_t rest = width > 0 && sign ? width - 1 : width;
  MILLRACE_ASSIGN(const Value filled, padded(in, *digits.text(), rest, "0", Side::left));
  MILLRACE_ASSIGN(const Value head, in.part(text, 0, sign ? 1 : 0));
  return in.binary(Op::add, head, filled);
}

// isalpha() and its like: of every code point, and of at least one.
template <bool (*kIs)(uint32_t)>
Result<Value> all_are(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "a question about a string", args));
  for (size_t at = 0; at < self.view().size();) {
    const Point p = point_at(self.view(), at);
    if (!kIs(p.code)) return Value(false);
    at += p.bytes;
  }
  return Value(!self.view().empty());
}

bool is_alnum(uint32_t code) {
  return is_word(code) && code != '_';
}

Result<Value> is_ascii(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "isascii()", args));
  return Value(self.text()->ascii());
}

template <bool kUpper>
Result<Value> is_cased(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "islower()", args));
  MILLRACE_ASSIGN(const bool holds, in.test(kUpper ? "upper" : "lower", self, {}));
  return Value(holds);
}

constexpr NamedFilter kMethods[] = {
    {"capitalize", capitalize},
    {"casefold", map<append_folded>},
    {"center", justify<Side::both>},
    {"count", count},
    {"endswith", has_affix<true>},
    {"find", find<false>},
    {"format", format},
    {"index", index<false>},
    {"isalnum", all_are<is_alnum>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", is_ascii},
    {"isdecimal", all_are<is_digit>},
    {"isdigit", all_are<is_digit>},
    {"islower", is_cased<false>},
    {"isnumeric", all_are<is_digit>},
    {"isspace", all_are<is_space>},
    {"isupper", is_cased<true>},
    {"join", join},
    {"ljust", justify<Side::right>},
    {"lower", map<append_lower>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"rfind", find<true>},
    {"rindex", index<true>},
    {"rjust", justify<Side::left>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", has_affix<false>},
    {"strip", strip<true, true>},
    {"swapcase", map<append_swapped>},
    {"title", title},
    {"upper", map<append_upper>},
    {"zfill", zfill},
};

}  // namespace

std::span<const NamedFilter> text_methods() {
  return kMethods;
}

}  // namespace millrace::jinja
