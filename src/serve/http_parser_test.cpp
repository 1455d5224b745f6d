#include "serve/http_parser.h"

#include <gtest/gtest.h>

#include "serve/http_text.h"

namespace millrace::serve {
namespace {

using State = RequestParser::State;

// Offers the text in pieces of this size, as a connection does; returns what was left over.
std::string feed(RequestParser& parser, std::string_view text, size_t piece) {
  std::string held;
  while (!text.empty()) {
    held.append(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
    for (;;) {
      const State before = parser.state();
      const size_t n = parser.put(held);
      held.erase(0, n);
      if (n == 0 && parser.state() == before) break;
    }
  }
  return held;
}

constexpr std::string_view kChunked =
    "POST /v1/a%20b?x=%20 HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\nTransfer-Encoding: Chunked\r\n"
    "\r\n5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-One: trailer\r\n\r\nGET /next";

TEST(HttpParser, GivesTheSameInPiecesOfAnySize) {
  for (size_t piece = 1; piece <= kChunked.size(); ++piece) {
    RequestParser parser({});
    const std::string rest = feed(parser, kChunked, piece);
    ASSERT_EQ(parser.state(), State::done) << piece << parser.error().error.message;
    EXPECT_EQ(rest, "GET /next");
    const HttpRequest& request = parser.request();
    EXPECT_EQ(request.path, "/v1/a b");
    EXPECT_EQ(request.query, "x=%20");
    EXPECT_EQ(request.body, "hello world");
    EXPECT_EQ(request.header("x-one"), "1");
    EXPECT_EQ(request.headers.size(), 3u);
    EXPECT_TRUE(parser.keeps_alive());
  }
}

TEST(HttpParser, StopsBehindTheHeader) {
  RequestParser parser({});
  const std::string_view text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  EXPECT_EQ(parser.put(text), text.size() - 3);
  EXPECT_EQ(parser.state(), State::body);
  EXPECT_EQ(parser.request().header("content-length"), "3");
  EXPECT_EQ(parser.put("abcGET"), 3u);
  EXPECT_EQ(parser.state(), State::done);
  EXPECT_EQ(parser.put("GET"), 0u);
}

TEST(HttpParser, TakesTheHostOfTheTarget) {
  RequestParser parser({});
  feed(parser, "GET http://evil.example?x HTTP/1.1\r\nHost: localhost\r\n\r\n", 100);
  EXPECT_EQ(parser.host(), "evil.example");
  EXPECT_EQ(parser.request().path, "/");
  EXPECT_EQ(parser.request().query, "x");
}

TEST(HttpText, DecodesPaths) {
  EXPECT_EQ(decode_path("/a%2Fb%20c"), "/a/b c");
  EXPECT_EQ(decode_path("/..a/b.."), "/..a/b..");
  for (const std::string_view bad :
       {"/%", "/%2", "/%2x", "/%00", "/%0a", "/..", "/a/../b", "/%2e./b"})
    EXPECT_EQ(decode_path(bad), std::nullopt) << bad;
}

TEST(HttpText, AHandlersHeadersCannotBreakTheReply) {
  const HttpHeaders headers = {{"X-Good", "1"},
                               {"X-Bad", "1\r\nSet-Cookie: a=b"},
                               {"Bad Name", "1"},
                               {"Content-Length", "999"},
                               {"transfer-encoding", "chunked"}};
  const std::string head = reply_head({.status = 200, .headers = &headers, .length = 3});
  EXPECT_NE(head.find("X-Good: 1\r\n"), std::string::npos);
  EXPECT_NE(head.find("Content-Length: 3\r\n"), std::string::npos);
  for (const std::string_view bad : {"Cookie", "Bad Name", "999", "chunked"})
    EXPECT_EQ(head.find(bad), std::string::npos) << bad;
}

TEST(HttpText, ListsAndIds) {
  EXPECT_TRUE(list_has("keep-alive, Close", "close"));
  EXPECT_FALSE(list_has("closed", "close"));
  EXPECT_FALSE(list_has("", "close"));
  EXPECT_TRUE(is_request_id(make_request_id()));
  EXPECT_NE(make_request_id(), make_request_id());
  EXPECT_FALSE(is_request_id(""));
  EXPECT_FALSE(is_request_id("a\nb"));
}

}  // namespace
}  // namespace millrace::serve
