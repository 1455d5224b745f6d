#include "serve/http_guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "serve/http_text.h"

namespace millrace::serve {
namespace {

using Kind = ApiError::Kind;

// "[::1]:8080" and "::1" to "::1", "localhost:8080" to "localhost".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  if (std::count(host.begin(), host.end(), ':') > 1) return host;
  return host.substr(0, host.find(':'));
}

bool is_ip(std::string_view host, int family) {
  unsigned char bytes[16];
  return inet_pton(family, std::string(host).c_str(), bytes) == 1;
}

bool is_any_address(std::string_view address) {
  return address == "0.0.0.0" || address == "::";
}

bool names(const std::vector<std::string>& list, std::string_view value) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& one) {
    return one == "*" || equals_ignoring_case(one, value);
  });
}

// A page of our own: served under the very host that this request names.
bool is_same_origin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return equals_ignoring_case(origin.substr(scheme.size()), host);
  return false;
}

// Somebody followed a link to our page: nothing is sent with it, and the other page cannot read it.
bool is_navigation(const HttpRequest& request) {
  return request.method == "GET" && request.header("sec-fetch-mode") == "navigate" &&
         request.header("sec-fetch-dest") == "document";
}

bool is_header_list(std::string_view text) {
  return text.size() <= 1024 && std::all_of(text.begin(), text.end(), [](char c) {
           return c == ',' || c == ' ' || is_token({&c, 1});
         });
}

}  // namespace

bool is_loopback(std::string_view address) {
  const std::string_view host = without_port(address);
  return equals_ignoring_case(host, "localhost") || host == "::1" ||
         (host.starts_with("127.") && is_ip(host, AF_INET));
}

HttpGuard::HttpGuard(GuardOptions options)
    : options_(std::move(options)), is_bound_to_any_(is_any_address(options_.address)) {}

HttpError HttpGuard::check_host(std::string_view host) const {
  const std::string_view name = without_port(host);
  if (is_loopback(host) || equals_ignoring_case(name, options_.address)) return {};
  // No DNS can make a page's host an address, so any address that reached us is ours.
  if (is_bound_to_any_ && (is_ip(name, AF_INET) || is_ip(name, AF_INET6))) return {};
  if (names(options_.allowed_hosts, name) || names(options_.allowed_hosts, host)) return {};
  HttpError error = http_error(
      Kind::permission,
      fmt::format("this server does not answer for the host '{}'; start it with --allow-host to "
                  "allow that name",
                  name.substr(0, 256)));
  error.status = 421;
  return error;
}

bool HttpGuard::is_allowed_origin(std::string_view origin) const {
  return !origin.empty() && names(options_.allowed_origins, origin);
}

HttpError HttpGuard::check_origin(const HttpRequest& request, std::string_view host) const {
  const std::string_view origin = request.header("origin");
  if (is_allowed_origin(origin)) return {};
  if (!origin.empty() && !is_same_origin(origin, host))
    return http_error(
        Kind::permission,
        fmt::format("pages of '{}' may not use this server; start it with --allow-origin to allow "
                    "them",
                    origin.substr(0, 256)));
  if (request.header("sec-fetch-site") == "cross-site" && !is_navigation(request))
    return http_error(Kind::permission,
                      "pages of other sites may not use this server; start it with --allow-origin "
                      "to allow one");
  return {};
}

HttpHeaders HttpGuard::cors(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (!is_allowed_origin(origin)) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Vary", "Origin"},
          {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"}};
}

bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.header("origin").empty() &&
         !request.header("access-control-request-method").empty();
}

HttpHeaders preflight_headers(const HttpRequest& request, const std::string& allow) {
  HttpHeaders out = {{"Access-Control-Allow-Methods", allow}, {"Access-Control-Max-Age", "600"}};
  const std::string_view wanted = request.header("access-control-request-headers");
  if (!wanted.empty() && is_header_list(wanted))
    out.emplace_back("Access-Control-Allow-Headers", wanted);
  if (request.header("access-control-request-private-network") == "true")
    out.emplace_back("Access-Control-Allow-Private-Network", "true");
  return out;
}

}  // namespace millrace::serve
