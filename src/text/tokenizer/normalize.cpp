#include "text/tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace millrace {
namespace {

using Kind = NormalizeStep::Kind;

bool composes(Kind kind) {
  return kind == Kind::nfc || kind == Kind::nfkc;
}

// Below this every character is its own normal form.
char32_t first_to_look_at(Kind kind) {
  switch (kind) {
    case Kind::nfc:
      return 0x300;
    case Kind::nfd:
      return 0xC0;
    default:
      return 0xA0;
  }
}

bool is_normal_already(std::string_view text, Kind kind) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code >= first_to_look_at(kind)) return false;
    at += c.bytes;
  }
  return true;
}

utf8proc_propval_t combining_class(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

// utf8proc orders marks by swapping neighbours, which takes for ever on a megabyte of them; this is
// the same stable order by a sort.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto before = [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); };
  for (size_t at = 0; at < codes.size();) {
    size_t end = at;
    while (end < codes.size() && combining_class(codes[end]) != 0) ++end;
    if (end - at > 1)
      std::stable_sort(codes.begin() + static_cast<ptrdiff_t>(at),
                       codes.begin() + static_cast<ptrdiff_t>(end), before);
    at = end + 1;
  }
}

std::string to_normal_form(std::string_view text, Kind kind) {
  const bool compatible = kind == Kind::nfkc || kind == Kind::nfkd;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  std::array<utf8proc_int32_t, 32> parts;  // the longest there is has 18
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code), parts.data(),
                                           parts.size(), options, &boundary);
    if (n > 0 && static_cast<size_t>(n) <= parts.size())
      codes.insert(codes.end(), parts.begin(), parts.begin() + n);
    else
      codes.push_back(static_cast<utf8proc_int32_t>(c.code));
    at += c.bytes;
  }
  order_marks(codes);
  auto n = static_cast<utf8proc_ssize_t>(codes.size());
  if (composes(kind))
    n = utf8proc_normalize_utf32(
        codes.data(), n, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    append_utf8(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  return out;
}

std::string replace_all(std::string_view text, const NormalizeStep& step) {
  std::string out;
  size_t at = 0;
  for (size_t hit; (hit = text.find(step.from, at)) != std::string_view::npos;) {
    out.append(text, at, hit - at).append(step.to);
    at = hit + step.from.size();
  }
  return out.append(text.substr(at));
}

std::string apply(std::string text, const NormalizeStep& step, bool first) {
  switch (step.kind) {
    case Kind::prepend:
      return step.to + text;
    case Kind::prepend_first:
      if (!first) return text;
      [[fallthrough]];
    case Kind::prepend_missing:
      return text.starts_with(step.to) ? text : step.to + text;
    case Kind::replace:
      return replace_all(text, step);
    default:
      return is_normal_already(text, step.kind) ? text : to_normal_form(text, step.kind);
  }
}

}  // namespace

std::string normalize(std::string text, const std::vector<NormalizeStep>& steps, bool first) {
  if (text.empty()) return text;
  for (const NormalizeStep& step : steps) text = apply(std::move(text), step, first);
  return text;
}

}  // namespace millrace
