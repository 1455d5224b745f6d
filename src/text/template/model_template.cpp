#include "text/template/model_template.h"

#include <map>

#include "files/gguf.h"
#include "files/json.h"
#include "files/safetensors.h"

namespace millrace {
namespace {

using Tokens = std::map<std::string, std::string>;

Tokens tokens_of(const Gguf& gguf) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"}};
  Tokens out;
  const GgufValue* list = gguf.find("tokenizer.ggml.tokens");
  if (list == nullptr) return out;
  const auto tokens = list->strings();
  for (const auto& [name, key] : kNames) {
    const auto id = gguf.integer_or(key, -1);
    if (id.ok() && id.value() >= 0 && static_cast<size_t>(id.value()) < tokens.size())
      out[name] = tokens[static_cast<size_t>(id.value())];
  }
  return out;
}

// tokenizer_config.json writes a token as a string or as an object that has its content.
Tokens tokens_of(const SafetensorsDir& dir) {
  Tokens out;
  const auto text = dir.text("tokenizer_config.json");
  if (!text.ok()) return out;
  const auto json = parse_json(text.value(), "tokenizer_config.json");
  if (!json.ok()) return out;
  const JsonFields fields(json.value(), "tokenizer_config.json");
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const nlohmann::json* token = fields.find(name);
    if (token != nullptr && token->is_object()) token = JsonFields(*token, name).find("content");
    if (token != nullptr && token->is_string()) out[name] = token->get<std::string>();
  }
  return out;
}

}  // namespace

Result<ChatTemplate> chat_template_of(const ModelFile& file) {
  return chat_template_of(file, file.chat_template());
}

Result<ChatTemplate> chat_template_of(const ModelFile& file, std::string_view source) {
  return ChatTemplate::parse(
      source, file.gguf() != nullptr ? tokens_of(*file.gguf()) : tokens_of(*file.safetensors()));
}

}  // namespace millrace
