#include "files/gguf.h"
#include "files/safetensors.h"
#include "model/config_gguf.h"
#include "model/config_hf.h"

namespace millrace {

Result<Config> read_config(const ModelFile& file) {
  return file.gguf() != nullptr ? read_config(*file.gguf()) : read_config(*file.safetensors());
}

}  // namespace millrace
