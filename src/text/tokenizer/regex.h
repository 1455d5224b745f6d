// Regular expressions of pre-tokenisers, by PCRE2. They are written for Oniguruma in its Ruby
// syntax (which Hugging Face's tokenizers uses) and translated; what would mean something else here
// is refused. Compiled expressions are shared by threads; a Matcher is one thread's scratch and
// budget.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace millrace {

// The same expression as PCRE2 spells it, or why it cannot be.
Result<std::string> from_oniguruma(std::string_view pattern);

class Regex {
 public:
  static Result<Regex> compile(std::string_view oniguruma);

 private:
  friend class Matcher;
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

class Matcher {
 public:
  // The budget of steps grows with the text, so that no expression takes more than linear time on
  // it.
  explicit Matcher(size_t text_bytes);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  struct Match {
    size_t begin = 0, end = 0;
  };
  // The first match at or after `from`; begin == npos: none. `text` is valid UTF-8. Fails when the
  // expression would run beyond the budget.
  Result<Match> find(const Regex& regex, std::string_view text, size_t from);

 private:
  int run(const Regex& regex, std::string_view text, size_t from, uint32_t options);
  pcre2_real_match_data_8* data_;
  pcre2_real_match_context_8* context_;
  pcre2_real_jit_stack_8* stack_ = nullptr;
  size_t budget_;
};

}  // namespace millrace
