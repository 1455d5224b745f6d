// The HTTP server: listens, reads requests, refuses what must not reach a handler (malformed, too
// large, too slow, from a foreign page, without a key), and carries replies back. It owns its
// sockets and a few threads; it polls nothing, so an idle one uses no CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "serve/http.h"
#include "serve/http_error.h"
#include "serve/keys.h"

namespace millrace::serve {

// How a request ended, for whoever keeps a log. No bodies, no headers, no keys.
struct RequestEnd {
  HttpRequest request = {};  // method, path, query, id, tenant, is_admin, arrived_ns
  int status = 0;            // 499: the client went away before there was one
  int64_t n_bytes = 0;       // sent, with headers
  double seconds = 0;        // from the request's first byte to the reply's last
  bool is_gone = false;      // the client went away, or was dropped, before the end
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  int port = 8080;             // 0: any free one; -1: no TCP, only the Unix socket
  std::string unix_path = {};  // a Unix socket beside it; only this user can connect
  int n_threads = 2;
  size_t max_body_bytes = 64 << 20;
  size_t max_bodies_bytes = 1 << 30;  // of all that are being read
  size_t max_header_bytes = 32 << 10;
  double header_timeout_s = 10;       // a header must be complete in this time,
  double body_timeout_s = 120;        // and the body behind it in this
  double idle_timeout_s = 75;         // between two requests of a connection
  double write_timeout_s = 120;       // a client that takes nothing at all for so long is dropped
  double keep_alive_s = 10;           // a stream that is silent for so long gets a comment
  int max_connections = 4096;         // one more is answered with 503
  size_t max_unread_bytes = 8 << 20;  // of one stream; a client that is further behind is dropped
  std::vector<std::string> allowed_hosts = {};  // as in http_guard.h
  std::vector<std::string> allowed_origins = {};
  Keys keys = {};  // none: every route is open
  // Without keys, an address that others can reach is refused unless this says that all may use it.
  bool allows_anyone = false;
  ErrorBody error_body = {};  // thread-safe; plain_error_body where there is none
  std::function<void(const RequestEnd&)> on_request_end = {};  // on a server's thread
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options,
                                                   std::vector<Route> routes);
  ~HttpServer();  // as stop(0)

  int port() const;           // the one it listens on; 0 without TCP
  int n_connections() const;  // now
  // Accepts no more, lets the replies that are running end for so many seconds, then closes what is
  // left (their on_gone is called) and joins its threads. Not to be called from a handler.
  void stop(double drain_seconds);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::serve
