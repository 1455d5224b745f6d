// Python's methods of strings. Those that search pay for what they compare, by find_in().
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

Result<Window> window_of(Interpreter& in, const Text& text, const Value& begin, const Value& end) {
  const auto n = static_cast<int64_t>(text.n_points);
  const auto place = [&](const Value& value, int64_t otherwise) -> Result<int64_t> {
    if (value.is_none()) return otherwise;
    MILLRACE_ASSIGN(const int64_t i, int_arg(in, "a string's method", value));
    return i < 0 ? std::max<int64_t>(i + n, 0) : i;
  };
  MILLRACE_ASSIGN(const int64_t first, place(begin, 0));
  MILLRACE_ASSIGN(const int64_t last, place(end, n));
  const int64_t stop = std::min(last, n);
  return Window{text.byte_of(static_cast<size_t>(std::min(first, n)), in.budget()),
                text.byte_of(static_cast<size_t>(stop), in.budget()), first > stop};
}

// Lists of more parts are refused before they are made.
constexpr size_t kMaxParts = 1'000'000;

// Python's find and its relations, in code points; -1 when it is not there.
Result<int64_t> found_at(Interpreter& in, const Value& self, Args& args, bool last) {
  MILLRACE_ASSIGN(const auto p, (bound<3>(in, "find()", args, {"sub", "start", "end"},
                                          {Value(), None{}, None{}}, 1)));
  const Text& text = *self.text();
  MILLRACE_ASSIGN(const Text* wanted, text_arg(in, "find()", p[0]));
  MILLRACE_ASSIGN(const Window w, window_of(in, text, p[1], p[2]));
  if (w.empty) return -1;
  const auto part = text.view().substr(w.begin, w.end - w.begin);
  const size_t at = last ? rfind_in(part, wanted->bytes, part.size(), in.budget())
                         : find_in(part, wanted->bytes, 0, in.budget());
  MILLRACE_TRY(in.spend(0));
  if (at == std::string_view::npos) return -1;
  if (text.ascii()) return static_cast<int64_t>(w.begin + at);
  MILLRACE_TRY(in.spend_points(w.begin + at));
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
  if (w.empty) return Value(int64_t{0});
  const auto part = text.view().substr(w.begin, w.end - w.begin);
  if (wanted->bytes.empty()) {
    MILLRACE_TRY(in.spend_points(part.size()));
    return Value(static_cast<int64_t>(count_points(part)) + 1);
  }
  int64_t n = 0;
  for (size_t at = 0; (at = find_in(part, wanted->bytes, at, in.budget())) != part.npos; ++n) {
    at += wanted->bytes.size();
    MILLRACE_TRY(in.spend(1));
  }
  MILLRACE_TRY(in.spend(0));
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
    MILLRACE_TRY(in.spend(1 + affix->bytes.size() / 64));
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
    chars = given->bytes;
  }
  const Span kept = stripped(text.bytes, {.left = kLeft, .right = kRight}, in.budget(),
                             p[0].is_none() ? nullptr : &chars);
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
  MILLRACE_TRY(in.spend_points(text.bytes.size()));  // a second time: it maps and builds
  Origins origins(text.input);
  bool after_letter = false;
  std::string one;
  for (size_t at = 0; at < text.bytes.size();) {
    const Point p = point_at(text.bytes, at);
    one.clear();
    after_letter ? append_lower(one, p.code) : append_upper(one, p.code);
    out.append(one, origins.at(at));
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

// At runs of white space, at most `n` times from the left; -1: everywhere. The text was paid for.
std::vector<Span> words_from_left(std::string_view text, int64_t n) {
  Budget unlimited;
  std::vector<Span> out;
  size_t at = stripped(text, {.left = true, .right = false}, unlimited).begin;
  while (at < text.size() && out.size() <= kMaxParts) {
    if (n == 0) {
      out.push_back({at, stripped(text, {.left = false, .right = true}, unlimited).end});
      break;
    }
    size_t end = at;
    while (end < text.size() && !is_space(point_at(text, end).code))
      end += point_at(text, end).bytes;
    out.push_back({at, end});
    at = end + stripped(text.substr(end), {.left = true, .right = false}, unlimited).begin;
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

std::vector<Span> split_at(std::string_view text, std::string_view separator, int64_t n,
                           Budget& budget) {
  std::vector<Span> out;
  size_t begin = 0;
  for (; n != 0 && out.size() <= kMaxParts; n -= n > 0 ? 1 : 0) {
    const size_t at = find_in(text, separator, begin, budget);
    if (at == std::string_view::npos) break;
    out.push_back({begin, at});
    begin = at + separator.size();
  }
  out.push_back({begin, text.size()});
  return out;
}

std::vector<Span> split_at_from_right(std::string_view text, std::string_view separator, int64_t n,
                                      Budget& budget) {
  std::vector<Span> out;
  size_t end = text.size();
  for (; n != 0 && out.size() <= kMaxParts; n -= n > 0 ? 1 : 0) {
    const size_t at = rfind_in(text, separator, end, budget);
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
  if (p[0].is_none()) {
    MILLRACE_TRY(in.spend_points(text.bytes.size()));
    return texts(in, text,
                 kFromRight ? words_from_right(text.bytes, n) : words_from_left(text.bytes, n));
  }
  MILLRACE_ASSIGN(const Text* separator, text_arg(in, "split()", p[0]));
  if (separator->bytes.empty()) return in.fail("split() wants a separator that is not empty");
  return texts(in, text,
               kFromRight ? split_at_from_right(text.bytes, separator->bytes, n, in.budget())
                          : split_at(text.bytes, separator->bytes, n, in.budget()));
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
  const size_t size = text.bytes.size();
  const size_t at = kFromRight ? rfind_in(text.bytes, separator->bytes, size, in.budget())
                               : find_in(text.bytes, separator->bytes, 0, in.budget());
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
  MILLRACE_TRY(in.spend_bytes(n));
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

Result<Value> all_ascii(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "isascii()", args));
  return Value(self.text()->ascii());
}

template <bool kUpper>
Result<Value> is_cased(Interpreter& in, const Value& self, Args& args) {
  MILLRACE_TRY(no_args(in, "islower()", args));
  MILLRACE_ASSIGN(const bool holds, in.test(kUpper ? "upper" : "lower", self, {}));
  return Value(holds);
}

constexpr Pays kItself = Pays::by_itself;
constexpr NamedFilter kMethods[] = {
    {"capitalize", capitalize, kItself},
    {"casefold", map<append_folded>, kItself},
    {"center", justify<Side::both>, kItself},
    {"count", count, kItself},
    {"endswith", has_affix<true>, kItself},
    {"find", find<false>, kItself},
    {"format", format, kItself},
    {"index", index<false>, kItself},
    {"isalnum", all_are<is_alnum>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", all_ascii, kItself},
    {"isdecimal", all_are<is_digit>},
    {"isdigit", all_are<is_digit>},
    {"islower", is_cased<false>, kItself},
    {"isnumeric", all_are<is_digit>},
    {"isspace", all_are<is_space>},
    {"isupper", is_cased<true>, kItself},
    {"join", join, kItself},
    {"ljust", justify<Side::right>, kItself},
    {"lower", map<append_lower>, kItself},
    {"lstrip", strip<true, false>, kItself},
    {"partition", partition<false>, kItself},
    {"removeprefix", remove_affix<false>, kItself},
    {"removesuffix", remove_affix<true>, kItself},
    {"replace", replace, kItself},
    {"rfind", find<true>, kItself},
    {"rindex", index<true>, kItself},
    {"rjust", justify<Side::left>, kItself},
    {"rpartition", partition<true>, kItself},
    {"rsplit", split<true>, kItself},
    {"rstrip", strip<false, true>, kItself},
    {"split", split<false>, kItself},
    {"splitlines", splitlines, kItself},
    {"startswith", has_affix<false>, kItself},
    {"strip", strip<true, true>, kItself},
    {"swapcase", map<append_swapped>, kItself},
    {"title", title},
    {"upper", map<append_upper>, kItself},
    {"zfill", zfill, kItself},
};

}  // namespace

std::span<const NamedFilter> text_methods() {
  return kMethods;
}

}  // namespace millrace::jinja
