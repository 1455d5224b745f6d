// millrace accuracy: what running a model as it is run costs against f32 activations of the same
// weights, text by text. The measurement is lab/accuracy.h's; here are the engines it needs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/progress.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_session.h"
#include "cli/open_model.h"
#include "cli/recorder.h"
#include "cli/temp_folder.h"
#include "files/json.h"
#include "lab/accuracy.h"
#include "model/quantize.h"
#include "tensor/format.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxText = size_t{1} << 30;

struct Options {
  ModelOptions model;
  std::vector<std::string> texts;  // files; none: those of the program
  int64_t n_tokens = 1024, window = 512;
  bool json = false;
  Recording recording;
};

bool is_quantised(const ModelFile& file) {
  const auto tensors = file.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const TensorView& t) { return is_block_format(t.type); });
}

size_t f32_bytes(const ModelFile& file) {
  size_t n = 0;
  for (const TensorView& t : file.tensors())
    n += 4 * static_cast<size_t>(std::accumulate(t.shape.begin(), t.shape.end(), int64_t{1},
                                                 std::multiplies<int64_t>()));
  return n;
}

Status check_room(const ModelFile& file, const Machine& machine, const std::string& folder) {
  const size_t bytes = f32_bytes(file);
  std::error_code failed;
  const fs::space_info space = fs::space(folder, failed);
  if (!failed && space.available < bytes)
    return error(Code::unavailable,
                 "the f32 weights take {} of disk, and {} has {}; TMPDIR names another folder",
                 size_text(bytes), folder, size_text(space.available));
  if (machine.memory_available_bytes < bytes)
    return error(Code::unavailable, "the f32 weights take {} of memory, and {} are available",
                 size_text(bytes), size_text(machine.memory_available_bytes));
  return {};
}

// The model with f32 activations: weights that are floats have them anyway, others are decoded to
// f32 for it, which changes none of them.
class Reference {
 public:
  static Result<Reference> load(ModelOptions model, ModelSession::Needs needs) {
    model.device = "cpu";
    model.kv_type = "f32";
    Reference out;
    MILLRACE_ASSIGN(const ModelFile file, open_model(model.model));
    if (is_quantised(file)) {
      MILLRACE_ASSIGN(TempFolder folder, TempFolder::make("accuracy"));
      MILLRACE_TRY(check_room(file, needs.beside->machine(), folder.path()));
      model.model = folder.path() + "/f32.gguf";
      MILLRACE_TRY(decode(file, model.model, needs));
      out.folder_.emplace(std::move(folder));
    }
    MILLRACE_ASSIGN(out.session_, ModelSession::load(model, needs));
    return out;
  }

  Engine& engine() { return session_->engine(); }

 private:
  static Status decode(const ModelFile& file, const std::string& path,
                       const ModelSession::Needs& needs) {
    MILLRACE_ASSIGN(const QuantType type, quant_type_named("f32"));
    Progress progress("decoding");
    StreamOptions stream;
    stream.n_threads = needs.beside->machine().n_cpus;
    if (!needs.quiet)
      stream.progress = [&](double share, std::string_view what) { progress.at(share, what); };
    stream.stop = &catch_interrupts();
    MILLRACE_TRY(quantize_model(file, path, type, stream).status());
    return {};
  }

  std::optional<TempFolder> folder_;  // outlives the session, which maps a file in it
  std::unique_ptr<ModelSession> session_;
};

std::vector<std::string> kv_types(const ModelOptions& model) {
  if (!model.kv_type.empty()) return {model.kv_type};
  if (model.device == "cuda") return {"bf16"};
  return {"f16", "bf16", "f32"};
}

Result<std::vector<lab::AccuracyText>> read_texts(const Options& options, const ModelFile& file) {
  MILLRACE_ASSIGN(const Tokenizer tokenizer, open_tokenizer(file));
  std::vector<lab::AccuracyText> out;
  const auto add = [&](const std::string& name, std::string_view text) -> Status {
    MILLRACE_ASSIGN(std::vector<int32_t> tokens, tokenizer.encode(text, true));
    if (std::ssize(tokens) > options.n_tokens) tokens.resize(static_cast<size_t>(options.n_tokens));
    out.push_back({name, std::move(tokens)});
    return {};
  };
  for (const std::string& path : options.texts) {
    MILLRACE_ASSIGN(const std::string text, read_text_file(path, kMaxText));
    MILLRACE_TRY(add(fs::path(path).filename().string(), text));
  }
  if (options.texts.empty())
    for (const lab::SampleText& text : lab::sample_texts())
      MILLRACE_TRY(add(std::string(text.name), text.text));
  return out;
}

struct Report {
  std::vector<lab::Accuracy> rows;
  std::string model, device, fingerprint, reference;  // numerics of the first path, the reference
  int n_lanes = 0;
  Machine machine;
};

