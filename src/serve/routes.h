// What the server answers, and how: the dialects, the page, and the routes beside them. A route
// that needs the model says 503 until there is one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "serve/dialect.h"
#include "serve/http_server.h"
#include "serve/jobs/routes.h"
#include "serve/openapi.h"
#include "serve/service.h"

namespace millrace::serve {

// What the server is, for those who ask.
struct ServerInfo {
  std::string version = {};
  std::string model = {};  // its name
  std::vector<std::string> aliases = {};
  bool strict_models = false;              // another name is a 404
  int64_t started_s = 0;                   // unix time
  std::vector<MountedRoute> mounted = {};  // what /openapi.json lists beside our own
};

class Api {
 public:
  explicit Api(ServerInfo info) : info_(std::move(info)) {}

  // From here on requests are answered. Both outlive the server.
  void open(Service& service, Jobs& jobs, std::string model);

  std::vector<Route> routes();

 private:
  friend class Routes;
  ServerInfo info_;
  std::string fingerprint_;
  std::atomic<Service*> service_ = nullptr;
  std::atomic<Jobs*> jobs_ = nullptr;  // set before the service
};

}  // namespace millrace::serve
