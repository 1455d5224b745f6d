// OpenAI's completions: a prompt is continued as it is, without a template. Several prompts get
// their choices in order: prompt p's are p * n to p * n + n - 1.
#pragma once

#include "serve/dialect.h"

namespace millrace::serve::completions {

ApiResult<ApiRequest> parse(const Json& body, const HeaderOf& header);
std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head);
Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer);

}  // namespace millrace::serve::completions
