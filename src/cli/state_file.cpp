#include "cli/state_file.h"

#include <cstdlib>
#include <filesystem>

namespace millrace::cli {

std::string state_path(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::filesystem::path(state) / "millrace" / name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return std::filesystem::path(home) / ".local" / "state" / "millrace" / name;
}

std::string state_file(const std::string& name) {
  const std::string path = state_path(name);
  if (path.empty()) return "";
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return "";
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  return path;
}

}  // namespace millrace::cli
