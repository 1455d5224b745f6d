// What the server refuses before a handler runs, sent raw. Every refusal is one JSON object, and
// the server goes on answering others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "serve/http_server.h"
#include "serve/http_test_client.h"

namespace millrace::serve {
namespace {

class HttpRefusalThreads : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    options.port = 0;
    const auto answer = [this](HttpRequest request, std::shared_ptr<Reply> reply) {
      ++n_handled_;
      EXPECT_EQ(request.header("authorization"), "");
      EXPECT_EQ(request.header("x-api-key"), "");
      reply->send(200, {}, fmt::format("\"{}\"", request.tenant));
    };
    auto server =
        HttpServer::start(std::move(options), {{"GET", "/open", Access::open, answer},
                                               {"POST", "/key", Access::key, answer},
                                               {"POST", "/admin", Access::admin, answer}});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }
  TestClient client() { return TestClient(server_->port()); }
  // The status of the refusal; checks that it is one JSON object and the connection's end.
  int refusal(std::string_view request) {
    TestClient client = this->client();
    const TestReply reply = client.ask(request);
    EXPECT_TRUE(reply.body.starts_with("{\"error\":{") && reply.body.ends_with("}}"))
        << request.substr(0, 200) << "\n"
        << reply.head << reply.body;
    EXPECT_TRUE(reply.has("Content-Type: application/json\r\n"));
    EXPECT_TRUE(client.is_closed()) << request.substr(0, 200);
    return reply.status;
  }
  void expect_still_answers() {
    EXPECT_EQ(client().ask("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  }
  static std::string post(std::string_view path, std::string_view headers) {
    return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers);
  }

  std::atomic<int> n_handled_{0};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpRefusalThreads, MalformedRequests) {
  start();
  using namespace std::literals;
  const std::string_view cases[] = {
      "\r\n\r\n\r\nGET\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00"sv,  // the beginning of TLS
      "GET /open\r\n\r\n",
      "GET  /open HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /open HTTP/1.1\nHost: localhost\n\n\r\n\r\n",
      "GET open HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /a%00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /a/%2e%2e/b HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /open HTTP/1.1\r\n\r\n",
      "GET /open HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
      "GET /open HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"sv,
      "GET /open HTTP/1.1\r\nHost: localhost\r\nX: a\x01ohno\r\n\r\n",
      "GET /open HTTP/1.1\r\nHost: localhost\r\nX\x7f: a\r\n\r\n",
      "GET /open HTTP/1.1\r\nHost: localhost\r\nX : a\r\n\r\n",
      "GET /open HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
      "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  };
  for (const std::string_view one : cases) EXPECT_EQ(refusal(one), 400) << one;
  EXPECT_EQ(refusal("GET /open HTTP/2.0\r\nHost: localhost\r\n\r\n"), 505);
  EXPECT_EQ(n_handled_, 0);
  expect_still_answers();
}

TEST_F(HttpRefusalThreads, AmbiguousLengths) {
  start();
  const std::string_view cases[] = {
      "Content-Length: 1\r\nContent-Length: 1\r\n",
      "Content-Length: 1\r\nContent-Length: 2\r\n",
      "Content-Length: 1, 1\r\nContent-Length: 1\r\n",
      "Content-Length: 1, 2\r\n",
      "Content-Length: -1\r\n",
      "Content-Length: 0x10\r\n",
      "Content-Length: 99999999999999999999999\r\n",
      "Content-Length: \r\n",
      "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
  };
  for (const std::string_view one : cases) EXPECT_EQ(refusal(post("/key", one)), 400) << one;
  EXPECT_EQ(refusal("POST /key HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(refusal("POST /key HTTP/1.0\r\n\r\n"), 411);
  EXPECT_EQ(refusal(post("/key", "Content-Type: application/json\r\n")), 411);
  EXPECT_EQ(refusal(post("/key", "Transfer-Encoding: gzip, chunked\r\n")), 501);
  EXPECT_EQ(refusal(post("/key", "Transfer-Encoding: identity\r\n")), 501);
  EXPECT_EQ(refusal(post("/key", "Content-Length: 4\r\nContent-Encoding: gzip\r\n")), 415);
  EXPECT_EQ(refusal(post("/key", "Content-Length: 4\r\nExpect: magic\r\n")), 417);
  EXPECT_EQ(n_handled_, 0);
  expect_still_answers();
}

TEST_F(HttpRefusalThreads, BrokenChunks) {
  start();
  const std::string head = post("/key", "Transfer-Encoding: chunked\r\n");
  for (const std::string_view one :
       {"zz\r\nabc\r\n", "-1\r\nabc\r\n", "3\r\nabcd\r\n0\r\n\r\n", "\r\n\r\n",
        "3\nabc\n0\n\n\r\n\r\n", "fffffffffffffffff\r\nabc\r\n", "0\r\nbad trailer\r\n\r\n",
        "0\r\nContent-Length: 3\r\n\r\n"})
    EXPECT_EQ(refusal(head + std::string(one)), 400) << one;
  EXPECT_EQ(refusal(head + "3;" + std::string(20000, 'x')), 400);
  EXPECT_EQ(refusal(head + "ffffffff\r\nabc\r\n"), 413);
  EXPECT_EQ(n_handled_, 0);
  expect_still_answers();
}

TEST_F(HttpRefusalThreads, TooLarge) {
  start({.max_body_bytes = 1000, .max_header_bytes = 16 << 10});
  // Refused by what it claims, before a byte of it is sent.
  EXPECT_EQ(refusal(post("/key", "Content-Length: 1073741824\r\n")), 413);
  EXPECT_EQ(refusal(post("/key", "Content-Length: 1001\r\nExpect: 100-continue\r\n")), 413);
  EXPECT_EQ(refusal(post("/key", "Transfer-Encoding: chunked\r\n") + "1ff\r\n" +
                    std::string(0x1ff, 'x') + "\r\n1ff\r\n"),
            413);
  EXPECT_EQ(refusal("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            414);
  EXPECT_EQ(refusal("GET /" + std::string(9000, 'a')), 414);
  EXPECT_EQ(refusal(post("/key", "X: " + std::string(20000, 'a') + "\r\n")), 431);
  std::string many;
  for (int i = 0; i < 200; ++i) many += fmt::format("X-{}: 1\r\n", i);
  EXPECT_EQ(refusal(post("/key", many)), 431);
  EXPECT_EQ(n_handled_, 0);
  expect_still_answers();
}

// Whole lines that are parsed one by one, so that no single read holds more than the limit.
TEST_F(HttpRefusalThreads, HeadersWithoutEnd) {
  start({.max_header_bytes = 8 << 10});
  TestClient client = this->client();
  client.send("GET /open HTTP/1.1\r\n");
  const std::string line = "X: " + std::string(300, 'a') + "\r\n";
  for (int i = 0; i < 40; ++i) client.send(line);
  EXPECT_EQ(client.reply().status, 431);
}

// A client that sends its body without waiting does read the refusal.
TEST_F(HttpRefusalThreads, TheRefusalOfALargeBodyArrives) {
  start({.max_body_bytes = 1000});
  TestClient client = this->client();
  client.send(post("/key", "Content-Length: 1000000\r\n") + std::string(1000000, 'x'));
  EXPECT_EQ(client.reply().status, 413);
}

TEST_F(HttpRefusalThreads, AllBodiesTogetherAreLimited) {
  start({.max_bodies_bytes = 100000});
  const std::string head = post("/key", "Content-Length: 80000\r\n");
  TestClient first = client();
  first.send(head + std::string(70000, 'x'));
  TestReply refused;
  for (int i = 0; i < 2000 && refused.status != 503; ++i)  // until the first one's bytes are read
    refused = client().ask(head + std::string(80000, 'x'));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1\r\n"));
  EXPECT_EQ(first.ask(std::string(10000, 'x')).status, 200);
  EXPECT_EQ(client().ask(head + std::string(80000, 'x')).status, 200);
}

TEST_F(HttpRefusalThreads, TooSlow) {
  start({.header_timeout_s = 0.5, .body_timeout_s = 0.1});
  EXPECT_TRUE(client().is_closed());  // nothing was asked, nothing is said
  TestClient dripping = client();
  for (int i = 0; i < 60; ++i) {
    dripping.send("G");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(dripping.reply().status, 408);
  EXPECT_EQ(refusal(post("/key", "Content-Length: 10\r\n") + "12"), 408);
}

TEST_F(HttpRefusalThreads, TooLongIdle) {
  start({.idle_timeout_s = 0.1});
  TestClient idle = client();
  EXPECT_EQ(idle.ask("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  EXPECT_TRUE(idle.is_closed());
}

TEST_F(HttpRefusalThreads, PathsAndMethods) {
  start();
  TestClient client = this->client();
  EXPECT_EQ(client.ask("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404);
  const TestReply reply = client.ask("GET /key HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(reply.status, 405);
  EXPECT_TRUE(reply.has("Allow: POST, OPTIONS\r\n")) << reply.head;
  EXPECT_EQ(client.ask("BREW /key HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  // Without a body there is no reason to close.
  EXPECT_EQ(client.ask("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  EXPECT_EQ(client.ask("GET http://localhost/open?x HTTP/1.1\r\nHost: a.b\r\n\r\n").status, 200);
}

TEST_F(HttpRefusalThreads, ForeignHostsAndPages) {
  start({.allowed_hosts = {"box.local"}, .allowed_origins = {"https://app.example"}});
  const auto ask = [this](std::string_view headers, std::string_view method = "GET") {
    return client().ask(fmt::format("{} /open HTTP/1.1\r\n{}\r\n", method, headers));
  };
  const std::string host = fmt::format("Host: localhost:{}\r\n", server_->port());
  EXPECT_EQ(ask("Host: evil.example\r\n").status, 421);
  EXPECT_EQ(ask("Host: BOX.local:80\r\n").status, 200);
  EXPECT_EQ(ask(host + "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(ask(host + "Origin: null\r\n").status, 403);
  EXPECT_EQ(ask(host + "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(ask(host + fmt::format("Origin: http://localhost:{}\r\n", server_->port())).status,
            200);
  const TestReply allowed =
      ask(host + "Origin: https://app.example\r\nSec-Fetch-Site: cross-site\r\n");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_TRUE(allowed.has("Access-Control-Allow-Origin: https://app.example\r\n"));
  const TestReply preflight =
      ask(host +
              "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n"
              "Access-Control-Request-Headers: authorization,x-thing\r\n",
          "OPTIONS");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_TRUE(preflight.has("Access-Control-Allow-Headers: authorization,x-thing\r\n"));
  EXPECT_TRUE(preflight.has("Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n"));
  EXPECT_EQ(
      ask(host + "Origin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\n", "OPTIONS")
          .status,
      403);
}

TEST_F(HttpRefusalThreads, MissingAndWrongKeys) {
  auto keys = Keys::from_text("alice:key-of-alice-0123\nadmin ops:key-of-ops-012345", "test");
  ASSERT_TRUE(keys.ok());
  start({.keys = std::move(*keys)});
  const auto ask = [this](std::string_view path, std::string_view header) {
    return client().ask(post(path, fmt::format("Content-Length: 0\r\n{}", header)));
  };
  EXPECT_EQ(client().ask("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  const TestReply none = ask("/key", "");
  EXPECT_EQ(none.status, 401);
  EXPECT_TRUE(none.has("WWW-Authenticate: Bearer\r\n"));
  const TestReply wrong = ask("/key", "Authorization: Bearer key-of-alice-012\r\n");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.body.find("alice"), std::string::npos);
  EXPECT_EQ(ask("/key", "Authorization: Basic key-of-alice-0123\r\n").status, 401);
  EXPECT_EQ(ask("/key", "Authorization: bearer key-of-alice-0123\r\n").body, "\"alice\"");
  EXPECT_EQ(ask("/key", "x-api-key: key-of-alice-0123\r\n").body, "\"alice\"");
  EXPECT_EQ(ask("/admin", "x-api-key: key-of-alice-0123\r\n").status, 403);
  EXPECT_EQ(ask("/admin", "x-api-key: key-of-ops-012345\r\n").body, "\"ops\"");
  EXPECT_EQ(ask("/key", "x-api-key: key-of-ops-012345\r\n").body, "\"ops\"");
  // A body is not even read without a key.
  EXPECT_EQ(refusal(post("/key", "Content-Length: 50000000\r\n")), 401);
}

TEST_F(HttpRefusalThreads, ErrorsHaveTheShapeOfTheirPath) {
  start({.error_body = [](const std::string& path, const ApiError& error) {
    return fmt::format("{{\"error\":{{\"path\":\"{}\",\"kind\":{}}}}}", path,
                       static_cast<int>(error.kind));
  }});
  EXPECT_EQ(client().ask("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n").body,
            fmt::format("{{\"error\":{{\"path\":\"/none\",\"kind\":{}}}}}",
                        static_cast<int>(ApiError::Kind::not_found)));
}

TEST_F(HttpRefusalThreads, TooManyConnections) {
  start({.max_connections = 2});
  TestClient first = client(), second = client();
  const std::string request = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(first.ask(request).status, 200);
  EXPECT_EQ(second.ask(request).status, 200);
  const TestReply third = client().ask(request);
  EXPECT_EQ(third.status, 503);
  EXPECT_TRUE(third.has("Retry-After: 1\r\n"));
  first.close();
  int status = 503;
  for (int i = 0; i < 2000 && status == 503; ++i) {
    status = client().ask(request).status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status, 200);
}

TEST_F(HttpRefusalThreads, ClientsThatLeaveWhileTheySend) {
  start();
  const std::string whole = post("/key", "Content-Length: 10\r\n") + "0123456789";
  for (size_t n = 0; n < whole.size(); n += 7) {
    TestClient client = this->client();
    client.send(std::string_view(whole).substr(0, n));
    n % 2 == 0 ? client.close() : client.reset();
  }
  expect_still_answers();
  for (int i = 0; i < 20000 && server_->n_connections() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(server_->n_connections(), 0);
}

}  // namespace
}  // namespace millrace::serve
