#include "hub/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/utf8.h"
#include "files/gguf_name.h"
#include "hub/stores.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxListed = 20;

using Entries = std::vector<const CatalogEntry*>;

// One line each, for an error's message.
std::string listed(const Entries& entries) {
  std::string out;
  for (size_t i = 0; i < std::min(entries.size(), kMaxListed); ++i)
    out += fmt::format("\n  {}  ({}, {})", entries[i]->name, entries[i]->type, entries[i]->store);
  if (entries.size() > kMaxListed)
    out += fmt::format("\n  and {} more: millrace models", entries.size() - kMaxListed);
  return out;
}

// The entries that `matches` takes, one of each name.
Entries matching(const Catalog& catalog,
                 const std::function<bool(const CatalogEntry& entry)>& matches) {
  Entries out;
  for (const CatalogEntry& entry : catalog.entries) {
    const auto same = [&](const CatalogEntry* other) { return other->name == entry.name; };
    if (matches(entry) && std::none_of(out.begin(), out.end(), same)) out.push_back(&entry);
  }
  return out;
}

std::string without_owner(const std::string& name) {
  return name.substr(name.find_last_of('/') + 1);
}

// From the strictest reading of a name to the loosest; the first that fits anything decides.
Entries find_named(const std::string& name, const Catalog& catalog) {
  const std::string low = to_lower(name);
  const std::function<bool(const CatalogEntry&)> readings[] = {
      [&](const auto& e) { return e.name == name; },
      [&](const auto& e) { return e.name == name + ":latest"; },
      [&](const auto& e) { return to_lower(e.name) == low; },
      [&](const auto& e) { return to_lower(without_owner(e.name)) == low; },
      [&](const auto& e) {
        return to_lower(e.name).starts_with(low) ||
               to_lower(without_owner(e.name)).starts_with(low);
      },
  };
  for (const auto& reading : readings)
    if (Entries found = matching(catalog, reading); !found.empty()) return found;
  return {};
}

Status unknown(std::string_view name, const Catalog& catalog) {
  const std::string shown = printable(name, 200);
  const std::string how = fmt::format(
      "'millrace pull {}' downloads the default model, 'millrace pull hf:OWNER/REPO:QUANT' one "
      "from "
      "Hugging Face",
      kDefaultModel);
  if (name == kDefaultModel)
    return error(Code::not_found,
                 "the default model {} is not on this machine yet; 'millrace pull {}' downloads it",
                 shown, shown);
  if (name == kTinyModel)
    return error(Code::not_found,
                 "the model {} is missing: it belongs in share/millrace of an installed "
                 "program, or in models/ of the source tree",
                 shown);
  const Entries all = matching(catalog, [](const CatalogEntry&) { return true; });
  if (all.empty())
    return error(Code::not_found,
                 "no model '{}': no such file, and there are no models on this machine; {}", shown,
                 how);
  return error(
      Code::not_found,
      "no model '{}': no such file, and no model of that name on this machine; {}. Models here:{}",
      shown, how, listed(all));
}

// A folder that is a model, or that holds exactly one. An empty string when it holds none.
Result<std::string> model_in(const std::string& folder) {
  Walk walk;
  const auto models = models_below(folder, "", 0, walk);
  if (models.size() == 1) return models[0].path;
  if (models.empty()) return std::string();
  Entries all;
  for (const auto& model : models) all.push_back(&model);
  return error(Code::invalid_argument, "{} contains {} models; name one of its files:{}",
               printable(folder, 200), models.size(), listed(all));
}

}  // namespace

Catalog find_shipped_models(const Environment& environment) {
  Catalog catalog;
  if (environment.shipped.empty()) return catalog;
  Walk walk;
  add_shipped(environment.shipped, walk, catalog);
  return catalog;
}

Catalog find_models(const Environment& environment) {
  Catalog catalog = find_shipped_models(environment);
  Walk walk;
  add_own(own_models(environment), walk, catalog);
  add_hub(environment.hub_cache, "huggingface", walk, catalog);
  add_llama_cpp(environment.llama_cache, walk, catalog);
  add_ollama(environment.ollama_models, walk, catalog);
  if (!environment.ollama_service.empty()) add_ollama(environment.ollama_service, walk, catalog);
  add_lm_studio(environment.home + "/.lmstudio/models", walk, catalog);
  add_lm_studio(environment.xdg_cache_home + "/lm-studio/models", walk, catalog);
  if (walk.is_spent())
    catalog.notes.push_back(
        "the model folders contain too many files to search; "
        "name a model by its path");
  return catalog;
}

Result<std::string> resolve_model(std::string_view name, const Catalog& catalog) {
  std::string text(name);
  std::error_code failed;
  if (text.find('\0') != std::string::npos || text.empty()) return unknown(name, catalog);
  if (fs::is_regular_file(text, failed)) return text;
  const bool is_folder = fs::is_directory(text, failed);
  if (is_folder) {
    MILLRACE_ASSIGN(const std::string inside, model_in(text));
    if (!inside.empty()) return inside;
  }
  if (text.starts_with("hf:")) text.erase(0, 3);
  const Entries found = text.empty() ? Entries() : find_named(text, catalog);
  if (found.size() == 1) return found[0]->path;
  if (!found.empty())
    return error(Code::invalid_argument, "'{}' matches {} models; choose one:{}",
                 printable(name, 200), found.size(), listed(found));
  if (is_folder)
    return error(Code::not_found,
                 "the folder {} contains no model: no .gguf file, and no config.json with "
                 "*.safetensors",
                 printable(name, 200));
  return unknown(name, catalog);
}

}  // namespace millrace
