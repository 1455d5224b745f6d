// Which browser pages may talk to this server. A page from anywhere can send requests to
// 127.0.0.1, and by DNS rebinding under a name of its own; so a request must name a host that is
// ours, and one that a browser sends for a page must be for our own page or for an allowed origin.
// Programs send no Origin and are not concerned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http_error.h"

namespace millrace::serve {

struct GuardOptions {
  std::string address = {};                       // the bound one
  std::vector<std::string> allowed_hosts = {};    // names without a port; "*" is any
  std::vector<std::string> allowed_origins = {};  // "https://app.example"; "*" is any
};

class HttpGuard {
 public:
  explicit HttpGuard(GuardOptions options);

  // `host` as the request has it, with or without a port.
  HttpError check_host(std::string_view host) const;
  HttpError check_origin(const HttpRequest& request, std::string_view host) const;
  // The headers that let an allowed origin's page read the reply; none for other requests.
  HttpHeaders cors(const HttpRequest& request) const;

 private:
  bool is_allowed_origin(std::string_view origin) const;

  GuardOptions options_;
  bool is_bound_to_any_ = false;
};

bool is_loopback(std::string_view address);  // 127.0.0.0/8, ::1 or localhost
bool is_preflight(const HttpRequest& request);
// What a preflight's reply has beside cors(); `allow` is the methods of the path.
HttpHeaders preflight_headers(const HttpRequest& request, const std::string& allow);

}  // namespace millrace::serve
