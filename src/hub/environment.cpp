#include "hub/environment.h"

#include <cstdlib>
#include <filesystem>

#include "files/small_file.h"

namespace millrace {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

std::string without_slashes(std::string text) {
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// The first line of a token file.
std::string read_token(const std::string& path) {
  auto text = read_small_file(path, kMaxTokenBytes);
  if (!text.ok()) return "";
  return text->substr(0, text->find_first_of("\r\n \t"));
}

// It goes into a header line: one with anything but visible characters is none.
std::string checked_token(std::string token) {
  for (const char c : token)
    if (c <= ' ' || c > '~') return "";
  return token;
}

bool is_on(const std::string& text) {
  return !text.empty() && text != "0" && text != "false" && text != "no" && text != "off";
}

// share/millrace beside bin/ of an installed program, else models/ of the tree it was built from.
std::string shipped_models() {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path installed = program.parent_path().parent_path() / "share/millrace";
  return !failed && fs::is_directory(installed, failed) ? installed : fs::path(MILLRACE_MODELS);
}

}  // namespace

Environment environment_from(const char* (*get)(const char* name)) {
  const auto value_of = [&](const char* name, std::string otherwise) {
    const char* value = get(name);
    return value == nullptr || *value == '\0' ? otherwise : std::string(value);
  };
  Environment e;
  e.home = value_of("HOME", ".");
  e.xdg_cache_home = value_of("XDG_CACHE_HOME", e.home + "/.cache");
  const std::string hf_home = value_of("HF_HOME", e.xdg_cache_home + "/huggingface");
  e.hub_cache = value_of("HF_HUB_CACHE", hf_home + "/hub");
  e.hub_endpoint = without_slashes(value_of("HF_ENDPOINT", "https://huggingface.co"));
  const std::string token_path = value_of("HF_TOKEN_PATH", hf_home + "/token");
  e.hub_token = checked_token(value_of("HF_TOKEN", read_token(token_path)));
  e.hub_offline = is_on(value_of("HF_HUB_OFFLINE", ""));
  e.llama_cache = value_of("LLAMA_CACHE", e.xdg_cache_home + "/llama.cpp");
  e.ollama_models = value_of("OLLAMA_MODELS", e.home + "/.ollama/models");
  e.certificates = value_of("SSL_CERT_FILE", "");
  return e;
}

Environment process_environment() {
  Environment e =
      environment_from([](const char* name) -> const char* { return std::getenv(name); });
  e.ollama_service = "/usr/share/ollama/.ollama/models";
  e.shipped = shipped_models();
  return e;
}

std::string own_models(const Environment& environment) {
  return environment.xdg_cache_home + "/millrace/models";
}

}  // namespace millrace
