#include "text/template/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace millrace::jinja {

bool TextBuilder::fits(size_t n) {
  if (n > limit_ || bytes_.size() > limit_ - n) over_ = true;
  return !over_;
}

void TextBuilder::append(std::string_view bytes, bool from_input) {
  if (bytes.empty() || !fits(bytes.size())) return;
  const size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (!from_input) return;
  if (!input_.empty() && input_.back().end == begin)
    input_.back().end = bytes_.size();
  else
    input_.push_back({begin, bytes_.size()});
}

void TextBuilder::append(std::string_view bytes, const std::vector<Span>& input, size_t begin,
                         size_t end) {
  auto span = std::partition_point(input.begin(), input.end(),
                                   [&](const Span& s) { return s.end <= begin; });
  size_t at = begin;
  for (; at < end && span != input.end() && span->begin < end; ++span) {
    if (span->begin > at) append(bytes.substr(at, span->begin - at), false);
    at = std::max(at, span->begin);
    const size_t stop = std::min(end, span->end);
    append(bytes.substr(at, stop - at), true);
    at = stop;
  }
  if (at < end) append(bytes.substr(at, end - at), false);
}

void TextBuilder::repeat(std::string_view bytes, size_t n, bool from_input) {
  if (bytes.empty() || n == 0) return;
  if (n > limit_ / bytes.size() || !fits(n * bytes.size())) {
    over_ = true;
    return;
  }
  const size_t begin = bytes_.size(), end = begin + n * bytes.size();
  append(bytes, from_input);
  while (bytes_.size() < end)
    bytes_.append(bytes_, begin, std::min(bytes_.size() - begin, end - bytes_.size()));
  if (from_input) input_.back().end = end;
}

Text::Text(std::string text, std::vector<Span> spans, Meter* meter)
    : bytes(std::move(text)),
      input(std::move(spans)),
      n_points(count_points(bytes)),
      charge(meter, sizeof(Text) + bytes.capacity() + input.capacity() * sizeof(Span)) {}

size_t Text::byte_of(size_t i, Budget& budget) const {
  if (i >= n_points) return bytes.size();
  if (ascii()) return i;
  budget.spend_points(i);
  if (budget.spent()) return bytes.size();
  size_t at = 0;
  for (; i > 0; --i) at += point_at(bytes, at).bytes;
  return at;
}

Point point_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const Utf8Char c = decode_utf8(text, at);
  if (!c.valid()) return {lead, 1};
  return {static_cast<uint32_t>(c.code), c.bytes};
}

bool is_ascii(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, 8);
    if ((eight & 0x8080808080808080) != 0) return false;
  }
  return std::none_of(text.begin() + static_cast<ptrdiff_t>(at), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

size_t count_points(std::string_view text) {
  if (is_ascii(text)) return text.size();
  size_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) at += point_at(text, at).bytes;
  return n;
}

namespace {

// Pays for a search as it goes, in pieces that are large beside a step.
class SearchCost {
 public:
  SearchCost(Budget& budget, size_t wanted) : budget_(budget), per_look_(wanted + 8) {}
  ~SearchCost() { budget_.spend_bytes(bytes_); }
  SearchCost(const SearchCost&) = delete;
  SearchCost& operator=(const SearchCost&) = delete;
  // Whether to go on, after `skipped` bytes and one comparison.
  bool paid(size_t skipped) {
    bytes_ += skipped + per_look_;
    if (bytes_ < 4096) return true;
    budget_.spend_bytes(std::exchange(bytes_, 0));
    return !budget_.spent();
  }

 private:
  Budget& budget_;
  size_t per_look_, bytes_ = 0;
};

}  // namespace

size_t find_in(std::string_view text, std::string_view wanted, size_t from, Budget& budget) {
  if (from > text.size() || text.size() - from < wanted.size()) return std::string_view::npos;
  if (wanted.empty()) return from;
  SearchCost cost(budget, wanted.size());
  const size_t end = text.size() - wanted.size() + 1;
  while (from < end) {
    const void* found = std::memchr(text.data() + from, wanted[0], end - from);
    const size_t at =
        found == nullptr ? end : static_cast<size_t>(static_cast<const char*>(found) - text.data());
    if (!cost.paid(at - from) || at == end) break;
    if (text.compare(at, wanted.size(), wanted) == 0) return at;
    from = at + 1;
  }
  return std::string_view::npos;
}

