#include "serve/http_error.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace millrace::serve {

HttpError http_error(int status, std::string message) {
  const auto kind = status >= 500 ? ApiError::Kind::internal : ApiError::Kind::invalid_request;
  return {.status = status, .error = {.kind = kind, .message = std::move(message)}};
}

HttpError http_error(ApiError::Kind kind, std::string message) {
  return {.status = http_status(kind), .error = {.kind = kind, .message = std::move(message)}};
}

std::string plain_error_body(const std::string&, const ApiError& error) {
  return json_text(nlohmann::json{{"error", {{"message", error.message}}}});
}

}  // namespace millrace::serve
