#include "engine/request.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace millrace {
namespace {

double seconds_since(int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

}  // namespace

std::string_view name_of(Finish finish) {
  constexpr std::string_view kNames[] = {"end", "stop_string", "length", "cancelled", "failed"};
  return kNames[static_cast<size_t>(finish)];
}

Request::Request(Terms terms, std::vector<int32_t> prompt, Generation how, OnToken on_token)
    : terms_(std::move(terms)),
      tokens_(std::move(prompt)),
      how_(std::move(how)),
      on_token_(std::move(on_token)),
      text_(terms_.tokenizer, how_.stops),
      history_(how_.sampling.penalty_tokens),
      start_ns_(now_ns()) {
  result_.n_prompt = std::ssize(tokens_);
  history_.assign(tokens_);
  if (how_.max_tokens == 0 || std::ssize(tokens_) >= terms_.n_ctx) end(Finish::length);
}

void Request::enter(int seq, int64_t n_kept, int64_t n_from_disk) {
  MILLRACE_CHECK(seq_ < 0, "a request that is in sequence {} enters {}", seq_, seq);
  seq_ = seq;
  n_computed_ = n_kept;
  if (has_begun_) return;
  result_.n_cached = std::min(n_kept, result_.n_prompt);
  result_.n_from_disk = std::min(n_from_disk, result_.n_cached);
}

void Request::begin() {
  if (std::exchange(has_begun_, true)) return;
  result_.queue_s = seconds_since(start_ns_);
  start_ns_ = now_ns();
}

int Request::leave() {
  n_computed_ = 0;
  return std::exchange(seq_, -1);
}

std::span<const int32_t> Request::pending() const {
  if (is_finished_) return {};
  return std::span(tokens_).subspan(static_cast<size_t>(n_computed_));
}

void Request::computed(size_t n) {
  n_computed_ += static_cast<int64_t>(n);
}

SampleRow Request::row(int logits_row) {
  return {.logits_row = logits_row,
          .how = how_.sampling,
          .history = history_,
          .position = tokens_.size(),
          .choice = terms_.choice,
          .mask = terms_.rule ? terms_.rule->allowed() : std::span<const uint32_t>()};
}

Status Request::drew(const Sampled& sampled) {
  MILLRACE_CHECK(!is_finished_ && pending().empty(), "sequence {} expects no token", seq_);
  Status status = status_of(sampled, static_cast<uint64_t>(n_computed_));
  if (status.ok() && terms_.rule) status = terms_.rule->took(sampled.token);
  if (!status.ok()) {
    fail();
    return status;
  }
  if (result_.n_tokens == 0) {
    result_.prompt_s = seconds_since(start_ns_);
    start_ns_ = now_ns();
  }
  if (!how_.ignore_end && terms_.tokenizer.is_eog(sampled.token)) {
    end(Finish::end);
    return {};
  }
  const std::string text = add(sampled.token);
  on_token_({text, &sampled, terms_.tokenizer.is_control(sampled.token)});
  end_if_done();
  return {};
}

Status Request::replay(std::span<const int32_t> drawn) {
  for (const int32_t token : drawn) {
    if (is_finished_)
      return error(Code::invalid_argument, "{} tokens were drawn, but its end came after {}",
                   drawn.size(), result_.n_tokens);
    add(token);
    end_if_done();
  }
  return {};
}

// The text that it made certain.
std::string Request::add(int32_t token) {
  ++result_.n_tokens;
  history_.push(token);
  tokens_.push_back(token);
  return text_.push(token);
}

void Request::end_if_done() {
  const bool is_long = how_.max_tokens >= 0 && result_.n_tokens >= how_.max_tokens;
  if (text_.is_stopped())
    end(Finish::stop_string);
  else if (is_long || std::ssize(tokens_) >= terms_.n_ctx)
    end(Finish::length);
}

void Request::cancel() {
  if (!is_finished_) end(Finish::cancelled);
}

void Request::fail() {
  if (!is_finished_) end(Finish::failed);
}

void Request::end(Finish why) {
  is_finished_ = true;
  result_.finish = why;
  result_.stop_string = text_.stop_string();
  (result_.n_tokens == 0 && result_.prompt_s == 0 ? result_.prompt_s : result_.tokens_s) =
      seconds_since(start_ns_);
  const std::string rest = text_.flush();
  on_token_({rest, nullptr, false});
}

}  // namespace millrace
