// millrace models: what models this machine already has, ours and other programs'.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "hub/catalog.h"

namespace millrace::cli {
namespace {

void print_json(const Catalog& catalog) {
  auto list = nlohmann::ordered_json::array();
  for (const CatalogEntry& e : catalog.entries)
    list.push_back({{"name", e.name},
                    {"store", e.store},
                    {"type", e.type},
                    {"bytes", e.bytes},
                    {"path", e.path}});
  cli::print_json(list);
}

void print_table(const Catalog& catalog) {
  size_t name = 4, type = 4;
  for (const CatalogEntry& e : catalog.entries) {
    name = std::max(name, e.name.size());
    type = std::max(type, e.type.size());
  }
  fmt::print("{:<{}}  {:<11}  {:>10}  {:<{}}  {}\n", "name", name, "from", "size", "type", type,
             "path");
  for (const CatalogEntry& e : catalog.entries)
    fmt::print("{:<{}}  {:<11}  {:>10}  {:<{}}  {}\n", e.name, name, e.store, size_text(e.bytes),
               e.type, type, printable(e.path));
}

int models(bool json) {
  const Catalog catalog = find_models(process_environment());
  if (json)
    print_json(catalog);
  else if (!catalog.entries.empty())
    print_table(catalog);
  else
    fmt::print(stderr,
               "millrace: no models on this machine yet; 'millrace pull {}' downloads one\n",
               kDefaultModel);
  for (const auto& note : catalog.notes) fmt::print(stderr, "millrace: {}\n", note);
  return 0;
}

}  // namespace

void add_models(App& app) {
  auto json = std::make_shared<bool>(false);
  Command command = app.add("models", "List the models on this machine");
  command.footer(
      "Lists the model that comes with millrace, the models that 'millrace pull' downloaded, and "
      "those of Hugging Face (HF_HOME, HF_HUB_CACHE), llama.cpp (LLAMA_CACHE), ollama "
      "(OLLAMA_MODELS) and LM Studio. Every command that takes a MODEL accepts a name from this "
      "list, the beginning of a name if no other starts with it, or a path.");
  command.flag("--json", *json, "Print JSON");
  command.runs([json] { return models(*json); });
}

}  // namespace millrace::cli
