// The bodies of /v1/models and /v1/models/{id}: OpenAI's shape with what local clients look for
// (max_model_len as vLLM has it, meta as llama.cpp does), or Anthropic's.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "serve/api_request.h"

namespace millrace::serve {

struct ModelShown {
  std::string id = {};
  int64_t created_s = 0;
  int64_t max_context = 0;      // tokens that one request may have
  int64_t trained_context = 0;  // tokens that the model was made for
  int64_t n_vocab = 0, n_params = 0, file_bytes = 0;
};

// Whose client is asking: Anthropic's send the header anthropic-version, and OpenAI's do not.
enum class ListShape : unsigned char { openai, anthropic };

Json model_list(std::span<const ModelShown> models, ListShape shape);
Json model_body(const ModelShown& model, ListShape shape);

}  // namespace millrace::serve
