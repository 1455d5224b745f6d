// What the makers of a model recommend for sampling: generation_config.json, or GGUF's
// general.sampling.* keys.
#pragma once

#include <string>

#include "files/model_file.h"
#include "serve/api_request.h"

namespace millrace::serve {

AskedSampling sampling_of(const ModelFile& file);

// "temperature 0.6, top-p 0.95"; empty where nothing is set.
std::string text_of(const AskedSampling& sampling);

}  // namespace millrace::serve
