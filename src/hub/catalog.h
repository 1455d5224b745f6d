// What models lie on this machine: our own cache, those of Hugging Face, llama.cpp, ollama and LM
// Studio, what comes with the program, and how a command's MODEL becomes a path. Looking around
// opens no weights: sizes come from the file system, types from names and small JSON files. Folders
// are walked to a fixed depth and up to a number of entries, whatever links they hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/environment.h"

namespace millrace {

// What every command means that takes a model and was given none.
inline constexpr std::string_view kDefaultModel = "smollm2-135m";
// What it means where that is not here and cannot be got: a model that comes with the program.
inline constexpr std::string_view kTinyModel = "tiny";

struct CatalogEntry {
  std::string name;    // smollm2-135m, OWNER/REPO:Q4_K_M, OWNER/REPO, llama3.2:1b; fit to show
  std::string store;   // shipped, millrace, huggingface, llama.cpp, ollama, lm-studio
  std::string path;    // a .gguf file (the first of a split model) or a directory of safetensors
  std::string type;    // "gguf Q4_K_M", "safetensors bfloat16"; without the second word if unknown
  uint64_t bytes = 0;  // of all parts
};

struct Catalog {
  std::vector<CatalogEntry> entries;  // by store, in the order above, then by name
  std::vector<std::string> notes;     // what could not be looked at, for the user to read
};

Catalog find_models(const Environment& environment);
// Of them, those that come with the program.
Catalog find_shipped_models(const Environment& environment);

// `name` as a path (a file, or a folder that holds one model), else as an entry's name: exactly,
// then without regard to case, then the one name that begins with it (with or without OWNER/). Of
// entries with the same name the first store's wins. The error lists the candidates, or what there
// is and how to get more.
Result<std::string> resolve_model(std::string_view name, const Catalog& catalog);

}  // namespace millrace
