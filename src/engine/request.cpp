#include "engine/request.h"

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

Request::Request(const Place& place, std::vector<int32_t> prompt, Generation how, OnToken on_token)
    : place_(place),
      prompt_(std::move(prompt)),
      how_(std::move(how)),
      on_token_(std::move(on_token)),
      text_(place.tokenizer, how_.stops),
      history_(how_.sampling.penalty_tokens),
      n_computed_(place.n_kept),
      start_ns_(now_ns()) {
  result_.n_prompt = std::ssize(prompt_);
  result_.n_cached = place.n_kept;
  history_.assign(prompt_);
  if (how_.max_tokens == 0 || n_tokens() >= place_.n_ctx) end(Finish::length);
}

std::span<const int32_t> Request::pending() const {
  if (is_finished_) return {};
  if (!is_decoding()) return std::span(prompt_).subspan(static_cast<size_t>(n_computed_));
  return drawn_ < 0 ? std::span<const int32_t>() : std::span(&drawn_, 1);
}

void Request::computed(size_t n) {
  if (is_decoding()) drawn_ = -1;
  n_computed_ += static_cast<int64_t>(n);
}

SampleRow Request::row(std::span<const float> logits) const {
  return {.logits = logits,
          .how = how_.sampling,
          .history = history_,
          .position = static_cast<uint64_t>(n_computed_)};
}

Status Request::drew(const Sampled& sampled) {
  MILLRACE_CHECK(!is_finished_ && pending().empty(), "sequence {} expects no token", place_.seq);
  if (Status status = status_of(sampled, static_cast<uint64_t>(n_computed_)); !status.ok()) {
    fail();
    return status;
  }
  if (result_.n_tokens == 0) {
    result_.prompt_s = seconds_since(start_ns_);
    start_ns_ = now_ns();
  }
  if (!how_.ignore_end && place_.tokenizer.is_eog(sampled.token)) {
    end(Finish::end);
    return {};
  }
  ++result_.n_tokens;
  history_.push(sampled.token);
  const std::string text = text_.push(sampled.token);
  on_token_({text, &sampled, place_.tokenizer.is_control(sampled.token)});
  drawn_ = sampled.token;
  const bool is_long = how_.max_tokens >= 0 && result_.n_tokens >= how_.max_tokens;
  if (text_.is_stopped())
    end(Finish::stop_string);
  else if (is_long || n_tokens() >= place_.n_ctx)
    end(Finish::length);
  return {};
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
  (result_.n_tokens == 0 && result_.prompt_s == 0 ? result_.prompt_s : result_.tokens_s) =
      seconds_since(start_ns_);
  const std::string rest = text_.flush();
  on_token_({rest, nullptr, false});
}

}  // namespace millrace
