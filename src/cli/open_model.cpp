#include "cli/open_model.h"

#include <filesystem>

#include "model/catalog.h"

namespace millrace::cli {

Result<ModelFile> open_model(const std::string& name) {
  std::error_code ignored;
  // The stores are looked through only for what is no path.
  const bool is_path = std::filesystem::exists(name, ignored);
  const Catalog catalog = is_path ? Catalog{} : find_models(process_environment());
  MILLRACE_ASSIGN(const std::string path, resolve_model(name, catalog));
  return ModelFile::open(path);
}

}  // namespace millrace::cli
