#include "cli/replay_trace.h"

#include <gtest/gtest.h>

namespace millrace::cli {
namespace {

constexpr std::string_view kHead = "{\"trace\": 1, \"name\": \"t\", \"seed\": 7}\n";
constexpr std::string_view kTurn = R"({"words": 3, "answer": 2})";

Result<Trace> parse(const std::string& sessions) {
  return parse_trace(std::string(kHead) + sessions, "t.jsonl");
}

TEST(ReplayTrace, ReadsSessionsAndWhomTheyFollow) {
  auto trace = parse(fmt::format(
      R"({{"session": "a", "start_s": 1.5, "system": {{"seed": "s", "words": 9}}, "turns": [{0}, {{"gap_s": 2, "role": "tool", "tool": "x", "words": 4, "answer": 1, "compact_to": 5}}]}}

{{"session": "b", "after": {{"session": "a", "turn": 1, "fork": true}}, "turns": [{0}]}}
)",
      kTurn));
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->seed, 7);
  EXPECT_EQ(trace->n_turns(), 3u);
  const TraceSession &a = trace->sessions[0], &b = trace->sessions[1];
  EXPECT_EQ(a.start_s, 1.5);
  EXPECT_EQ(a.n_system_words, 9);
  EXPECT_EQ(a.turns[0].n_compacted, -1);
  EXPECT_EQ(a.turns[1].n_compacted, 5);
  EXPECT_EQ(a.turns[1].tool, "x");
  EXPECT_EQ(b.after, 0);
  EXPECT_EQ(b.after_turn, 1u);
  EXPECT_TRUE(b.forks);
}

TEST(ReplayTrace, NamesTheLineOfWhatIsWrong) {
  for (const std::string& line : {
           std::string("nonsense"),
           std::string("[]"),
           std::string("{}"),
           std::string(R"({"session": "a"})"),
           std::string(R"({"session": "a", "turns": []})"),
           std::string(R"({"session": "a", "turns": [1]})"),
           std::string(R"({"session": "a", "turns": [{"words": 1}]})"),
           std::string(R"({"session": "a", "turns": [{"answer": 1, "words": -1}]})"),
           std::string(R"({"session": "a", "turns": [{"answer": 1, "words": 99999999999}]})"),
           std::string(R"({"session": "a", "turns": [{"answer": 1, "gap_s": -1}]})"),
           std::string(R"({"session": "a", "turns": [{"answer": 1, "gap_s": 1e300}]})"),
           std::string(R"({"session": "a", "turns": [{"answer": 1, "role": "system"}]})"),
           fmt::format(R"({{"session": "", "turns": [{}]}})", kTurn),
           fmt::format(R"({{"session": "a\r\nX-Evil: 1", "turns": [{}]}})", kTurn),
           fmt::format(R"({{"session": "a\u001b[2J", "turns": [{}]}})", kTurn),
           fmt::format(R"({{"session": "{}", "turns": [{}]}})", std::string(1000, 'a'), kTurn),
           fmt::format(R"({{"session": "b", "after": {{"session": "\u001b[2J"}}, "turns": [{}]}})",
                       kTurn),
           fmt::format(R"({{"session": "a", "after": {{"session": "a"}}, "turns": [{}]}})", kTurn),
       }) {
    const auto trace = parse(line);
    ASSERT_FALSE(trace.ok()) << line;
    EXPECT_NE(trace.status().message().find("t.jsonl, line 2"), std::string::npos)
        << trace.status().message();
    EXPECT_EQ(trace.status().message().find('\x1b'), std::string::npos);
  }
  EXPECT_FALSE(parse_trace("{\"trace\": 1, \"name\": \"a\\u001b\"}\n", "t").ok());
  EXPECT_FALSE(parse("").ok());
  EXPECT_FALSE(parse_trace("{\"trace\": 2}\n", "t").ok());
  EXPECT_FALSE(parse_trace("", "t").ok());
}

TEST(ReplayTrace, ProseIsAPureFunctionOfItsSeed) {
  EXPECT_EQ(prose("a", 40), prose("a", 40));
  EXPECT_NE(prose("a", 40), prose("b", 40));
  EXPECT_TRUE(prose("a", 40).starts_with(prose("a", 20)));
  EXPECT_EQ(prose("a", 0), "");
}

}  // namespace
}  // namespace millrace::cli
