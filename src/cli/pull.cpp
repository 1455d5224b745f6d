// millrace pull: downloads a model into our own cache.
#include "cli/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "hub/catalog.h"

namespace millrace::cli {
namespace {

struct Options {
  std::string model{kDefaultModel};
  int n_tries = 5;
  bool json = false;
};

void print(const Pulled& pulled, bool json) {
  if (json) {
    const nlohmann::ordered_json document = {{"name", pulled.name},
                                             {"path", pulled.path},
                                             {"bytes", pulled.bytes},
                                             {"was_there", pulled.was_there}};
    print_json(document);
    return;
  }
  fmt::print("{} {} ({}): {}\n", pulled.name,
             pulled.was_there ? "is already on this machine" : "downloaded",
             size_text(pulled.bytes), pulled.path);
}

std::string share_text(std::string_view what, uint64_t done, uint64_t total) {
  if (total == 0) return std::string(what);
  return fmt::format("{} of {}, {}", size_text(done), size_text(total), what);
}

int run_pull(const Options& options) {
  PullWatch watch;
  watch.n_tries = options.n_tries;
  const auto pulled = pull_model(options.model, watch);
  if (!pulled.ok()) return fail(pulled.status());
  print(pulled.value(), options.json);
  return 0;
}

}  // namespace

Result<Pulled> pull_model(std::string_view what, PullWatch watch) {
  const std::atomic<bool>& interrupted = catch_interrupts();
  Progress progress(fmt::format("downloading {}", what));
  watch.stopped = [&] { return interrupted.load(); };
  watch.progress = [&](std::string_view part, uint64_t done, uint64_t total) {
    const double share = total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
    progress.at(std::min(share, 1.0), share_text(part, done, total));
  };
  return pull(what, process_environment(), watch);
}

void add_pull(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("pull", "Download a model");
  command
      .option("model", options->model, "smollm2-135m, or hf:OWNER/REPO[:QUANT] from Hugging Face")
      .type_name("MODEL")
      .show_default();
  command.option("--tries", options->n_tries, "How often to try each request")
      .range(1, 100)
      .show_default();
  command.flag("--json", options->json, "Print JSON");
  command.footer(
      "Models are stored in $XDG_CACHE_HOME/millrace/models (~/.cache/millrace/models). An "
      "interrupted download continues with the next pull. QUANT selects a GGUF file of the "
      "repository (default: Q4_K_M, or the only file); of a repository with safetensors, all files "
      "are downloaded. HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as in other tools.");
  command.runs([options] { return run_pull(*options); });
}

}  // namespace millrace::cli
