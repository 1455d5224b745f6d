// From a method and a path to the route that answers it. The most specific path decides: an exact
// one, else the longest that ends in "/*". Only then the method is looked at, so that a wrong one
// is a 405 and not somebody else's page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http.h"

namespace millrace::serve {

class Router {
 public:
  struct Match {
    const Route* route = nullptr;  // null with methods: a 405; without: a 404
    std::vector<std::string_view> methods = {};
  };

  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}

  // HEAD is answered by GET's route where it has none of its own.
  Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;  // a few dozen
};

// As in an Allow header: with HEAD where there is GET, and OPTIONS.
std::string allow_list(const std::vector<std::string_view>& methods);

}  // namespace millrace::serve
