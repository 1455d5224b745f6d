// HTTP/1.1 as the rest of serve/ sees it: requests come in whole, replies go out whole or in
// pieces. Boost, sockets and their threads are known to http_server.cpp and what it includes. A
// handler runs on one of the server's threads and must not block: what takes time goes elsewhere
// with the Reply, which any thread may use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace millrace::serve {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {}, path = {}, query = {};  // the path decoded, without the query
  HttpHeaders headers = {};                        // names in lower case; never the client's key
  std::string body = {};
  std::string id = {};      // X-Request-Id, the client's or made here; the reply echoes it
  std::string tenant = {};  // whose key it came with; empty where no keys are in use
  bool is_admin = false;
  int64_t arrived_ns = 0;

  std::string_view header(std::string_view name) const;  // by its lower-case name
};

// The way back to one client. Whoever holds it last and did not finish it ends the connection: with
// a 500 where nothing was sent yet, else in the middle, which a client sees as broken off.
class Reply {
 public:
  virtual ~Reply() = default;
  // All of it at once. JSON unless the headers have a Content-Type; lengths, the connection and the
  // request's id are the server's matter.
  virtual void send(int status, HttpHeaders headers, std::string body) = 0;
  // Or in pieces, as server-sent events: begin, any number of writes, end. While nothing is
  // written, the server itself sends a comment every keep-alive interval, so that no client or
  // proxy takes silence for death; so a piece must hold whole events. write() returns at once; a
  // client that leaves too much unread is dropped.
  virtual void begin_events(HttpHeaders headers) = 0;
  virtual void write(std::string piece) = 0;
  virtual void end() = 0;
  // Called once, on a server's thread, when the client went away before the end; at once if it has
  // gone already.
  virtual void on_gone(std::function<void()> gone) = 0;
  virtual bool is_gone() const = 0;
  // Written, and not yet taken by the client's side of the connection.
  virtual size_t unread_bytes() const = 0;
};

using Handler = std::function<void(HttpRequest, std::shared_ptr<Reply>)>;

enum class Access : unsigned char { open, key, admin };  // who may call a route; key unless said

struct Route {
  std::string method, path;  // a path that ends in "/*" takes everything under it
  Access access = Access::key;
  Handler handler = {};
};

}  // namespace millrace::serve
