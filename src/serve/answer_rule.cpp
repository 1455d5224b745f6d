#include "serve/answer_rule.h"

#include <algorithm>

#include "base/check.h"

namespace millrace::serve {

void AnswerRule::hold_to(std::shared_ptr<const grammar::TokenGrammar> grammar,
                         std::string_view prefill) {
  grammar_ = std::move(grammar);
  matcher_.emplace(*grammar_);
  const Status fits = matcher_->accept_text(prefill);
  MILLRACE_CHECK(fits.ok(), "a prefill that was not checked: {}", fits.message());
}

void AnswerRule::bound_reasoning(int64_t n, int32_t open, int32_t close, bool inside) {
  n_left_ = n;
  open_ = open;
  close_ = close;
  in_reasoning_ = inside;
}

void AnswerRule::dictate(std::vector<int32_t> tokens, int32_t end) {
  dictated_ = std::move(tokens);
  dictated_.push_back(end);
}

std::span<const uint32_t> AnswerRule::only(int32_t token) {
  std::ranges::fill(bits_, 0u);
  bits_[static_cast<size_t>(token) / 32] = 1u << (static_cast<size_t>(token) % 32);
  return bits_;
}

std::span<const uint32_t> AnswerRule::allowed() {
  if (n_said_ < dictated_.size()) return only(dictated_[n_said_]);
  const bool is_spent = in_reasoning_ && n_left_ == 0;
  if (!matcher_) return is_spent ? only(close_) : std::span<const uint32_t>();
  matcher_->mask(bits_);
  // Not in the middle of a character.
  const auto close = static_cast<size_t>(std::max(close_, 0));
  if (is_spent && (bits_[close / 32] >> (close % 32) & 1u) != 0) return only(close_);
  return bits_;
}

Status AnswerRule::took(int32_t token) {
  n_said_ += n_said_ < dictated_.size();
  if (n_left_ >= 0) {
    if (token == close_)
      in_reasoning_ = false;
    else if (token == open_)
      in_reasoning_ = true;
    else if (in_reasoning_ && n_left_ > 0)
      --n_left_;
  }
  return matcher_ ? matcher_->accept(token) : Status();
}

}  // namespace millrace::serve
