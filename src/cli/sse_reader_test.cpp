#include "cli/sse_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::cli {
namespace {

std::vector<SseReader::Event> read(std::string_view bytes, size_t piece) {
  SseReader reader;
  std::vector<SseReader::Event> out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    EXPECT_TRUE(reader.take(bytes.substr(0, piece),
                            [&](const SseReader::Event& event) { out.push_back(event); }));
  return out;
}

TEST(SseReader, TakesAnyPiecesAndLineEnds) {
  for (const size_t piece : {1u, 5u, 1000u}) {
    const auto events = read(
        ": a comment\n\nid: 7\nevent: x\ndata: one\n\n"
        "data: two\r\ndata:three\r\n\r\nid: no\ndata: four\n\ndata: never ends",
        piece);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].id, 7);
    EXPECT_EQ(events[0].data, "one");
    EXPECT_EQ(events[1].id, -1);
    EXPECT_EQ(events[1].data, "two\nthree");
    EXPECT_EQ(events[2].id, -1);
    EXPECT_EQ(events[2].data, "four");
  }
}

TEST(SseReader, AnEventThatDoesNotEndIsRefused) {
  const std::string piece(1 << 20, 'x'), line = "data: " + piece + "\n";
  for (const std::string& bytes : {piece, line}) {
    SseReader reader;
    int n = 0;
    while (n < 100 && reader.take(bytes, [](const SseReader::Event&) {})) ++n;
    EXPECT_LT(n, 20);
  }
}

}  // namespace
}  // namespace millrace::cli
