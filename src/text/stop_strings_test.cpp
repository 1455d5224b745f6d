#include "text/stop_strings.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(StopStrings, ends_before_the_first) {
  StopStrings stops({"END", "STOP", ""});
  EXPECT_EQ(stops.push("one ST"), "one ");
  EXPECT_EQ(stops.push("ART EN"), "START ");
  EXPECT_EQ(stops.push("D and STOP"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.flush(), "");
}

TEST(StopStrings, gives_back_what_was_no_stop) {
  StopStrings stops({"\n\nUser:"});
  EXPECT_EQ(stops.push("a\n"), "a");
  EXPECT_EQ(stops.push("\nUse"), "");
  EXPECT_EQ(stops.flush(), "\n\nUse");
  EXPECT_FALSE(stops.found());
}

TEST(StopStrings, takes_the_earliest_of_several) {
  StopStrings stops({"cd", "abcde"});
  EXPECT_EQ(stops.push("xabcde"), "x");
  EXPECT_TRUE(stops.found());
}

}  // namespace
}  // namespace millrace
