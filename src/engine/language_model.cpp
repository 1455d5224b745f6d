#include "engine/language_model.h"

#include <algorithm>

namespace millrace {
Result<LanguageModel> LanguageModel::make(Engine& engine, const PickFrom& from) {
  LanguageModel out;
  out.engine_ = &engine;
  MILLRACE_ASSIGN(Tokenizer tokenizer, load_tokenizer(engine.file()));
  MILLRACE_ASSIGN(ChatTemplate chat_template, chat_template_of(engine.file()));
  MILLRACE_ASSIGN(Sampler sampler, Sampler::make(engine.config().n_vocab, from, engine.device()));
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

Status LanguageModel::check(std::span<const int32_t> prompt, const Generation& how) const {
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
  return {};
}

void LanguageModel::gather(std::span<const Turn> turns) {
  batch_.clear();
  rows_.clear();
  drawing_.clear();
  for (const Turn& turn : turns) {
    turn.request->begin();
    const auto pending = turn.request->pending();
    const bool draws = turn.n == pending.size();
    batch_.push_back({.seq = turn.request->seq(),
                      .tokens = pending.first(turn.n),
                      .wants = draws ? Work::Logits::last : Work::Logits::none});
    if (!draws) continue;
    rows_.push_back(turn.request->row(static_cast<int>(rows_.size())));
    drawing_.push_back(turn.request);
  }
}

void LanguageModel::hand_out(std::span<const Turn> turns, const OnFailed& failed) {
  for (const Turn& turn : turns) turn.request->computed(turn.n);
  if (sampled_.size() < rows_.size()) sampled_.resize(rows_.size());
  sampler_->take(std::span(sampled_).first(rows_.size()));
  for (size_t i = 0; i < drawing_.size(); ++i)
    if (const Status status = drawing_[i]->drew(sampled_[i]); !status.ok())
      failed(*drawing_[i], status);
}

Status LanguageModel::advance(std::span<const Turn> turns, const OnFailed& failed) {
  if (turns.empty()) return {};
  gather(turns);
  Program* draw = nullptr;
  if (!rows_.empty()) {
    MILLRACE_ASSIGN(draw, sampler_->gather(engine_->logits_on_device(), rows_));
  }
  MILLRACE_TRY(engine_->step(batch_, draw));
  hand_out(turns, failed);
  return {};
}

Result<Generated> LanguageModel::generate(int seq, std::vector<int32_t> prompt,
                                          const Generation& how, const OnToken& on_token,
                                          const std::atomic<bool>& cancel) {
  MILLRACE_TRY(check(prompt, how));
  const int64_t n_kept = keep_shared(*engine_, seq, prompt);
  Request request({.tokenizer = *tokenizer_, .n_ctx = engine_->n_ctx()}, std::move(prompt), how,
                  on_token);
  request.enter(seq, n_kept);
  const auto max_rows = static_cast<size_t>(engine_->options().max_rows);
  Status failure;
  while (!request.is_finished() && failure.ok()) {
    if (cancel) {
      request.cancel();
      break;
    }
    const Turn turn{&request, std::min(max_rows, request.pending().size())};
    MILLRACE_TRY(advance({&turn, 1}, [&](Request&, const Status& why) { failure = why; }));
  }
  MILLRACE_TRY(failure);
  return request.result();
}

}  // namespace millrace
