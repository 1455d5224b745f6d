#include "cli/model_session.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/progress.h"
#include "cli/open_model.h"
#include "machine/find_host.h"
#include "model/config.h"
#include "tensor/format.h"

namespace millrace::cli {
namespace {

int64_t context_of(const ModelOptions& options, const Config& config) {
  return options.n_ctx > 0 ? options.n_ctx : std::min(config.n_ctx, kDefaultContext);
}

// Outputs of 64 rows stay in the second-level cache between the kernels. Of experts each has some
// of the rows only: with more of them its weights serve more rows (Qwen3-30B-A3B's shapes, four
// layers, prompts of 512: 913 tok/s with 64 rows, 1055 with 128, 1201 with 256, 1218 with 512).
int64_t batch_of(const ModelOptions& options, const Config& config) {
  if (options.n_batch > 0) return options.n_batch;
  return config.n_experts > 0 ? 256 : 64;
}

EngineOptions engine_options(const ModelOptions& options, const ModelSession::Needs& needs,
                             const Config& config) {
  const int64_t n_ctx = context_of(options, config);
  return {.n_ctx = n_ctx,
          .max_seqs = needs.max_seqs,
          .max_rows = std::min(batch_of(options, config), n_ctx * needs.max_seqs),
          .max_outputs = needs.max_outputs,
          .kv_type = *dtype_named(options.kv_type)};
}

}  // namespace

void add_model_options(Command& command, ModelOptions& options, bool positional) {
  add_model_name(command, options.model, positional);
  command.option("-t,--threads", options.threads, "Lanes; as many as there are CPUs by default")
      .range(1, 1024);
  command
      .option("-c,--ctx-size", options.n_ctx,
              "Tokens of context; the model's own, at most 4096, by default")
      .range(1, 1 << 24);
  command.option("-b,--batch-size", options.n_batch, kBatchHelp).range(1, 8192);
  command.option("--kv-type", options.kv_type, "What K and V are kept in: f16, bf16 or f32")
      .one_of({"f16", "bf16", "f32"})
      .show_default();
}

Result<std::unique_ptr<ModelSession>> ModelSession::load(const ModelOptions& options,
                                                         const Needs& needs) {
  const int64_t start_ns = now_ns();
  std::unique_ptr<ModelSession> session(new ModelSession());
  session->machine_ = find_host();
  MILLRACE_ASSIGN(session->force_, Force::from_environment());
  MILLRACE_ASSIGN(ModelFile file, open_model(options.model));
  MILLRACE_ASSIGN(const Config config, read_config(file));
  const int threads = options.threads > 0 ? options.threads : session->machine_.n_cpus;
  const std::string name = std::filesystem::path(file.path()).filename();
  session->team_ = std::make_unique<Team>(threads, session->machine_.cpus);
  Progress progress("loading");
  const auto show = [&](size_t done, size_t total) {
    const double share =
        static_cast<double>(done) / static_cast<double>(std::max<size_t>(total, 1));
    if (!needs.quiet) progress.at(share, name);
  };
  MILLRACE_ASSIGN(session->engine_,
                  Engine::load(std::move(file), *session->team_, session->pick_from(),
                               engine_options(options, needs, config), show));
  progress.clear();
  session->load_seconds_ = static_cast<double>(now_ns() - start_ns) * 1e-9;
  return session;
}

}  // namespace millrace::cli
