// What OpenAI's dialects write alike: errors, usage, log-probabilities, and a server-sent event.
#pragma once

#include <string>
#include <string_view>

#include "serve/answer.h"
#include "serve/api_request.h"

namespace millrace::serve {

// {"error": {message, type, param, code}}
Json openai_error(const ApiError& error);
// The word by which clients know an error; Codex acts on some of them.
std::string_view openai_code(ApiError::Kind kind);

Json openai_usage(const Usage& usage);
Json openai_logprobs(const std::vector<TokenShown>& tokens);
std::string_view openai_finish(FinishReason finish);

// Milliseconds and tokens per second of prompt and completion.
Json timings(const Usage& usage);

// "data: JSON\n\n", after "event: NAME\n" where there is one.
std::string sse(const Json& data, std::string_view event = "");

}  // namespace millrace::serve
