// The shapes of requests and answers in the OpenAPI document.
#pragma once

#include <string_view>

namespace millrace::serve {

// Objects of JSON: parts of components.schemas.
std::string_view openapi_request_schemas();
std::string_view openapi_answer_schemas();

}  // namespace millrace::serve
