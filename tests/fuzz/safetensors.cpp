// Any bytes as a safetensors file; what is accepted lies inside it.
#include <cstdint>

#include "base/check.h"
#include "files/hf_names.h"
#include "files/safetensors_parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto entries = millrace::parse_safetensors(bytes, "fuzz.safetensors");
  if (!entries.ok()) return 0;
  for (const auto& entry : entries.value()) {
    MILLRACE_CHECK(entry.begin <= size && entry.bytes <= size - entry.begin, "{}", entry.name);
    (void)millrace::gguf_name_of(entry.name, {});
    (void)millrace::fused_experts(entry.name);
  }
  return 0;
}
