// A Config out of Hugging Face's config.json, as transformers 4 and 5 write it.
#pragma once

#include <string_view>

#include "base/status.h"
#include "files/safetensors.h"
#include "model/config.h"

namespace millrace {

// What config.json alone says: n_vocab is its vocab_size. `file` names it in errors.
Result<Config> config_from_json(std::string_view text, std::string_view file);

// The same for a directory, checked against its tensors; n_vocab is the embedding's.
// The error says what keeps the model from running here.
Result<Config> read_config(const SafetensorsDir& dir);

}  // namespace millrace
