// millrace run: a prompt continued, token by token, on standard output.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_session.h"
#include "cli/sampling_options.h"
#include "cli/terminal_text.h"
#include "engine/language_model.h"
#include "files/json.h"

namespace millrace::cli {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;

struct Options {
  ModelOptions model;
  Generation generation;
  std::string prompt, file;
  bool special = false, json = false, no_echo = false, stats = false;
};

// The prompt given, a file's, or all of standard input.
Result<std::string> prompt_of(const Options& options) {
  if (!options.file.empty()) return read_text_file(options.file, kMaxText);
  if (!options.prompt.empty()) return options.prompt;
  if (isatty(STDIN_FILENO) != 0)
    return error(Code::invalid_argument, "no prompt: give one with -p or -f, or pipe one in");
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

nlohmann::json to_json(const Sampled& sampled, const Tokenizer& tokenizer) {
  const auto text_of = [&](int32_t token) { return std::string(tokenizer.piece(token)); };
  nlohmann::json out = {{"token", sampled.token}, {"text", text_of(sampled.token)}};
  if (sampled.most_likely.empty()) return out;
  out["logprob"] = sampled.logprob;
  for (const TokenLogprob& t : sampled.most_likely)
    out["top"].push_back({{"token", t.token}, {"text", text_of(t.token)}, {"logprob", t.logprob}});
  return out;
}

void print_stats(const Generated& g) {
  fmt::print(
      stderr,
      "\nprompt: {} tokens in {:.2f} s ({:.1f} tok/s); answer: {} tokens in {:.2f} s ({:.1f} "
      "tok/s), ended by: {}\n",
      g.n_prompt, g.prompt_s, static_cast<double>(g.n_prompt) / g.prompt_s, g.n_tokens, g.tokens_s,
      static_cast<double>(g.n_tokens) / g.tokens_s, name_of(g.finish));
}

struct Output {
  std::string text;
  nlohmann::json tokens = nlohmann::json::array();
};

Result<Generated> run(const Options& options, LanguageModel& model, Output& output) {
  MILLRACE_ASSIGN(const std::string prompt, prompt_of(options));
  const TextPart part{prompt, options.special};
  MILLRACE_ASSIGN(std::vector<int32_t> tokens, model.tokenizer().encode({&part, 1}, true));
  MILLRACE_ASSIGN(const int seq, model.engine().open());
  if (!options.json && !options.no_echo) print_text(stdout, prompt);
  const auto on_token = [&](const TokenEvent& event) {
    if (!options.json) return print_text(stdout, event.text);
    output.text += event.text;
    if (event.token != nullptr) output.tokens.push_back(to_json(*event.token, model.tokenizer()));
  };
  return model.generate(seq, std::move(tokens), options.generation, on_token, catch_interrupts());
}

int run_command(const Options& options) {
  if (const Status status = validate(options.generation.sampling); !status.ok())
    return fail(status);
  auto session = ModelSession::load(options.model, {.quiet = options.json});
  if (!session.ok()) return fail(session.status());
  auto model = session.value()->language_model();
  if (!model.ok()) return fail(model.status());
  Output output;
  auto generated = run(options, model.value(), output);
  if (!generated.ok()) return fail(generated.status());
  const Generated& g = generated.value();
  if (options.json) {
    const nlohmann::json out = {{"text", output.text},
                                {"tokens", output.tokens},
                                {"finish", name_of(g.finish)},
                                {"prompt_tokens", g.n_prompt},
                                {"prompt_seconds", g.prompt_s},
                                {"seconds", g.tokens_s},
                                {"fingerprint", session.value()->engine().fingerprint()}};
    print_json(out);
  } else {
    fmt::print("\n");
    if (g.finish == Finish::length && g.n_prompt + g.n_tokens >= session.value()->engine().n_ctx())
      fmt::print(stderr, "millrace: the context of {} tokens is full; -c N sets a larger one\n",
                 session.value()->engine().n_ctx());
  }
  if (options.stats) print_stats(g);
  return g.finish == Finish::cancelled ? kInterrupted : 0;
}

}  // namespace

void add_run(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("run", "Continue a prompt");
  add_model_options(command, options->model);
  const Option prompt =
      command.option("-p,--prompt", options->prompt,
                     "Text to continue (default: standard input, if it is a pipe)");
  command.option("-f,--file", options->file, "File with the text to continue")
      .type_name("FILE")
      .excludes(prompt);
  command
      .option("-n,--n-predict", options->generation.max_tokens,
              "Maximum number of tokens to generate; -1 for no limit but the context")
      .at_least(-1)
      .show_default();
  add_sampling_options(command, options->generation);
  command.flag("--ignore-eos", options->generation.ignore_end,
               "Continue past the end-of-text token");
  command.flag("--special", options->special,
               "Read control tokens in the prompt, such as <|im_start|>, as tokens, not as text");
  command
      .option("--logprobs", options->generation.sampling.n_logprobs,
              "With --json: the log-probabilities of the N most likely tokens at each position")
      .range(0, 100);
  command.flag("--no-display-prompt", options->no_echo,
               "Print only the continuation, without the prompt");
  command.flag("--stats", options->stats, "Print token counts and speed on stderr");
  command.flag("--json", options->json, "Print JSON at the end");
  command.runs([options] { return run_command(*options); });
}

}  // namespace millrace::cli
