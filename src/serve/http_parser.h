// One HTTP/1.x request out of bytes as they come, with every limit held while they come: what is
// refused is refused before it is stored. It knows no socket and no clock. Boost.Beast parses;
// what Beast is lenient about (two lengths, codings it does not know, headers without end) is
// refused here, because a proxy in front could read such a request in another way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http.h"
#include "serve/http_error.h"

namespace millrace::serve {

struct ParserLimits {
  size_t header_bytes = 32 << 10;  // the request line and all headers
  size_t target_bytes = 8 << 10;
  size_t n_headers = 128;
  uint64_t body_bytes = 64 << 20;
};

class RequestParser {
 public:
  enum class State : unsigned char { header, body, done, failed };

  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();

  // Takes what it can from the front of `bytes` and returns how much that was; the rest must be
  // offered again, with more behind it. It stops behind the header, so that a request can be
  // refused before its body is read.
  size_t put(std::string_view bytes);

  State state() const;
  const HttpError& error() const;  // once it has failed; the connection is of no use any more
  // Once the header is done. The body fills up until the state is done.
  HttpRequest& request();
  const std::string& host() const;  // of the target where that has one, else of the Host header
  bool has_host() const;
  bool is_http11() const;
  bool keeps_alive() const;
  bool expects_continue() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::serve
