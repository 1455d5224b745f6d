// millrace make-model: a model of a real one's exact shapes, with random weights.
#include <fmt/format.h>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "machine/machine.h"
#include "model/make_model.h"

namespace millrace::cli {
namespace {

struct Options {
  std::string arch, out, type = "q4_0";
  int64_t n_layers = 0;
  uint64_t seed = 0;
  int n_threads = 0;
};

int run_make_model(const Options& options) {
  auto shape = model_shape_named(options.arch);
  if (!shape.ok()) return fail(shape.status());
  const auto type = quant_type_named(options.type);
  if (!type.ok()) return fail(type.status());
  if (options.n_layers > 0) shape->n_layers = options.n_layers;
  Result<MadeModel> made = error(Code::cancelled, "interrupted");
  {
    Progress progress("make-model");
    MakeModelOptions make{type.value(), options.seed, {}};
    make.stream.n_threads = options.n_threads > 0 ? options.n_threads : find_machine().n_cpus;
    make.stream.progress = [&](double share, std::string_view what) { progress.at(share, what); };
    make.stream.stop = &catch_interrupts();
    made = make_model(shape.value(), options.out, make);
  }
  if (made.status().code() == Code::cancelled) return kInterrupted;
  if (!made.ok()) return fail(made.status());
  fmt::print("{}: {:.1f} million random parameters in {:.1f} MiB of {}\n", options.out,
             static_cast<double>(made->n_parameters) * 1e-6,
             static_cast<double>(made->tensor_bytes) / (1 << 20), type.value().name);
  return 0;
}

}  // namespace

void add_make_model(App& app) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add("make-model", "Write a model with the exact shapes of a real one and random weights");
  command.option("ARCH", options->arch, fmt::format("One of {}", model_shape_names())).required();
  command.option("OUT", options->out, "The .gguf file to write").required();
  command
      .option("--type", options->type,
              fmt::format("Type of the weights: {} (default: q4_0)", quant_type_names()))
      .type_name("TYPE");
  command.option("--layers", options->n_layers, "Number of layers (default: all)").range(1, 1024);
  command.option("--random-seed", options->seed,
                 "Random seed: the same seed gives the same file (default: 0)");
  command.option("-t,--threads", options->n_threads, "Number of threads (default: one per CPU)")
      .range(1, 1024);
  command.footer(
      "For measuring speed where real weights cannot be downloaded: such a model runs, but what it "
      "says is meaningless. Its vocabulary has the size of the real one, not its words.");
  command.runs([options] { return run_make_model(*options); });
}

}  // namespace millrace::cli
