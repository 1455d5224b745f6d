#include "kernels/profile.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

std::string message_of(std::string_view text) {
  auto parsed = Profile::parse(text, "p.json");
  return parsed.ok() ? "ok" : std::string(parsed.status().message());
}

std::string with_entries(std::string_view entries) {
  return fmt::format(R"({{"format":"millrace-profile","version":1,"machine":"m","written":"w",)"
                     R"("entries":{}}})",
                     entries);
}

fs::path scratch(const char* name) {
  return fs::path(testing::TempDir()) / fmt::format("{}_{}", name, getpid());
}

TEST(Profile, SurvivesAFile) {
  Profile written;
  written.machine = "a machine";
  written.written = "2026-01-31T00:00:00Z";
  ASSERT_TRUE(written.add("matmul", "rows=1 n=576", "avx2"));
  EXPECT_FALSE(written.add("matmul", "rows=1 n=576", "avx512"));
  const fs::path path = scratch("profile.json");
  ASSERT_TRUE(written.write(path).ok());
  auto read = Profile::read(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->variant_for("matmul", "rows=1 n=576"), "avx2");
  EXPECT_EQ(read->variant_for("matmul", "rows=2 n=576"), "");
  EXPECT_EQ(read->to_json(), written.to_json());
  fs::remove(path);
}

TEST(Profile, ErrorsNameThePlace) {
  EXPECT_NE(message_of("").find("p.json: not JSON"), std::string::npos);
  EXPECT_NE(message_of("{\"format\": \"mill").find("not JSON"), std::string::npos);
  EXPECT_EQ(message_of("[]"), "p.json: document: not an object");
  EXPECT_EQ(message_of("{}"), "p.json: format: missing");
  EXPECT_EQ(message_of(R"({"format":"x"})"), "p.json: format: 'x', not 'millrace-profile'");
  EXPECT_EQ(message_of(R"({"format":"millrace-profile","version":"1"})"),
            "p.json: version: not an integer");
  EXPECT_NE(message_of(R"({"format":"millrace-profile","version":7,"entries":[]})").find("reads 1"),
            std::string::npos);
  EXPECT_EQ(message_of(with_entries("7")), "p.json: entries: not an array");
  EXPECT_EQ(message_of(with_entries("[7]")), "p.json: entries[0]: not an object");
  EXPECT_EQ(message_of(with_entries(R"([{"op":"a","key":"b"}])")),
            "p.json: entries[0].variant: missing");
  EXPECT_EQ(message_of(with_entries(R"([{"op":"a","key":[],"variant":"c"}])")),
            "p.json: entries[0].key: not a string");
  EXPECT_NE(message_of(with_entries(R"([{"op":"a","key":"b","variant":"c"},)"
                                    R"({"op":"a","key":"b","variant":"d"}])"))
                .find("entries[1]: a second entry"),
            std::string::npos);
}

TEST(Profile, RefusesWhatIsTooLarge) {
  const std::string long_key(600, 'k');
  EXPECT_NE(message_of(with_entries(R"([{"op":"a","variant":"c","key":")" + long_key + R"("}])"))
                .find("entries[0].key: 600 characters"),
            std::string::npos);
  EXPECT_NE(message_of(std::string(17 << 20, ' ')).find("at most"), std::string::npos);
  EXPECT_NE(message_of(std::string(1 << 20, '[')).find("not JSON"), std::string::npos);
}

TEST(Profile, AFailedWriteLeavesTheOldFile) {
  const fs::path folder = scratch("profile_folder");
  fs::create_directory(folder);
  Profile profile;
  EXPECT_FALSE(profile.write(folder).ok());  // a directory is in the way
  EXPECT_FALSE(profile.write(folder / "none" / "p.json").ok());
  EXPECT_FALSE(Profile::read(folder / "none.json").ok());
  EXPECT_FALSE(Profile::read(folder).ok());
  fs::remove_all(folder);
  fs::remove(folder.string() + ".part");
}

}  // namespace
}  // namespace millrace
