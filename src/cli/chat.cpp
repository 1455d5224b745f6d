// millrace chat: a conversation with a model.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <iostream>
#include <iterator>

#include "base/utf8.h"
#include "cli/chat_terminal.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_session.h"
#include "cli/sampling_options.h"
#include "cli/state_file.h"
#include "engine/language_model.h"

namespace millrace::cli {
namespace {

struct Options {
  ModelOptions model;
  Generation how;
  std::string system, prompt;
  bool drop_oldest = false;
};

// Renders, encodes and generates. The sequence keeps its tokens, so a turn computes what is new.
class ModelBackend final : public ChatBackend {
 public:
  static Result<std::unique_ptr<ModelBackend>> make(const ModelOptions& options);
  int64_t n_ctx() const override { return session_->engine().n_ctx(); }
  Result<std::vector<int32_t>> prompt(const nlohmann::ordered_json& messages,
                                      const std::atomic<bool>& stop) override;
  Result<Generated> answer(std::vector<int32_t> prompt, const Generation& how,
                           const std::function<void(std::string_view)>& on_text,
                           const std::atomic<bool>& stop) override;
  const std::string& name() const { return session_->name(); }
  bool has_template() const { return !model_.chat_template().is_builtin(); }

 private:
  ModelBackend(std::unique_ptr<ModelSession> session, LanguageModel model, int seq)
      : session_(std::move(session)), model_(std::move(model)), seq_(seq) {}

  std::unique_ptr<ModelSession> session_;
  LanguageModel model_;
  int seq_;
};

Result<std::unique_ptr<ModelBackend>> ModelBackend::make(const ModelOptions& options) {
  const bool quiet = isatty(STDERR_FILENO) != 1;
  MILLRACE_ASSIGN(auto session, ModelSession::load(options, {.quiet = quiet}));
  MILLRACE_ASSIGN(LanguageModel model, session->language_model());
  MILLRACE_ASSIGN(const int seq, session->engine().open());
  return std::unique_ptr<ModelBackend>(new ModelBackend(std::move(session), std::move(model), seq));
}

Result<std::vector<int32_t>> ModelBackend::prompt(const nlohmann::ordered_json& messages,
                                                  const std::atomic<bool>& stop) {
  ChatInput input;
  input.messages = messages;
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &input.now);
  return model_.prompt(input, &stop);
}

Result<Generated> ModelBackend::answer(std::vector<int32_t> prompt, const Generation& how,
                                       const std::function<void(std::string_view)>& on_text,
                                       const std::atomic<bool>& stop) {
  const auto on_token = [&](const TokenEvent& event) {
    if (!event.text.empty()) on_text(event.text);
  };
  return model_.generate(seq_, std::move(prompt), how, on_token, stop);
}

int talk(Chat& chat, const ModelBackend& backend, const Options& options) {
  if (!options.prompt.empty()) return chat.answer_once(options.prompt);
  if (isatty(STDIN_FILENO) != 1)
    return chat.answer_once(std::string(std::istreambuf_iterator<char>(std::cin), {}));
  LineEditor lines(state_file("chat_history"));
  fmt::print(stderr, "{}, context {} tokens; /help lists commands, Ctrl-D ends\n",
             printable(backend.name()), backend.n_ctx());
  return chat.talk(lines);
}

int chat_command(const Options& options) {
  if (const Status status = validate(options.how.sampling); !status.ok()) return fail(status);
  auto backend = ModelBackend::make(options.model);
  if (!backend.ok()) return fail(backend.status());
  if (!backend.value()->has_template())
    fmt::print(stderr, "millrace: the model has no chat template; using ChatML\n");
  Chat chat(*backend.value(), catch_ctrl_c(), {stdout, stderr, isatty(STDOUT_FILENO) == 1});
  chat.how() = options.how;
  chat.drop_oldest(options.drop_oldest);
  chat.set_system(options.system);
  return talk(chat, *backend.value(), options);
}

}  // namespace

void add_chat(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("chat", "Chat with a model");
  add_model_options(command, options->model);
  command.option("-p,--prompt", options->prompt, "Answer this message and exit");
  command.option("--system", options->system, "System message");
  command
      .option("-n,--n-predict", options->how.max_tokens,
              "Maximum number of tokens in an answer; -1 for no limit but the context")
      .at_least(-1)
      .show_default();
  command.flag("--drop-oldest", options->drop_oldest,
               "When the context is full, drop the oldest turns (never the system message)");
  add_sampling_options(command, options->how);
  command.footer(
      "Piped input is one message: it is answered, and the program exits. At a terminal, /help "
      "lists the commands, Ctrl-C stops an answer and Ctrl-D quits.");
  command.runs([options] { return chat_command(*options); });
}

}  // namespace millrace::cli
