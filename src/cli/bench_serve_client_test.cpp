#include "cli/bench_serve_client.h"

#include <gtest/gtest.h>

namespace millrace::cli {
namespace {

// The bytes in pieces of this size.
ResponseReader read(std::string_view bytes, size_t piece) {
  ResponseReader out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    EXPECT_TRUE(out.take(bytes.substr(0, piece)));
  return out;
}

TEST(ResponseReader, TakesALengthInAnyPieces) {
  for (const size_t piece : {1u, 7u, 1000u}) {
    auto reader = read("HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\n\r\nhello", piece);
    EXPECT_EQ(reader.status(), 200);
    EXPECT_TRUE(reader.is_done());
    EXPECT_FALSE(reader.is_stream());
    EXPECT_EQ(reader.body(), "hello");
  }
}

TEST(ResponseReader, TakesChunksInAnyPieces) {
  for (const size_t piece : {1u, 3u, 1000u}) {
    auto reader = read(
        "HTTP/1.1 429 Busy\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\ndata: 1\n\n\r\nA;x=y\r\ndata: 22\n\n\r\n0\r\n\r\n",
        piece);
    EXPECT_EQ(reader.status(), 429);
    EXPECT_TRUE(reader.is_stream());
    EXPECT_TRUE(reader.is_done());
    EXPECT_EQ(reader.body(), "data: 1\n\ndata: 22\n\n");
  }
}

TEST(ResponseReader, KnowsWhatIsNotComplete) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", 4).status(), 0);
  EXPECT_FALSE(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 4).is_done());
}

TEST(ResponseReader, RefusesWhatIsNoResponse) {
  for (const char* bytes : {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"})
    EXPECT_FALSE(ResponseReader().take(bytes)) << bytes;
}

TEST(LoadClient, WantsAnAddress) {
  for (const char* url :
       {"", "127.0.0.1:80", "https://x:80", "http://", "http://:80", "http://x/v1"})
    EXPECT_EQ(LoadClient::to(url).status().code(), Code::invalid_argument) << url;
  EXPECT_TRUE(LoadClient::to("http://127.0.0.1:8080/").ok());
}

TEST(LoadClient, SaysThatNobodyListens) {
  auto client = LoadClient::to("http://127.0.0.1:1");
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->fetch("/health", "").status().code(), Code::unavailable);
}

}  // namespace
}  // namespace millrace::cli
