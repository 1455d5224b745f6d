// What the user's environment says about where models lie and where they come from. Read from the
// process once, by a command; everything else takes it as a value, so that a test can make a home
// of its own.
#pragma once

#include <string>

namespace millrace {

struct Environment {
  std::string home;            // HOME
  std::string xdg_cache_home;  // XDG_CACHE_HOME, or ~/.cache
  std::string hub_cache;       // HF_HUB_CACHE, or $HF_HOME/hub, or the cache's huggingface/hub
  std::string hub_endpoint;    // HF_ENDPOINT, or https://huggingface.co; no slash at the end
  std::string hub_token;       // HF_TOKEN, or what the file `token` in HF_HOME holds; may be empty
  bool hub_offline = false;    // HF_HUB_OFFLINE
  std::string llama_cache;     // LLAMA_CACHE, or the cache's llama.cpp
  std::string ollama_models;   // OLLAMA_MODELS, or ~/.ollama/models
  std::string ollama_service;  // where ollama keeps them when it runs as a service; may be empty
  std::string certificates;    // SSL_CERT_FILE; empty: where the system keeps them
  std::string shipped;         // the folder of the models that come with this program; may be empty
};

// From variables that `get` looks up (null: not set). `home` falls back to the current directory.
Environment environment_from(const char* (*get)(const char* name));
Environment process_environment();

// Where this program keeps the models that it pulled.
std::string own_models(const Environment& environment);

}  // namespace millrace
