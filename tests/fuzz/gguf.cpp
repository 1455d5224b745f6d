// Any bytes as a GGUF file: read, walked through, and its configuration made.
#include "files/gguf.h"

#include <cstdint>

#include "model/config_gguf.h"

namespace {

uint64_t touch(const millrace::Gguf& gguf) {
  uint64_t sum = 0;
  for (const auto& value : gguf.values()) {
    for (const auto text : value.strings()) sum += text.empty() ? 0 : uint64_t(text.back());
    for (const auto byte : value.bytes) sum += uint64_t(byte);
    if (value.string()) sum += value.string()->size();
    for (size_t i = 0; i < value.count; ++i) sum += value.real(i) ? 1 : 0;
  }
  for (const auto& tensor : gguf.tensors())
    if (tensor.bytes > 0) sum += uint64_t(tensor.data[0]) + uint64_t(tensor.data[tensor.bytes - 1]);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto gguf = millrace::Gguf::read(std::as_bytes(std::span(data, size)), "fuzz.gguf");
  if (!gguf.ok()) return 0;
  volatile uint64_t sink = touch(gguf.value());
  (void)sink;
  (void)millrace::read_config(gguf.value());
  return 0;
}
