// An error that the HTTP layer itself answers with: the status, where it says more than the error's
// kind does (408, 414, 431), and the headers that belong to it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/http.h"

namespace millrace::serve {

struct HttpError {
  int status = 0;  // 0: no error
  ApiError error = {};
  HttpHeaders headers = {};

  bool ok() const { return status == 0; }
};

HttpError http_error(int status, std::string message);
HttpError http_error(ApiError::Kind kind, std::string message);

// The body of an error in the shape that clients of this path expect: one JSON object.
using ErrorBody = std::function<std::string(const std::string& path, const ApiError& error)>;
// {"error":{"message":"..."}}, for a server that was given no ErrorBody.
std::string plain_error_body(const std::string& path, const ApiError& error);

}  // namespace millrace::serve
