#include "serve/router.h"

#include <gtest/gtest.h>

namespace millrace::serve {
namespace {

Router router() {
  return Router(std::vector<Route>{{.method = "GET", .path = "/"},
                                   {.method = "GET", .path = "/v1/models"},
                                   {.method = "GET", .path = "/v1/models/*"},
                                   {.method = "DELETE", .path = "/v1/models/*"},
                                   {.method = "POST", .path = "/v1/models/load"},
                                   {.method = "GET", .path = "/*"}});
}

TEST(Router, TheMostSpecificPathDecides) {
  const Router routes = router();
  const auto path = [&](std::string_view method, std::string_view path) -> std::string {
    const Route* route = routes.find(method, path).route;
    return route == nullptr ? "" : route->path;
  };
  EXPECT_EQ(path("GET", "/"), "/");
  EXPECT_EQ(path("GET", "/v1/models"), "/v1/models");
  EXPECT_EQ(path("GET", "/v1/models/a/b"), "/v1/models/*");
  EXPECT_EQ(path("DELETE", "/v1/models/a"), "/v1/models/*");
  EXPECT_EQ(path("POST", "/v1/models/load"), "/v1/models/load");
  EXPECT_EQ(path("GET", "/style.css"), "/*");
  EXPECT_EQ(path("HEAD", "/v1/models"), "/v1/models");
  // The page under /* does not answer for a path that others have.
  EXPECT_EQ(path("GET", "/v1/models/load"), "");
}

TEST(Router, SaysWhichMethodsThereAre) {
  const Router routes = router();
  EXPECT_EQ(allow_list(routes.find("PUT", "/v1/models/x").methods), "GET, DELETE, HEAD, OPTIONS");
  EXPECT_EQ(allow_list(routes.find("GET", "/v1/models/load").methods), "POST, OPTIONS");
  const Router one(std::vector<Route>{{.method = "GET", .path = "/a"}});
  EXPECT_TRUE(one.find("GET", "/ab").methods.empty());
}

}  // namespace
}  // namespace millrace::serve
