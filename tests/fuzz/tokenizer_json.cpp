// Any bytes as a tokenizer.json, or as a GGUF file's vocabulary: read, made into a tokenizer, and
// used on texts that reach every part of it.
#include <array>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "files/gguf.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using namespace millrace;

Result<Vocab> vocab_of(std::string_view bytes) {
  if (!bytes.starts_with("GGUF"))
    return vocab_from_tokenizer_json({std::string(bytes), "", "", ""});
  MILLRACE_ASSIGN(const Gguf file, Gguf::read(std::as_bytes(std::span(bytes)), "fuzz.gguf"));
  return vocab_from_gguf(file);
}

void use(const Tokenizer& tokenizer) {
  const std::array<TextPart, 4> parts = {
      {{"Hello,  wörld's 12345\r\n\t<s>", true},
       {"<|im_end|> aaaaaaaaaaaaaaaa e\u0301\u0323 語の한", false},
       {"\xFF\xE2\x82 \xEF\xBF\xBD\xC3(\xF0\x9F", false},
       {"▁▁ x", true}}};
  const auto ids = tokenizer.encode(parts, true);
  if (!ids.ok()) return;
  for (const int32_t id : ids.value())
    MILLRACE_CHECK(id >= 0 && id < tokenizer.size(), "token {} of {}", id, tokenizer.size());
  (void)tokenizer.decode(ids.value(), true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto vocab = vocab_of({reinterpret_cast<const char*>(data), size});
  if (!vocab.ok()) return 0;
  const auto tokenizer = Tokenizer::make(std::move(*vocab));
  if (tokenizer.ok()) use(tokenizer.value());
  return 0;
}
