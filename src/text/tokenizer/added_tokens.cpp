#include "text/tokenizer/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace millrace {
namespace {

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x85 ||
         utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ZS ||
         code == 0x2028 || code == 0x2029;
}

bool is_word(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

// The character that ends at text[end].
Utf8Char decode_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  const Utf8Char c = decode_utf8(text.substr(0, end), begin);
  return c.valid() && c.bytes == end - begin ? c : Utf8Char{};
}

size_t blanks_before(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    const Utf8Char c = decode_before(text, end);
    if (!c.valid() || !is_space(c.code) || c.bytes > end - from) break;
    end -= c.bytes;
  }
  return end;
}

size_t blanks_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid() || !is_space(c.code)) break;
    at += c.bytes;
  }
  return at;
}

bool is_inside_a_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_word(decode_before(text, begin).code)) ||
         (end < text.size() && is_word(decode_utf8(text, end).code));
}

bool is_marked(const std::vector<MarkedRange>& marked, size_t begin, size_t end) {
  const auto after = std::partition_point(marked.begin(), marked.end(),
                                          [&](const MarkedRange& r) { return r.begin <= begin; });
  return after != marked.begin() && end <= std::prev(after)->end;
}

}  // namespace

Status AddedTokens::check(const AddedToken& token) {
  if (token.text.size() <= kMaxBytes) return {};
  return error(Code::unsupported, "the added token {} ('{}') has {} bytes; the limit is {}",
               token.id, printable(token.text, 40), token.text.size(), kMaxBytes);
}

Result<AddedTokens> AddedTokens::make(std::vector<AddedToken> tokens) {
  std::erase_if(tokens, [](const AddedToken& t) { return t.text.empty(); });
  for (const AddedToken& token : tokens) MILLRACE_TRY(check(token));
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  AddedTokens made;
  made.tokens_ = std::move(tokens);
  for (const AddedToken& token : made.tokens_)
    ++made.first_[static_cast<unsigned char>(token.text[0]) + 1u];
  for (size_t i = 1; i < made.first_.size(); ++i) made.first_[i] += made.first_[i - 1];
  return made;
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at,
                                          const std::vector<MarkedRange>& marked) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  auto lo = tokens_.begin() + first_[byte], hi = tokens_.begin() + first_[byte + 1u];
  const AddedToken* longest = nullptr;
  // Of the tokens left, all agree with the text up to `n`: sorted, they are a range that narrows.
  for (size_t n = 1; lo != hi; ++n) {
    if (lo->text.size() == n && (!lo->control || is_marked(marked, at, at + n))) longest = &*lo;
    lo = std::partition_point(lo, hi, [&](const AddedToken& t) { return t.text.size() == n; });
    if (at + n >= text.size()) break;
    const auto next = static_cast<unsigned char>(text[at + n]);
    const auto byte_of = [n](const AddedToken& t) { return static_cast<unsigned char>(t.text[n]); };
    lo = std::partition_point(lo, hi, [&](const AddedToken& t) { return byte_of(t) < next; });
    hi = std::partition_point(lo, hi, [&](const AddedToken& t) { return byte_of(t) <= next; });
  }
  return longest;
}

AddedTokens::Hit AddedTokens::find(std::string_view text, size_t from,
                                   const std::vector<MarkedRange>& marked) const {
  for (size_t at = from; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (first_[byte] == first_[byte + 1u]) continue;
    const AddedToken* token = longest_at(text, at, marked);
    if (token == nullptr) continue;
    size_t begin = at, end = at + token->text.size();
    if (token->single_word && is_inside_a_word(text, begin, end)) {
      at = end - 1;
      continue;
    }
    if (token->lstrip) begin = blanks_before(text, from, begin);
    if (token->rstrip) end = blanks_after(text, end);
    return {begin, end, token->id};
  }
  return {text.size(), text.size(), -1};
}

}  // namespace millrace
