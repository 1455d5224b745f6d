// A model that can be talked to: tokenizer, chat template, sampler and engine, put together in one
// place. advance() drives any number of requests by one step.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "kernels/pick.h"
#include "text/template/model_template.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {

class LanguageModel {
 public:
  // All must outlive it. The lanes of `team` sample.
  static Result<LanguageModel> make(Engine& engine, Team& team, const PickFrom& from);

  Engine& engine() { return *engine_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatTemplate& chat_template() const { return *template_; }

  // A conversation as the model reads it; ends with Code::cancelled once `stop` is set.
  Result<std::vector<int32_t>> prompt(const ChatInput& input,
                                      const std::atomic<bool>* stop = nullptr) const;

  // A request on an open sequence, which keeps what it shares with the prompt.
  Result<std::unique_ptr<Request>> request(int seq, std::vector<int32_t> prompt, Generation how,
                                           OnToken on_token);

  // One step: every request that decodes gets its token; what rows are left go to prompts, in
  // order. Those that then have nothing pending draw. A step that fails changes nothing; a request
  // that nothing can be drawn for is given to `failed` and goes on no more.
  using OnFailed = std::function<void(Request& request, const Status& why)>;
  Status advance(std::span<Request* const> requests, const OnFailed& failed);

  // All of one request.
  Result<Generated> generate(int seq, std::vector<int32_t> prompt, const Generation& how,
                             const OnToken& on_token, const std::atomic<bool>& cancel);

 private:
  void plan(std::span<Request* const> requests);
  Status draw(const OnFailed& failed);

  Engine* engine_ = nullptr;
  Team* team_ = nullptr;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Sampler> sampler_;
  // Of the step that is made, kept for the next.
  std::vector<Work> batch_;
  std::vector<Request*> of_;       // whose each work is
  std::vector<Request*> drawing_;  // those with logits
  std::vector<SampleRow> rows_;
  std::vector<Sampled> sampled_;
};

}  // namespace millrace
