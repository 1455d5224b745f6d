#include "text/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

namespace millrace {
namespace {

constexpr size_t kMaxPattern = 1 << 14;
constexpr uint32_t kFirstLimit = 2000;  // steps before a match starts to draw on the budget
constexpr size_t kStepsForAnyText = 1 << 22;
constexpr size_t kStepsPerByte = 256;
constexpr size_t kJitStackBytes = 1 << 20;
constexpr uint32_t kHeapKib = 1 << 16;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <class T>
T* checked(T* made) {
  MILLRACE_CHECK(made != nullptr, "PCRE2 ran out of memory");
  return made;
}

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Result<Regex> Regex::compile(std::string_view oniguruma) {
  if (oniguruma.size() > kMaxPattern)
    return error(Code::unsupported, "a regular expression of {} bytes; the limit is {}",
                 oniguruma.size(), kMaxPattern);
  MILLRACE_ASSIGN(const std::string pattern, from_oniguruma(oniguruma));
  int code = 0;
  size_t at = 0;
  auto* context = checked(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  Regex regex;
  // Ruby's ^ and $ are those of lines.
  regex.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                  &code, &at, context));
  pcre2_compile_context_free(context);
  if (!regex.code_)
    return error(Code::unsupported, "the regular expression '{}' does not compile: {}", oniguruma,
                 message_of(code));
  // Where this fails (no executable memory), matching falls back to the interpreter by itself.
  pcre2_jit_compile(regex.code_.get(), PCRE2_JIT_COMPLETE);
  return regex;
}

Matcher::Matcher(size_t text_bytes)
    : data_(checked(pcre2_match_data_create(1, nullptr))),
      context_(checked(pcre2_match_context_create(nullptr))),
      budget_(kStepsForAnyText + kStepsPerByte * text_bytes) {
  pcre2_set_heap_limit(context_, kHeapKib);
}

Matcher::~Matcher() {
  pcre2_match_data_free(data_);
  pcre2_match_context_free(context_);
  pcre2_jit_stack_free(stack_);
}

int Matcher::run(const Regex& regex, std::string_view text, size_t from, uint32_t options) {
  return pcre2_match(regex.code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                     from, options | PCRE2_NO_UTF_CHECK, data_, context_);
}

Result<Matcher::Match> Matcher::find(const Regex& regex, std::string_view text, size_t from) {
  uint32_t limit = kFirstLimit, options = 0;
  for (;;) {
    pcre2_set_match_limit(context_, limit);
    const int code = run(regex, text, from, options);
    if (code >= 0) {
      const size_t* ends = pcre2_get_ovector_pointer(data_);
      return Match{std::min(ends[0], ends[1]), ends[1]};
    }
    if (code == PCRE2_ERROR_NOMATCH) return Match{std::string_view::npos, std::string_view::npos};
    if (code == PCRE2_ERROR_JIT_STACKLIMIT && stack_ == nullptr) {
      stack_ = pcre2_jit_stack_create(1 << 15, kJitStackBytes, nullptr);
      pcre2_jit_stack_assign(context_, nullptr, stack_);
      if (stack_ != nullptr) continue;
    }
    if (code == PCRE2_ERROR_JIT_STACKLIMIT && options == 0) {
      options = PCRE2_NO_JIT;
      continue;
    }
    if (code != PCRE2_ERROR_MATCHLIMIT)
      return error(Code::unsupported, "a regular expression of the tokenizer failed: {}",
                   message_of(code));
    limit *= 8;
    if (limit > budget_)
      return error(Code::unsupported, "a regular expression of the tokenizer backtracks too much");
    budget_ -= limit;
  }
}

}  // namespace millrace
