#include "text/tokenizer/split.h"

#include <algorithm>

#include "base/utf8.h"

namespace millrace {
namespace {

using Behavior = SplitStep::Behavior;
using Match = Matcher::Match;

constexpr size_t kMaxSteps = 64;
// Of all steps; files in use have 2 KB. Compiled, an expression takes thirty times its text.
constexpr size_t kMaxPatternBytes = 1 << 15;

Match find_literal(std::string_view literal, std::string_view text, size_t from) {
  const size_t at = text.find(literal, from);
  return at == std::string_view::npos ? Match{at, at} : Match{at, at + literal.size()};
}

// Joins the parts of one word (matches and what lies between them, in order) as a step asks.
class Joiner {
 public:
  Joiner(Behavior behavior, bool invert, std::vector<std::string_view>& words)
      : behavior_(behavior), invert_(invert), words_(words) {}

  void add(std::string_view part, bool is_match) {
    if (part.empty()) return;
    is_match = is_match != invert_;
    if (is_match && behavior_ == Behavior::removed) return flush();
    if (joins(is_match))
      word_ = {word_.data(), word_.size() + part.size()};
    else
      flush(), word_ = part;
    last_is_match_ = is_match;
  }

  void flush() {
    if (!word_.empty()) words_.push_back(word_);
    word_ = {};
  }

 private:
  bool joins(bool is_match) const {
    if (word_.empty()) return false;
    switch (behavior_) {
      case Behavior::merged_with_previous:
        return is_match && !last_is_match_;
      case Behavior::merged_with_next:
        return !is_match && last_is_match_;
      case Behavior::contiguous:
        return is_match == last_is_match_;
      default:
        return false;
    }
  }

  Behavior behavior_;
  bool invert_;
  std::vector<std::string_view>& words_;
  std::string_view word_;
  bool last_is_match_ = false;
};

}  // namespace

Result<Splitter> Splitter::make(const std::vector<SplitStep>& steps) {
  if (steps.size() > kMaxSteps)
    return error(Code::unsupported, "a pre-tokenizer of {} steps; the limit is {}", steps.size(),
                 kMaxSteps);
  Splitter splitter;
  size_t bytes = 0;
  for (const SplitStep& step : steps) {
    bytes += step.pattern.size();
    if (bytes > kMaxPatternBytes)
      return error(Code::unsupported, "a pre-tokenizer of more than {} bytes of patterns",
                   kMaxPatternBytes);
    Stage made;
    made.behavior = step.behavior;
    made.invert = step.invert;
    if (step.literal) {
      if (step.pattern.empty()) return error(Code::corrupt, "a pre-tokenizer splits at nothing");
      made.literal = step.pattern;
    } else {
      MILLRACE_ASSIGN(made.regex, Regex::compile(step.pattern));
    }
    splitter.stages_.push_back(std::move(made));
  }
  return splitter;
}

Status Splitter::split(std::string_view text, Matcher& matcher,
                       std::vector<std::string_view>& words) const {
  words.clear();
  if (!text.empty()) words.push_back(text);
  std::vector<std::string_view> before;
  for (const Stage& stage : stages_) {
    before.swap(words);
    words.clear();
    for (const std::string_view word : before) {
      Joiner joiner(stage.behavior, stage.invert, words);
      size_t done = 0;
      for (size_t from = 0; from < word.size();) {
        Match match;
        if (stage.literal.empty()) {
          MILLRACE_ASSIGN(match, matcher.find(stage.regex, word, from));
        } else {
          match = find_literal(stage.literal, word, from);
        }
        if (match.begin == std::string_view::npos) break;
        joiner.add(word.substr(done, match.begin - done), false);
        joiner.add(word.substr(match.begin, match.end - match.begin), true);
        done = match.end;
        from = match.end > match.begin ? match.end : match.end + 1;
        while (from < word.size() && (static_cast<unsigned char>(word[from]) & 0xC0) == 0x80)
          ++from;
      }
      joiner.add(word.substr(done), false);
      joiner.flush();
    }
  }
  return {};
}

}  // namespace millrace
