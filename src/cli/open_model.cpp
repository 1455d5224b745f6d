#include "cli/open_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/utf8.h"
#include "cli/pull.h"
#include "hub/catalog.h"
#include "model/architecture.h"

namespace millrace::cli {
namespace {

// A first answer must not wait for a network that is not there: pip itself takes 2 s to ask.
constexpr double kPatienceS = 8;

Result<std::string> pull_default(const Environment& environment) {
  if (environment.hub_offline)
    return error(Code::unavailable,
                 "{} is not on this machine, and HF_HUB_OFFLINE forbids downloading it",
                 kDefaultModel);
  PullWatch watch;
  watch.n_tries = 1;
  watch.patience_s = kPatienceS;
  MILLRACE_ASSIGN(const Pulled pulled, pull_model(kDefaultModel, watch));
  return pulled.path;
}

Result<std::string> default_model(const Environment& environment) {
  auto here = resolve_model(kDefaultModel, find_models(environment));
  if (here.status().code() != Code::not_found) return here;
  auto pulled = pull_default(environment);
  if (pulled.ok() || pulled.status().code() == Code::cancelled) return pulled;
  auto tiny = resolve_model(kTinyModel, find_shipped_models(environment));
  if (!tiny.ok()) return pulled;
  fmt::print(stderr,
             "millrace: {} is not on this machine and the download failed ('millrace pull' says "
             "why); using {}, the small model that comes with millrace\n",
             kDefaultModel, kTinyModel);
  return tiny;
}

// The stores are looked through only for what is neither a path nor beside the program.
Catalog catalog_for(const std::string& name, const Environment& environment) {
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) return {};
  return name == kTinyModel ? find_shipped_models(environment) : find_models(environment);
}

Result<std::string> path_of(const std::string& name) {
  const Environment environment = process_environment();
  if (name.empty()) return default_model(environment);
  return resolve_model(name, catalog_for(name, environment));
}

}  // namespace

Option add_model_name(Command& command, std::string& model, bool positional) {
  return command
      .option(
          positional ? "-m,--model,model" : "-m,--model", model,
          fmt::format("Path of a model, or a name from 'millrace models' (default: {}, which is "
                      "downloaded once; {} if that fails)",
                      kDefaultModel, kTinyModel))
      .type_name("MODEL");
}

Status take_model(std::string& model, std::vector<std::string>& arguments, size_t n_least,
                  size_t n_most) {
  if (model.empty() && arguments.size() > n_least) {
    model = arguments.front();
    arguments.erase(arguments.begin());
  }
  if (arguments.size() > n_most)
    return error(Code::invalid_argument, "one argument too many: '{}'",
                 printable(arguments.back(), 200));
  return {};
}

Result<ModelFile> open_model(const std::string& name) {
  MILLRACE_ASSIGN(const std::string path, path_of(name));
  return open_model_file(path);
}

void print_warnings(const Tokenizer& tokenizer) {
  for (const std::string& warning : tokenizer.warnings())
    fmt::print(stderr, "millrace: warning: {}\n", warning);
}

Result<Tokenizer> open_tokenizer(const ModelFile& file) {
  auto tokenizer = load_tokenizer(file);
  if (tokenizer.ok()) print_warnings(*tokenizer);
  return tokenizer;
}

}  // namespace millrace::cli
