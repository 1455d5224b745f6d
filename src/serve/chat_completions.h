// OpenAI's chat completions, as openai-python, LangChain, Open WebUI, OpenCode and most others
// speak them.
#pragma once

#include "serve/dialect.h"

namespace millrace::serve::chat_completions {

ApiResult<ApiRequest> parse(const Json& body, const HeaderOf& header);
std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head);
Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer);

}  // namespace millrace::serve::chat_completions
