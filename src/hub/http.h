// Downloads over libcurl. What breaks on the way is tried again with growing pauses, from the byte
// where it broke; a stalled transfer counts as broken. The token goes to the host of the URL alone:
// a redirect to another host does not carry it. Calls of other servers are in http_call.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// Where a body goes.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Bytes that are there already; the request asks for the rest.
  virtual uint64_t size() const = 0;
  // Whether all has arrived; a body that ends before is tried again from size().
  virtual bool is_whole() const = 0;
  // What comes next is the whole, from its first byte.
  virtual Status restart() = 0;
  // The next bytes; an error ends the transfer for good.
  virtual Status take(const char* data, size_t n) = 0;
};

struct HttpOptions {
  std::string token;         // as "Authorization: Bearer"; empty: none
  std::string certificates;  // a file to trust instead of the system's
  int n_tries = 5;
  std::function<bool()> stopped = [] { return false; };
};

// not_found for 404 and 410, unavailable for what a token or patience might change, cancelled when
// stopped.
Status http_get(const std::string& url, HttpSink& sink, const HttpOptions& options);

// A small body as text; more than `max_bytes` is an error.
Result<std::string> http_get_text(const std::string& url, size_t max_bytes,
                                  const HttpOptions& options);

// `text` with everything but unreserved characters and slashes percent-encoded.
std::string url_path(std::string_view text);

}  // namespace millrace
