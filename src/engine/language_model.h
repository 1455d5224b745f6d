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
  // Both must outlive it.
  static Result<LanguageModel> make(Engine& engine, const PickFrom& from);

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatTemplate& chat_template() const { return *template_; }
  std::string template_source() const { return engine_->file().chat_template(); }
  int64_t n_vocab() const { return engine_->config().n_vocab; }

  // A conversation as the model reads it; ends with Code::cancelled once `stop` is set.
  Result<std::vector<int32_t>> prompt(const ChatInput& input,
                                      const std::atomic<bool>* stop = nullptr) const;

  // What can be answered: fits the context, and asks for nothing that cannot be.
  Status check(std::span<const int32_t> prompt, const Generation& how) const;

  // How many of a request's pending tokens the next step computes.
  struct Turn {
    Request* request;
    size_t n;
  };
  // One step. Those that then have nothing pending draw. A step that fails changes nothing; a
  // request that nothing can be drawn for is given to `failed` and goes on no more.
  using OnFailed = std::function<void(Request& request, const Status& why)>;
  Status advance(std::span<const Turn> turns, const OnFailed& failed);

  // All of one request, in a sequence that keeps what it shares with the prompt.
  Result<Generated> generate(int seq, std::vector<int32_t> prompt, const Generation& how,
                             const OnToken& on_token, const std::atomic<bool>& cancel);

 private:
  void gather(std::span<const Turn> turns);
  void hand_out(std::span<const Turn> turns, const OnFailed& failed);

  Engine* engine_ = nullptr;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Sampler> sampler_;
  // Of the step that is made, kept for the next.
  std::vector<Work> batch_;
  std::vector<Request*> drawing_;  // those that draw
  std::vector<SampleRow> rows_;
  std::vector<Sampled> sampled_;
};

}  // namespace millrace
