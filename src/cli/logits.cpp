// millrace logits: what a model makes of some tokens, for comparing engines with each other.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_session.h"
#include "cli/npy.h"
#include "engine/sampler.h"

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
  explicit Printer(const Options& options) : options_(options) {}

  void row(size_t position, std::span<const float> logits) {
    const auto top = most_likely(logits, options_.top > 0 ? options_.top : 10);
    if (!options_.json) {
      fmt::print("after token {} ({}):\n", position, options_.tokens[position]);
      for (const auto& t : top) fmt::print("{:>8}  {:9.5f}\n", t.token, t.logprob);
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
  const Options& options_;
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
  if (!options.npy.empty()) return write_npy(options, engine, seq);
  Printer printer(options);
  printer.begin(options.all ? 0 : options.tokens.size() - 1);
  if (options.all) {
    MILLRACE_TRY(compute_all(engine, seq, options.tokens,
                             [&](size_t position, auto logits) { printer.row(position, logits); }));
  } else {
    MILLRACE_TRY(compute(engine, seq, options.tokens));
    MILLRACE_ASSIGN(const auto logits, engine.logits(0));
    printer.row(options.tokens.size() - 1, logits);
  }
  printer.end();
  return {};
}

}  // namespace

void add_logits(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("logits", "Print what a model expects after some tokens");
  add_model_options(command, options->model);
  command.option("--tokens", options->tokens, "Token ids, separated by commas")
      .delimiter(',')
      .required();
  command.flag("--all", options->all, "After every token, not after the last alone");
  command.option("--top", options->top, "The most likely tokens alone, this many").range(1, 1000);
  command.option("--npy", options->npy,
                 "Write every logit after every token to this file, for numpy.load");
  command.flag("--json", options->json, "Print JSON, with every logit unless --top is given");
  command.runs([options] {
    const Status status = print_logits(*options);
    return status.ok() ? 0 : fail(status);
  });
}

}  // namespace millrace::cli