size_t rfind_in(std::string_view text, std::string_view wanted, size_t end, Budget& budget) {
  if (end > text.size() || end < wanted.size()) return std::string_view::npos;
  if (wanted.empty()) return end;
  SearchCost cost(budget, wanted.size());
  for (size_t left = end - wanted.size() + 1; left > 0;) {
    const void* found = memrchr(text.data(), wanted[0], left);
    const size_t at =
        found == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(found) - text.data());
    if (!cost.paid(left - at) || found == nullptr) break;
    if (text.compare(at, wanted.size(), wanted) == 0) return at;
    left = at;
  }
  return std::string_view::npos;
}

namespace {

utf8proc_category_t category(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

struct Special {
  uint32_t code;
  std::string_view text;
};

// The unconditional one-to-many uppercase mappings of Unicode's SpecialCasing that Latin text has.
constexpr Special kSpecialUpper[] = {
    {0x00DF, "SS"}, {0x0149, "ʼN"}, {0x01F0, "J̌"},   {0x0587, "ԵՒ"},  {0x1E96, "H̱"},
    {0x1E97, "T̈"},  {0x1E98, "W̊"},  {0x1E99, "Y̊"},   {0x1E9A, "Aʾ"},  {0xFB00, "FF"},
    {0xFB01, "FI"}, {0xFB02, "FL"}, {0xFB03, "FFI"}, {0xFB04, "FFL"}, {0xFB05, "ST"},
    {0xFB06, "ST"}, {0x0390, "Ϊ́"},  {0x03B0, "Ϋ́"}};

}  // namespace

bool is_space(uint32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 28 && code <= 32);
  if (code == 0x85) return true;
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

bool is_alpha(uint32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(uint32_t code) {
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_word(uint32_t code) {
  const auto c = category(code);
  return code == '_' || is_alpha(code) || c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL ||
         c == UTF8PROC_CATEGORY_NO;
}

bool is_upper(uint32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU;
}

bool is_lower(uint32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}

bool is_printable(uint32_t code) {
  if (code == ' ') return true;
  const auto c = category(code);
  return c != UTF8PROC_CATEGORY_CN && c != UTF8PROC_CATEGORY_CC && c != UTF8PROC_CATEGORY_CF &&
         c != UTF8PROC_CATEGORY_CS && c != UTF8PROC_CATEGORY_CO && c != UTF8PROC_CATEGORY_ZS &&
         c != UTF8PROC_CATEGORY_ZL && c != UTF8PROC_CATEGORY_ZP;
}

void append_upper(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code >= 'a' && code <= 'z' ? code - 32 : code);
    return;
  }
  for (const Special& s : kSpecialUpper)
    if (s.code == code) {
      out += s.text;
      return;
    }
  const auto upper = utf8proc_toupper(static_cast<utf8proc_int32_t>(code));
  append_utf8(out, static_cast<uint32_t>(upper));
}

void append_lower(std::string& out, uint32_t code) {
  if (code < 0x80)
    out += static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code);
  else if (code == 0x130)
    out += "i̇";
  else
    append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

namespace {

size_t previous_point(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at + point_at(text, at).bytes == end ? at : end - 1;
}

}  // namespace

namespace {

std::vector<uint32_t> sorted_points(std::string_view text, Budget& budget) {
  std::vector<uint32_t> out;
  budget.spend(text.size());
  for (size_t at = 0; at < text.size() && !budget.spent(); at += point_at(text, at).bytes)
    out.push_back(point_at(text, at).code);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Span stripped(std::string_view text, Ends ends, Budget& budget, const std::string_view* chars) {
  const auto set = sorted_points(chars != nullptr ? *chars : std::string_view(), budget);
  size_t looks = 0;
  const auto goes = [&](size_t at) {
    if (++looks % 1024 == 0) {
      budget.spend_points(1024);
      if (budget.spent()) return false;
    }
    const uint32_t code = point_at(text, at).code;
    return chars != nullptr ? std::binary_search(set.begin(), set.end(), code) : is_space(code);
  };
  size_t begin = 0, end = text.size();
  while (ends.left && begin < end && goes(begin)) begin += point_at(text, begin).bytes;
  while (ends.right && end > begin) {
    const size_t at = previous_point(text, end);
    if (!goes(at)) break;
    end = at;
  }
  return {begin, end};
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace millrace::jinja
