// The program from outside: exit codes, what goes to which stream, bad input.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Ran {
  int exit_code;
  std::string text;
};

// Runs `millrace ARGS` in a shell, so that ARGS may redirect.
Ran millrace(const std::string& args, const std::string& before = "") {
  const std::string line = before + " " MILLRACE_PROGRAM " " + args;
  std::FILE* pipe = popen(line.c_str(), "r");
  Ran ran{-1, ""};
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) ran.text.append(part, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  return ran;
}

bool holds(const Ran& ran, const char* part) {
  return ran.text.find(part) != std::string::npos;
}

TEST(Cli, TellsItsVersionAndItsCommands) {
  EXPECT_EQ(millrace("--version").exit_code, 0);
  EXPECT_TRUE(holds(millrace("--version"), "millrace "));
  const Ran help = millrace("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"doctor", "selftest"}) EXPECT_TRUE(holds(help, command)) << command;
}

TEST(Cli, WrongArgumentsAreNamedAndExitWithTwo) {
  for (const char* args : {"", "bogus", "--bogus", "doctor --bogus", "doctor extra"}) {
    const Ran ran = millrace(std::string(args) + " 2>/dev/null");
    EXPECT_EQ(ran.exit_code, 2) << args;
    EXPECT_EQ(ran.text, "") << args;
  }
  EXPECT_TRUE(holds(millrace("bogus 2>&1"), "no command 'bogus'"));
  EXPECT_TRUE(holds(millrace("doctor --bogus 2>&1"), "--bogus"));
}

TEST(Cli, AnUnknownLogLevelIsRefused) {
  const Ran ran = millrace("doctor 2>&1", "MILLRACE_LOG=loud");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(holds(ran, "loud"));
}

TEST(Cli, DoctorPrintsATableWithoutColoursIntoAPipe) {
  const Ran ran = millrace("doctor");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* part : {"Machine", "Ceilings", "GB/s", "GMAC/s", "Findings"})
    EXPECT_TRUE(holds(ran, part)) << part;
  EXPECT_FALSE(holds(ran, "\x1b["));
}

TEST(Cli, DoctorPrintsJsonAndNothingElse) {
  const Ran ran = millrace("doctor --json");
  EXPECT_EQ(ran.exit_code, 0);
  const auto json = nlohmann::json::parse(ran.text, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_GE(json["machine"]["n_cpus"], 1);
  EXPECT_GT(json["ceilings"]["read_gbps_all"], 0);
  EXPECT_TRUE(json["findings"].is_array());
  EXPECT_TRUE(json["usable"]);
}

TEST(Cli, AFullDiskIsAFailure) {
  const Ran ran = millrace("doctor 2>&1 >/dev/full");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(holds(ran, "cannot write"));
}

}  // namespace
