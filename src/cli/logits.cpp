// millrace logits: what a model makes of some tokens, for comparing engines with each other.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/model_session.h"
#include "cli/npy.h"
#include "engine/sampler.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::cli {
namespace {

struct Options {
  ModelOptions model;
  std::vector<int32_t> tokens;
  int top = 0;
  std::string npy;
  bool json = false, all = false;
};

class Printer {
 public:
  // Without a tokenizer (a file may have none) tokens are shown by their ids alone.
  Printer(const Options& options, const Tokenizer* tokenizer)
      : options_(options), tokenizer_(tokenizer) {}

  void row(size_t position, std::span<const float> logits) {
    const auto top = most_likely(logits, options_.top > 0 ? options_.top : 10);
    if (!options_.json) {
      fmt::print("after token {} ({}{}):\n", position, options_.tokens[position],
                 text_of(options_.tokens[position]));
      for (const auto& t : top)
        fmt::print("{:>8}  {:9.5f} {}\n", t.token, t.logprob, text_of(t.token));
      return;
    }
    nlohmann::json row = {{"position", position}, {"token", options_.tokens[position]}};
    if (options_.top == 0) row["logits"] = logits;
    for (const auto& t : top) row["top"].push_back({{"token", t.token}, {"logprob", t.logprob}});
    fmt::print("{}{}", position == first_ ? "[" : ",\n ", row.dump());
  }
  void begin(size_t first) { first_ = first; }
  void end() {
    if (options_.json) fmt::print("]\n");
  }

 private:
  std::string text_of(int32_t token) const {
    return tokenizer_ == nullptr ? "" : fmt::format(" '{}'", printable(tokenizer_->piece(token)));
  }

  const Options& options_;
  const Tokenizer* tokenizer_;
  size_t first_ = 0;
};

// The logits after every token, as a matrix.
Status write_npy(const Options& options, Engine& engine, int seq) {
  MILLRACE_ASSIGN(NpyWriter out, NpyWriter::make(options.npy, std::ssize(options.tokens),
                                                 engine.config().n_vocab));
  Status written;
  MILLRACE_TRY(compute_all(engine, seq, options.tokens, [&](size_t, std::span<const float> logits) {
    if (written.ok()) written = out.row(logits);
  }));
  MILLRACE_TRY(written);
  return out.finish();
}

Status print_logits(const Options& options) {
  ModelOptions model = options.model;
  if (model.n_ctx == 0) model.n_ctx = static_cast<int64_t>(options.tokens.size());
  MILLRACE_ASSIGN(auto session, ModelSession::load(model, {.max_outputs = 64}));
  Engine& engine = session->engine();
  MILLRACE_ASSIGN(const int seq, engine.open());
  fmt::print(stderr, "millrace: numerics {}\n", engine.fingerprint());
  if (!options.npy.empty()) return write_npy(options, engine, seq);
  const auto tokenizer = load_tokenizer(engine.file());
  Printer printer(options, tokenizer.ok() ? &tokenizer.value() : nullptr);
  printer.begin(options.all ? 0 : options.tokens.size() - 1);
  if (options.all) {
    MILLRACE_TRY(compute_all(engine, seq, options.tokens,
                             [&](size_t position, auto logits) { printer.row(position, logits); }));
  } else {
    MILLRACE_TRY(compute(engine, seq, options.tokens));
    MILLRACE_ASSIGN(const auto logits, engine.logits(0));
    MILLRACE_TRY(check_finite(logits, std::ssize(options.tokens) - 1));
    printer.row(options.tokens.size() - 1, logits);
  }
  printer.end();
  return {};
}

}  // namespace

void add_logits(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("logits", "Print a model's next-token logits after some tokens");
  add_model_options(command, options->model);
  command.option("--tokens", options->tokens, "Token ids, separated by commas")
      .type_name("IDS")
      .delimiter(',')
      .required();
  command.flag("--all", options->all, "After every token, not only the last");
  command
      .option("--top", options->top,
              "Print only the N most likely tokens (without --json: 10 by default)")
      .range(1, 1000);
  command
      .option("--npy", options->npy,
              "Write every logit after every token to this file, for numpy.load")
      .type_name("FILE");
  command.flag("--json", options->json,
               "Print JSON: every logit, or with --top only the most likely tokens");
  command.runs([options] {
    const Status status = print_logits(*options);
    return status.ok() ? 0 : fail(status);
  });
}

}  // namespace millrace::cli
