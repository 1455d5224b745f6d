// millrace quantize: a model as GGUF, with its weights in another type.
#include <fmt/format.h>

#include <filesystem>

#include "base/progress.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "machine/machine.h"
#include "model/quantize.h"
#include "tensor/format.h"

namespace millrace::cli {
namespace {

struct Options {
  std::string in, out, type;
  int n_threads = 0;
};

void print_report(const QuantizeReport& report, const Options& options) {
  constexpr double kMib = 1 << 20;
  fmt::print("{}: {:.1f} MiB of tensors, from {:.1f} MiB\n", options.out,
             static_cast<double>(report.bytes_out) / kMib,
             static_cast<double>(report.bytes_in) / kMib);
  for (const auto& [type, n] : report.n_tensors)
    fmt::print("  {:<7} {} tensors\n", name_of(type), n);
  if (!report.has_tokenizer)
    fmt::print(stderr, "millrace: note: {} has no tokenizer, so the new file has none\n",
               options.in);
  if (report.n_fallbacks > 0)
    fmt::print(
        stderr,
        "millrace: note: the rows of {} tensors do not divide into {} blocks, so these tensors got "
        "another type\n",
        report.n_fallbacks, options.type);
  if (report.n_requantised > 0)
    fmt::print(stderr,
               "millrace: note: {} tensors were already quantised; a file made from the original "
               "weights is better\n",
               report.n_requantised);
}

int run_quantize(const Options& options) {
  const auto type = quant_type_named(options.type);
  if (!type.ok()) return fail(type.status());
  const auto in = open_model(options.in);
  if (!in.ok()) return fail(in.status());
  std::error_code ignored;
  if (std::filesystem::equivalent(in.value().path(), options.out, ignored))
    return fail(error(Code::invalid_argument, "{} cannot be input and output at the same time",
                      options.in));
  Result<QuantizeReport> report = error(Code::cancelled, "interrupted");
  {
    Progress progress("quantize");
    StreamOptions stream;
    stream.n_threads = options.n_threads > 0 ? options.n_threads : find_machine().n_cpus;
    stream.progress = [&](double share, std::string_view what) { progress.at(share, what); };
    stream.stop = &catch_interrupts();
    report = quantize_model(in.value(), options.out, type.value(), stream);
  }
  if (report.status().code() == Code::cancelled) return kInterrupted;
  if (!report.ok()) return fail(report.status());
  print_report(report.value(), options);
  return 0;
}

}  // namespace

void add_quantize(App& app) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add("quantize", "Convert a model to GGUF, with its weights in another type");
  command
      .option("IN", options->in,
              "A .gguf file (the first of a split model), a directory of safetensors, or a model's "
              "name")
      .required();
  command.option("OUT", options->out, "The .gguf file to write").required();
  command.option("TYPE", options->type, fmt::format("One of {}", quant_type_names())).required();
  command.option("-t,--threads", options->n_threads, "Number of threads (default: one per CPU)")
      .range(1, 1024);
  command.footer(
      "A tensor whose rows do not divide into the type's blocks gets another type, as in "
      "llama.cpp; norms and biases stay exact. A directory's config.json, tokenizer.json and chat "
      "template become the file's metadata.");
  command.runs([options] { return run_quantize(*options); });
}

}  // namespace millrace::cli
