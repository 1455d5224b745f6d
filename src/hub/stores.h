// How each program lays models out on disk: one function per layout, each adding what it finds.
// Names and manifests there were written by others and are checked before they become paths.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hub/catalog.h"

namespace millrace {

// Lists folders until a budget of entries is spent, each folder once, so that links that lead in
// circles end.
class Walk {
 public:
  // Entries sorted by name; empty for what is no readable folder or was listed before.
  std::vector<std::filesystem::path> list(const std::filesystem::path& folder);
  bool is_spent() const { return left_ == 0; }

 private:
  size_t left_ = 100'000;  // a well-filled hub cache has a few thousand
  std::set<std::pair<uint64_t, uint64_t>> seen_;
};

// The models of a folder: complete GGUF files in it and in those below it, `depth` levels down, and
// itself when it has config.json and safetensors. They are named `base`:QUANT and `base`, or, where
// `base` is empty, by their file.
std::vector<CatalogEntry> models_below(const std::filesystem::path& folder, const std::string& base,
                                       int depth, Walk& walk);

// What comes with this program: millrace-NAME.gguf is NAME.
void add_shipped(const std::string& root, Walk& walk, Catalog& catalog);
void add_own(const std::string& root, Walk& walk, Catalog& catalog);
void add_hub(const std::string& root, const std::string& store, Walk& walk, Catalog& catalog);
void add_llama_cpp(const std::string& root, Walk& walk, Catalog& catalog);
void add_ollama(const std::string& root, Walk& walk, Catalog& catalog);
void add_lm_studio(const std::string& root, Walk& walk, Catalog& catalog);

}  // namespace millrace
