// The text of HTTP: what is read from a request's target and headers, and the head of a reply.
// Pure functions; no socket.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http.h"

namespace millrace::serve {

std::string lower_case(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);
// Whether `word` is in the comma-separated list, ignoring case.
bool list_has(std::string_view list, std::string_view word);
bool is_token(std::string_view text);  // what a method or a header's name may be

// A target's path with its %XX decoded. Nothing where it is not one: a bad escape, a NUL or other
// control character, or a ".." that a handler could climb by.
std::optional<std::string> decode_path(std::string_view path);

// A client's request id is echoed and logged, so it is short and printable.
bool is_request_id(std::string_view text);
std::string make_request_id();

struct ReplyHead {
  int status = 200;
  const HttpHeaders* headers = nullptr;  // the handler's
  const HttpHeaders* cors = nullptr;
  std::string_view id = {};
  std::string_view default_type = {};  // where the headers have no Content-Type
  std::optional<size_t> length = {};   // Content-Length
  bool is_chunked = false, closes = false;
};

// The status line, the headers and the empty line. A header that would break the framing (a line
// break in it, or one of those that ReplyHead sets) is left out.
std::string reply_head(const ReplyHead& head);
bool has_no_body(int status);  // 1xx, 204 and 304

void append_chunk(std::string& out, std::string_view piece);

}  // namespace millrace::serve
