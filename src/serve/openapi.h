// The OpenAPI 3.1 document of all routes, for /openapi.json: what they take, what they answer, and
// with which statuses.
#pragma once

#include <string>
#include <string_view>

namespace millrace::serve {

std::string openapi_document(std::string_view version);

}  // namespace millrace::serve
