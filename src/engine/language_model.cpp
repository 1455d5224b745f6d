#include "engine/language_model.h"

#include <algorithm>

namespace millrace {

Result<LanguageModel> LanguageModel::make(Engine& engine, Team& team, const PickFrom& from) {
  LanguageModel out;
  out.engine_ = &engine;
  out.team_ = &team;
  MILLRACE_ASSIGN(Tokenizer tokenizer, load_tokenizer(engine.file()));
  MILLRACE_ASSIGN(ChatTemplate chat_template, chat_template_of(engine.file()));
  const PickFrom on_cpu{from.machine, from.profile, from.force, DeviceKind::cpu};
  MILLRACE_ASSIGN(Sampler sampler, Sampler::make(engine.config().n_vocab, on_cpu));
  out.tokenizer_ = std::make_unique<Tokenizer>(std::move(tokenizer));
  out.template_ = std::make_unique<ChatTemplate>(std::move(chat_template));
  out.sampler_ = std::make_unique<Sampler>(std::move(sampler));
  return out;
}

Result<std::vector<int32_t>> LanguageModel::prompt(const ChatInput& input,
                                                   const std::atomic<bool>* stop) const {
  MILLRACE_ASSIGN(const auto rendered, template_->render(input, stop));
  std::vector<TextPart> parts;
  for (const auto& piece : rendered.pieces) parts.push_back({piece.text, piece.from_template});
  return tokenizer_->encode(parts);
}

Result<std::unique_ptr<Request>> LanguageModel::request(int seq, std::vector<int32_t> prompt,
                                                        Generation how, OnToken on_token) {
  const Config& config = engine_->config();
  MILLRACE_TRY(validate(how.sampling, config.n_vocab));
  if (prompt.empty()) return error(Code::invalid_argument, "the prompt is empty");
  if (std::ssize(prompt) > engine_->n_ctx())
    return error(Code::invalid_argument,
                 "the prompt of {} tokens does not fit the context of {}; -c N sets a larger one",
                 prompt.size(), engine_->n_ctx());
  for (const int32_t token : prompt)
    if (token < 0 || token >= config.n_vocab)
      return error(Code::invalid_argument, "token {} is outside the vocabulary of {}", token,
                   config.n_vocab);
  const Request::Place place{.tokenizer = *tokenizer_,
                             .seq = seq,
                             .n_kept = keep_shared(*engine_, seq, prompt),
                             .n_ctx = engine_->n_ctx()};
  return std::make_unique<Request>(place, std::move(prompt), std::move(how), std::move(on_token));
}

// Those that decode first: a long prompt never makes them wait for more than its share of a step.
void LanguageModel::plan(std::span<Request* const> requests) {
  batch_.clear();
  of_.clear();
  auto n_rows = static_cast<size_t>(engine_->options().max_rows);
  auto n_outputs = static_cast<size_t>(engine_->options().max_outputs);
  for (const bool decoding : {true, false})
    for (Request* request : requests) {
      if (request->is_finished() || request->is_decoding() != decoding) continue;
      const auto pending = request->pending();
      const size_t n = std::min(n_rows, pending.size());
      const bool reaches_end = n == pending.size();
      if (n == 0 || (reaches_end && n_outputs == 0)) continue;
      batch_.push_back({.seq = request->seq(),
                        .tokens = pending.first(n),
                        .wants = reaches_end ? Work::Logits::last : Work::Logits::none});
      of_.push_back(request);
      n_rows -= n;
      n_outputs -= reaches_end;
    }
}

Status LanguageModel::draw(const OnFailed& failed) {
  rows_.clear();
  drawing_.clear();
  for (size_t i = 0; i < batch_.size(); ++i) {
    of_[i]->computed(batch_[i].tokens.size());
    if (batch_[i].wants == Work::Logits::none) continue;
    MILLRACE_ASSIGN(const auto logits, engine_->logits(i));
    rows_.push_back(of_[i]->row(logits));
    drawing_.push_back(of_[i]);
  }
  if (rows_.empty()) return {};
  if (sampled_.size() < rows_.size()) sampled_.resize(rows_.size());
  const Status drawn = sampler_->sample(*team_, rows_, std::span(sampled_).first(rows_.size()));
  for (size_t i = 0; i < drawing_.size() && !drawn.ok(); ++i) drawing_[i]->fail();
  MILLRACE_TRY(drawn);
  for (size_t i = 0; i < drawing_.size(); ++i)
    if (const Status status = drawing_[i]->drew(sampled_[i]); !status.ok())
      failed(*drawing_[i], status);
  return {};
}

Status LanguageModel::advance(std::span<Request* const> requests, const OnFailed& failed) {
  plan(requests);
  if (batch_.empty()) return {};
  MILLRACE_TRY(engine_->step(batch_));
  return draw(failed);
}

Result<Generated> LanguageModel::generate(int seq, std::vector<int32_t> prompt,
                                          const Generation& how, const OnToken& on_token,
                                          const std::atomic<bool>& cancel) {
  MILLRACE_ASSIGN(const auto one, request(seq, std::move(prompt), how, on_token));
  Request* const alone = one.get();
  Status failure;
  while (!alone->is_finished() && failure.ok()) {
    if (cancel)
      alone->cancel();
    else
      MILLRACE_TRY(advance({&alone, 1}, [&](Request&, const Status& why) { failure = why; }));
  }
  MILLRACE_TRY(failure);
  return alone->result();
}

}  // namespace millrace
