// What went wrong with a request, as a client can act on it. Each dialect spells it in its own
// shape. A failure that would come again is a 4xx, because clients retry the others.
#pragma once

#include <string>
#include <variant>

#include "base/status.h"

namespace millrace::serve {

struct ApiError {
  enum class Kind : unsigned char {
    none,
    invalid_request,  // 400
    context_length,   // 400, and the code "context_length_exceeded" exactly
    authentication,   // 401
    permission,       // 403
    not_found,        // 404
    method,           // 405
    conflict,         // 409: not in the state that it is in
    too_large,        // 413
    unprocessable,    // 422: an Idempotency-Key that stands for something else
    rate_limit,       // 429, with Retry-After
    internal,         // 500
    not_supported,    // 501: a route that others have
    overloaded,       // 503, with Retry-After
  };
  Kind kind = Kind::none;
  std::string message = {};
  std::string param = {};  // the field that was wrong, as a path: "messages[2].content"
  int retry_after_s = 0;

  bool ok() const { return kind == Kind::none; }
};

int http_status(ApiError::Kind kind);
// invalid_argument, unsupported and not_found are the client's doing; unavailable is overload.
ApiError api_error(const Status& status);

// A value, or the error that a client gets instead.
template <class T>
using ApiResult = std::variant<T, ApiError>;

}  // namespace millrace::serve
