#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace millrace {
namespace {

// What a body logs at a level.
template <class Body>
std::string logged(LogLevel least, Body body) {
  std::FILE* out = std::tmpfile();
  body(Log(least, out));
  std::string all(static_cast<size_t>(std::ftell(out)), '\0');
  std::rewind(out);
  EXPECT_EQ(std::fread(all.data(), 1, all.size(), out), all.size());
  std::fclose(out);
  return all;
}

// The line without its time.
std::string after_time(const std::string& line) {
  EXPECT_TRUE(line.starts_with("time=2"));
  return line.substr(line.find(' ') + 1);
}

TEST(Log, WritesKeysAndValues) {
  const std::string line = logged(LogLevel::info, [](const Log& log) {
    log.info("model loaded", "path", "/a/b", "bytes", 42, "share", 0.5);
  });
  EXPECT_EQ(after_time(line), "level=info event=\"model loaded\" path=/a/b bytes=42 share=0.5\n");
}

TEST(Log, LeavesOutWhatIsBelowItsLevel) {
  const auto all = [](const Log& log) {
    log.debug("d");
    log.info("i");
    log.warning("w");
    log.error("e");
  };
  const auto n_lines = [&](LogLevel level) {
    const std::string text = logged(level, all);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(n_lines(LogLevel::debug), 4);
  EXPECT_EQ(n_lines(LogLevel::warning), 2);
  EXPECT_EQ(n_lines(LogLevel::off), 0);
}

TEST(Log, AValueCannotForgeALine) {
  const std::string line = logged(LogLevel::info, [](const Log& log) {
    log.info("request", "agent", "x\ntime=1 level=error", "quote", "a\"b\\", "empty", "");
  });
  EXPECT_EQ(after_time(line),
            "level=info event=request agent=\"x\\ntime=1 level=error\" quote=\"a\\\"b\\\\\" "
            "empty=\"\"\n");
}

TEST(Log, NamesItsLevels) {
  for (const char* name : {"debug", "info", "warning", "error", "off"}) {
    const auto level = parse_log_level(name);
    ASSERT_TRUE(level.ok()) << name;
    EXPECT_EQ(name_of(level.value()), name);
  }
  EXPECT_EQ(parse_log_level("loud").status().code(), Code::invalid_argument);
}

TEST(LogThreads, LinesDoNotMix) {
  const std::string text = logged(LogLevel::info, [](const Log& log) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) log.info("step", "number", 7);
      });
    for (auto& thread : threads) thread.join();
  });
  size_t n_lines = 0;
  for (size_t at = 0; at < text.size(); ++n_lines) {
    const size_t end = text.find('\n', at);
    EXPECT_EQ(after_time(text.substr(at, end - at)), "level=info event=step number=7");
    at = end + 1;
  }
  EXPECT_EQ(n_lines, 800u);
}

}  // namespace
}  // namespace millrace