Result<Report> measure(const Options& options) {
  ModelOptions model = options.model;
  model.n_ctx = options.window;
  ModelSession::Needs needs{
      .max_outputs = lab::kAccuracyRows, .quiet = options.json, .any_context = true};
  std::vector<std::unique_ptr<ModelSession>> sessions;
  std::vector<lab::AccuracyPath> paths;
  for (const std::string& kv : kv_types(model)) {
    model.kv_type = kv;
    MILLRACE_ASSIGN(auto session, ModelSession::load(model, needs));
    const bool quantised = is_quantised(session->engine().file());
    paths.push_back({model.device == "cuda" ? "bf16"
                     : quantised            ? "int8"
                                            : "f32",
                     kv, &session->engine()});
    sessions.push_back(std::move(session));
    needs.beside = sessions[0].get();
  }
  MILLRACE_ASSIGN(Reference reference, Reference::load(model, needs));
  MILLRACE_ASSIGN(const auto texts, read_texts(options, sessions[0]->engine().file()));
  Progress progress("accuracy");
  lab::AccuracyOptions how{.window = options.window, .stop = &catch_interrupts()};
  if (!options.json)
    how.progress = [&](double share, std::string_view text) { progress.at(share, text); };
  MILLRACE_ASSIGN(auto rows, lab::measure_accuracy(reference.engine(), paths, texts, how));
  const bool on_cuda = model.device == "cuda";
  return Report{.rows = std::move(rows),
                .model = sessions[0]->name(),
                .device = model.device,
                .fingerprint = sessions[0]->engine().fingerprint(),
                .reference = reference.engine().fingerprint(),
                .n_lanes = on_cuda ? 1 : sessions[0]->team().size(),
                .machine = sessions[0]->machine()};
}

void print_table(const Report& report) {
  size_t width = 4;
  for (const lab::Accuracy& row : report.rows) width = std::max(width, row.text.size());
  fmt::print("{} on {}, against f32 activations and f32 KV of the same weights\n\n",
             printable(report.model, 200), report.device);
  fmt::print("{:<{}} {:>7} {:<11} {:<5} {:>10} {:>10} {:>9} {:>10}\n", "text", width, "tokens",
             "activations", "KV", "perplexity", "of f32", "mean KL", "same top");
  for (const lab::Accuracy& row : report.rows)
    fmt::print("{:<{}} {:>7} {:<11} {:<5} {:>10.4f} {:>10.4f} {:>9.2e} {:>8.2f} %\n",
               printable(row.text, 200), width, row.n_tokens, row.activations, row.kv,
               row.perplexity, row.reference_perplexity, row.mean_kl, 100 * row.same_top);
  fmt::print(
      "\nmean KL: of the next token's distribution, in nats; same top: positions with the same "
      "most "
      "likely\nnext token\n");
}

nlohmann::json to_json(const Report& report, int64_t run) {
  auto rows = nlohmann::json::array();
  for (const lab::Accuracy& row : report.rows)
    rows.push_back({{"text", row.text},
                    {"tokens", row.n_tokens},
                    {"activations", row.activations},
                    {"kv", row.kv},
                    {"perplexity", row.perplexity},
                    {"reference_perplexity", row.reference_perplexity},
                    {"mean_kl", row.mean_kl},
                    {"same_top", row.same_top}});
  return {{"model", report.model},
          {"device", report.device},
          {"fingerprint", report.fingerprint},
          {"reference_fingerprint", report.reference},
          {"run", run},
          {"rows", std::move(rows)}};
}

int run_accuracy(const Options& options) {
  auto report = measure(options);
  if (!report.ok()) return fail(report.status());
  Recorder recorder;
  if (const Status status =
          recorder.begin(options.recording, "model", report->device, report->machine);
      !status.ok())
    return fail(status);
  recorder.add_metrics(lab::metrics_of(
      report->rows, lab::Subject{"model", report->model, "", "", report->device, report->n_lanes}));
  recorder.end("done");
  if (options.json)
    print_json(to_json(*report, recorder.id()));
  else
    print_table(*report);
  return recorder.report(!options.json) ? 0 : kFailed;
}

}  // namespace

void add_accuracy(App& app, const Recording& recording) {
  auto options = std::make_shared<Options>();
  options->recording = recording;
  Command command =
      app.add("accuracy", "Measure what a model's fast path costs against f32 activations");
  add_model_options(command, options->model);
  command
      .option("--text", options->texts,
              "Text file; repeat it for several (default: an agent's log and English prose that "
              "are part of millrace)")
      .type_name("FILE")
      .one_value_each();
  command.option("--tokens", options->n_tokens, "Tokens of each text at most")
      .range(2, 1 << 24)
      .show_default();
  command
      .option("--window", options->window,
              "Window length in tokens; each window starts with an empty context")
      .range(2, 1 << 20)
      .show_default();
  command.option("--db", options->recording.db, "Database of runs (default: the user's own)")
      .type_name("FILE");
  command.flag("--no-store", options->recording.no_store, "Do not store the run");
  command.flag("--json", options->json, "Print JSON");
  command.footer(
      "Quantised weights are decoded to f32 for the comparison, in a temporary folder (TMPDIR) "
      "that "
      "needs four bytes per weight, and so does memory. Without --kv-type every KV type is "
      "measured.");
  command.runs([options] { return run_accuracy(*options); });
}

}  // namespace millrace::cli
