#include "serve/send.h"

#include "base/json_text.h"
#include "serve/dialect.h"

namespace millrace::serve {
namespace {

const Dialect& dialect_of(std::string_view path) {
  const auto all = dialects();
  const Dialect* best = &all.front();
  for (const Dialect& dialect : all)
    if (path.starts_with(dialect.path)) best = &dialect;
  return *best;
}

}  // namespace

std::string error_body(const std::string& path, const ApiError& error) {
  return json_text(dialect_of(path).error(error));
}

void send_error(Reply& reply, const std::string& path, const ApiError& error) {
  HttpHeaders headers;
  if (error.retry_after_s > 0)
    headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
  reply.send(http_status(error.kind), std::move(headers), error_body(path, error));
}

void send_json(Reply& reply, const Json& json, int status, HttpHeaders headers) {
  reply.send(status, std::move(headers), json_text(json));
}

ApiError busy() {
  return {.kind = ApiError::Kind::overloaded,
          .message = "too many requests are waiting already; try again in a moment",
          .retry_after_s = 1};
}

ApiError loading() {
  return {.kind = ApiError::Kind::overloaded,
          .message = "the model is still being loaded; try again in a moment",
          .retry_after_s = 1};
}

}  // namespace millrace::serve
