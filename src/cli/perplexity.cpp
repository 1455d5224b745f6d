// millrace perplexity: how well a model expects a text, window by window, each from an empty
// context.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/model_session.h"
#include "cli/open_model.h"
#include "engine/sampler.h"
#include "files/json.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::cli {
namespace {

constexpr size_t kMaxText = size_t{1} << 30;

struct Options {
  ModelOptions model;
  std::vector<std::string> arguments;  // [MODEL] FILE
  int64_t window = 512;
  bool json = false;
};

struct Sum {
  double logprob = 0;
  int64_t n_tokens = 0;
  std::string fingerprint = {};  // of the numerics

  double perplexity() const { return std::exp(-logprob / static_cast<double>(n_tokens)); }
};

// Every token of the window after its first is one that was expected.
Status add_window(Engine& engine, std::vector<int32_t> tokens, Sum& sum) {
  MILLRACE_ASSIGN(const int seq, engine.open());
  MILLRACE_TRY(compute_all(engine, seq, tokens, [&](size_t at, std::span<const float> logits) {
    if (at + 1 == tokens.size()) return;
    sum.logprob += logits[static_cast<size_t>(tokens[at + 1])] - log_sum_exp(logits);
    ++sum.n_tokens;
  }));
  engine.close(seq);
  return {};
}

Result<Sum> measure(Options& options) {
  ModelOptions& model = options.model;
  MILLRACE_TRY(take_model(model.model, options.arguments, 1, 1));
  const std::string& file = options.arguments[0];
  model.n_ctx = options.window;
  MILLRACE_ASSIGN(const std::string text, read_text_file(file, kMaxText));
  MILLRACE_ASSIGN(auto session,
                  ModelSession::load(model, {.max_outputs = 64, .quiet = options.json}));
  MILLRACE_ASSIGN(const Tokenizer tokenizer, open_tokenizer(session->engine().file()));
  MILLRACE_ASSIGN(const std::vector<int32_t> tokens, tokenizer.encode(text, true));
  if (tokens.size() < 2)
    return error(Code::invalid_argument,
                 "{}: the text has {} tokens, and perplexity needs at least 2", file,
                 tokens.size());
  Progress progress("perplexity");
  Sum sum{.fingerprint = session->engine().fingerprint()};
  const auto step = static_cast<size_t>(options.window);
  for (size_t first = 0; first + 1 < tokens.size(); first += step) {
    const size_t end = std::min(first + step, tokens.size());
    MILLRACE_TRY(add_window(session->engine(),
                            {tokens.begin() + static_cast<ptrdiff_t>(first),
                             tokens.begin() + static_cast<ptrdiff_t>(end)},
                            sum));
    if (!options.json)
      progress.at(static_cast<double>(end) / static_cast<double>(tokens.size()),
                  fmt::format("{:.4f}", sum.perplexity()));
  }
  return sum;
}

int run_perplexity(Options& options) {
  auto sum = measure(options);
  if (!sum.ok()) return fail(sum.status());
  const double perplexity = sum.value().perplexity();
  if (options.json)
    print_json(nlohmann::json{{"perplexity", perplexity},
                              {"tokens", sum.value().n_tokens},
                              {"fingerprint", sum.value().fingerprint}});
  else
    fmt::print("perplexity {:.4f} over {} tokens\n", perplexity, sum.value().n_tokens);
  return 0;
}

}  // namespace

void add_perplexity(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("perplexity", "Measure a model's perplexity on a text");
  add_model_options(command, options->model, /*positional=*/false);
  command.option("FILE", options->arguments, "Model (unless -m names it) and text file")
      .required()
      .type_name("[MODEL] FILE");
  command
      .option("--window", options->window,
              "Window length in tokens; each window starts with an empty context")
      .range(2, 1 << 20)
      .show_default();
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { return run_perplexity(*options); });
}

}  // namespace millrace::cli
