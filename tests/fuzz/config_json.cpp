// Any text as Hugging Face's config.json.
#include <cstdint>
#include <string_view>

#include "model/config_hf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)millrace::config_from_json({reinterpret_cast<const char*>(data), size}, "config.json");
  return 0;
}
