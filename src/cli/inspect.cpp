// millrace inspect: what a model file holds, whether it runs here, and how much context fits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/open_model.h"
#include "engine/kv_pages.h"
#include "files/safetensors.h"
#include "machine/find_host.h"
#include "model/inspect.h"
#include "tensor/format.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  bool json = false, tensors = false;
};

void print_row(std::string_view key, std::string_view value) {
  fmt::print("  {:<13} {}\n", key, value);
}

struct ContextFit {
  size_t available_bytes = 0;     // of the machine's memory
  size_t kv_bytes_per_token = 0;  // K and V, until a layer's window is full
  size_t kv_bytes = 0;            // of all tokens that the model was made for
  int64_t made_for = 0, fits = 0;
};

ContextFit fit_context(const Inspection& i, size_t available_bytes) {
  const Config& config = *i.config;
  const size_t left = available_bytes > i.tensor_bytes ? available_bytes - i.tensor_bytes : 0;
  return {.available_bytes = available_bytes,
          .kv_bytes_per_token = static_cast<size_t>(kv_bytes_per_token(config, DType::f16)),
          .kv_bytes = static_cast<size_t>(kv_bytes_of_context(config, config.n_ctx, DType::f16)),
          .made_for = config.n_ctx,
          .fits = context_within(config, left, DType::f16)};
}

std::string context_text(const ContextFit& c) {
  const std::string fits = c.fits == c.made_for ? "all of it fits"
                           : c.fits > 0         ? fmt::format("{} tokens fit", c.fits)
                                                : std::string("the weights alone do not fit");
  return fmt::format("{} tokens, {} in f16; {} in the {} of available memory", c.made_for,
                     size_text(c.kv_bytes), fits, size_text(c.available_bytes));
}

// Why the file's tokenizer does not load; empty where it does.
std::string tokenizer_problem(const ModelFile& file) {
  const auto tokenizer = load_tokenizer(file);
  return tokenizer.ok() ? "" : std::string(tokenizer.status().message());
}

std::string tokenizer_text(const ModelFile& file) {
  const std::string problem = tokenizer_problem(file);
  return problem.empty() ? "loads" : "does not load: " + problem;
}

// The first few by name.
std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    shown.push_back(printable(names[i], 80));
  return fmt::format("{}: {}{}", names.size(), fmt::join(shown, ", "),
                     names.size() > kShown ? ", ..." : "");
}

void print_summary(const ModelFile& file, const Inspection& i, size_t available_bytes) {
  fmt::print("{}\n", printable(file.path()));
  print_row("format", fmt::format("{}, {}", i.format, size_text(i.file_bytes)));
  print_row("architecture", i.architecture.empty() ? "unknown" : i.architecture);
  if (!i.name.empty()) print_row("name", i.name);
  print_row("parameters",
            fmt::format("{:.1f} million", static_cast<double>(i.n_parameters) * 1e-6));
  print_row("runs here", i.runs ? "yes" : "no: " + i.why_not);
  print_row("tokenizer", tokenizer_text(file));
  if (!i.unused.unknown.empty()) print_row("not supported", names_text(i.unused.unknown));
  if (!i.unused.ignored.empty()) print_row("ignored", names_text(i.unused.ignored));
  if (i.runs) print_row("context", context_text(fit_context(i, available_bytes)));
  for (const TypeShare& t : i.types)
    print_row(&t == i.types.data() ? "tensors" : "",
              fmt::format("{:<7} {:>5} {:>10}", t.type, t.n_tensors, size_text(t.bytes)));
}

void print_metadata(const Gguf& gguf) {
  size_t width = 0;
  for (const GgufValue& value : gguf.values()) width = std::max(width, value.key.size());
  width = std::min<size_t>(width, 48);
  fmt::print("\nMetadata\n");
  for (const GgufValue& value : gguf.values())
    fmt::print("  {:<{}}  {}\n", printable(value.key, 200), width, value_text(value));
}

struct TensorRow {
  std::string name, type;
  std::vector<int64_t> shape;
  size_t bytes;
};

std::vector<TensorRow> tensor_rows(const ModelFile& file) {
  std::vector<TensorRow> rows;
  if (file.gguf() != nullptr)
    for (const GgufTensor& t : file.gguf()->tensors())
      rows.push_back({std::string(t.name), gguf_tensor_type_name(t.type_id), t.shape, t.bytes});
  else
    for (const TensorView& t : file.tensors())
      rows.push_back({std::string(t.name), std::string(name_of(t.type)), t.shape, t.bytes});
  return rows;
}

void print_tensors(const ModelFile& file) {
  fmt::print("\nTensors\n");
  for (const TensorRow& t : tensor_rows(file))
    fmt::print("  {:<32} {:<8} {:>10}  {}\n", printable(t.name, 80), t.type, size_text(t.bytes),
               fmt::join(t.shape, " x "));
}

Json context_json(const ContextFit& c) {
  return {{"made_for", c.made_for},
          {"fits", c.fits},
          {"kv_bytes_per_token", c.kv_bytes_per_token},
          {"kv_bytes", c.kv_bytes},
          {"available_bytes", c.available_bytes}};
}

Json to_json(const ModelFile& file, const Inspection& i, size_t available_bytes,
             bool with_tensors) {
  Json out = {{"path", file.path()},
              {"format", i.format},
              {"architecture", i.architecture},
              {"name", i.name},
              {"file_bytes", i.file_bytes},
              {"tensor_bytes", i.tensor_bytes},
              {"parameters", i.n_parameters},
              {"runs", i.runs},
              {"tokenizer_problem", tokenizer_problem(file)}};
  if (i.runs)
    out["context"] = context_json(fit_context(i, available_bytes));
  else
    out["why_not"] = i.why_not;
  out["unsupported_tensors"] = i.unused.unknown;
  out["ignored_tensors"] = i.unused.ignored;
  out["types"] = Json::array();
  for (const TypeShare& t : i.types)
    out["types"].push_back({{"type", t.type}, {"tensors", t.n_tensors}, {"bytes", t.bytes}});
  if (file.gguf() != nullptr) {
    out["metadata"] = Json::object();
    for (const GgufValue& value : file.gguf()->values())
      out["metadata"][std::string(value.key)] = value_json(value);
  }
  if (!with_tensors) return out;
  out["tensors"] = Json::array();
  for (const TensorRow& t : tensor_rows(file))
    out["tensors"].push_back(
        {{"name", t.name}, {"type", t.type}, {"shape", t.shape}, {"bytes", t.bytes}});
  return out;
}

int run_inspect(const Options& options) {
  const auto file = open_model(options.model);
  if (!file.ok()) return fail(file.status());
  const Inspection inspection = inspect(file.value());
  const size_t available_bytes = find_host().memory_available_bytes;
  if (options.json) {
    print_json(to_json(file.value(), inspection, available_bytes, options.tensors));
    return 0;
  }
  print_summary(file.value(), inspection, available_bytes);
  if (file.value().gguf() != nullptr) print_metadata(*file.value().gguf());
  if (options.tensors) print_tensors(file.value());
  return 0;
}

}  // namespace

void add_inspect(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add(
      "inspect",
      "Show what a model file contains, whether it runs here, and how much context fits in memory");
  add_model_name(command, options->model);
  command.flag("--tensors", options->tensors, "List the tensors too");
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] { return run_inspect(*options); });
}

}  // namespace millrace::cli
