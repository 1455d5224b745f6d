#include "serve/http_guard.h"

#include <gtest/gtest.h>

namespace millrace::serve {
namespace {

TEST(HttpGuard, KnowsItsOwnHosts) {
  const HttpGuard local({.address = "127.0.0.1", .allowed_hosts = {"box.local"}});
  for (const std::string_view host : {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9",
                                      "[::1]:8080", "box.local", "Box.Local:1"})
    EXPECT_TRUE(local.check_host(host).ok()) << host;
  for (const std::string_view host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "127.evil", "192.168.0.1",
        "[::2]", "[", "", ":", "box.local."})
    EXPECT_EQ(local.check_host(host).status, 421) << host;
}

TEST(HttpGuard, AnyAddressIsOursWhereAllAreBound) {
  const HttpGuard any({.address = "0.0.0.0"});
  EXPECT_TRUE(any.check_host("192.168.0.1:8080").ok());
  EXPECT_TRUE(any.check_host("[fe80::1]:8080").ok());
  EXPECT_FALSE(any.check_host("evil.example:8080").ok());
  EXPECT_FALSE(any.check_host("192.168.0.1.evil.example").ok());
  EXPECT_TRUE(HttpGuard({.address = "10.0.0.5"}).check_host("10.0.0.5:8080").ok());
  EXPECT_FALSE(HttpGuard({.address = "10.0.0.5"}).check_host("10.0.0.6:8080").ok());
  EXPECT_TRUE(HttpGuard({.allowed_hosts = {"*"}}).check_host("evil.example").ok());
}

TEST(HttpGuard, LetsOwnAndAllowedPagesIn) {
  const HttpGuard guard({.allowed_origins = {"https://app.example"}});
  const auto status = [&](HttpHeaders headers) {
    return guard.check_origin({.method = "GET", .headers = std::move(headers)}, "localhost:8080")
        .status;
  };
  EXPECT_EQ(status({}), 0);
  EXPECT_EQ(status({{"origin", "http://localhost:8080"}}), 0);
  EXPECT_EQ(status({{"origin", "https://app.example"}, {"sec-fetch-site", "cross-site"}}), 0);
  EXPECT_EQ(status({{"origin", "http://localhost:3000"}}), 403);
  EXPECT_EQ(status({{"origin", "https://app.example.evil"}}), 403);
  EXPECT_EQ(status({{"origin", "localhost:8080"}}), 403);
  EXPECT_EQ(status({{"sec-fetch-site", "same-origin"}}), 0);
  EXPECT_EQ(status({{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "no-cors"}}), 403);
  // A link to our page, in a page of somebody else's.
  EXPECT_EQ(status({{"sec-fetch-site", "cross-site"},
                    {"sec-fetch-mode", "navigate"},
                    {"sec-fetch-dest", "document"}}),
            0);
}

TEST(HttpGuard, OnlyAllowedPagesGetTheHeadersToRead) {
  const HttpGuard guard({.allowed_origins = {"https://app.example"}});
  EXPECT_EQ(guard.cors({.headers = {{"origin", "https://app.example"}}}).size(), 3u);
  EXPECT_TRUE(guard.cors({.headers = {{"origin", "https://other.example"}}}).empty());
  EXPECT_TRUE(guard.cors({}).empty());
}

TEST(HttpGuard, KnowsLoopback) {
  for (const std::string_view yes : {"127.0.0.1", "127.1.2.3", "::1", "localhost"})
    EXPECT_TRUE(is_loopback(yes)) << yes;
  for (const std::string_view no :
       {"0.0.0.0", "::", "10.0.0.1", "127.example", "localhost.example"})
    EXPECT_FALSE(is_loopback(no)) << no;
}

}  // namespace
}  // namespace millrace::serve
