// A Config out of a GGUF file's metadata: the keys of general.* and of its architecture.
#pragma once

#include "base/status.h"
#include "files/gguf.h"
#include "files/gguf_write.h"
#include "model/config.h"

namespace millrace {

// The error says what keeps the model from running here: an architecture, a key or a tensor's type.
Result<Config> read_config(const Gguf& gguf);

// The same keys, as other readers want them too. Llama 3's scaling is not among them: GGUF has its
// factors as a tensor.
void write_config(const Config& config, GgufWriter& writer);

}  // namespace millrace
