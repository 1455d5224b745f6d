#include "serve/api_error.h"

namespace millrace::serve {

int http_status(ApiError::Kind kind) {
  using enum ApiError::Kind;
  switch (kind) {
    case none:
      return 200;
    case invalid_request:
    case context_length:
      return 400;
    case authentication:
      return 401;
    case permission:
      return 403;
    case not_found:
      return 404;
    case method:
      return 405;
    case conflict:
      return 409;
    case too_large:
      return 413;
    case unprocessable:
      return 422;
    case rate_limit:
      return 429;
    case internal:
      return 500;
    case not_supported:
      return 501;
    case overloaded:
      return 503;
  }
  return 500;
}

ApiError api_error(const Status& status) {
  ApiError out{.kind = ApiError::Kind::internal, .message = std::string(status.message())};
  switch (status.code()) {
    case Code::ok:
      return {};
    case Code::invalid_argument:
    case Code::unsupported:
    case Code::not_found:
      out.kind = ApiError::Kind::invalid_request;
      break;
    case Code::unavailable:
      out.kind = ApiError::Kind::overloaded;
      out.retry_after_s = 1;
      break;
    default:
      break;
  }
  return out;
}

}  // namespace millrace::serve
