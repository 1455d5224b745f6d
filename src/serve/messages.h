// Anthropic's Messages, as Claude Code and the anthropic packages speak them, and the count of a
// prompt's tokens beside it. Blocks become messages in OpenAI's shape, which is what templates
// take: tool_use a call of the assistant, tool_result a message of its own, thinking
// reasoning_content.
#pragma once

#include "serve/dialect.h"

namespace millrace::serve::messages {

ApiResult<ApiRequest> parse(const Json& body, const HeaderOf& header);
// The same without max_tokens.
ApiResult<ApiRequest> parse_count_tokens(const Json& body, const HeaderOf& header);
std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head);
Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer);
Json count_tokens(int64_t n_prompt);
// {"type": "error", "error": {type, message}}
Json error(const ApiError& error);

}  // namespace millrace::serve::messages
