#include "serve/jobs/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace millrace::serve {
namespace {

namespace fs = std::filesystem;

class JobStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "millrace_jobs_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    home_ = name;
    folder_ = home_ / "jobs";
  }
  void TearDown() override { fs::remove_all(home_); }

  JobStore open() {
    fs::create_directories(folder_);
    auto out = JobStore::open(folder_ / "jobs.db");
    EXPECT_TRUE(out.ok()) << out.status().message();
    return std::move(out).value();
  }
  static JobRow row(const std::string& id, const std::string& tenant = "t") {
    JobRow out{.id = id, .tenant = tenant, .api = "messages", .body = std::string("{\0}", 3)};
    out.prompt = {1, 2, 3};
    out.root = "{}";
    return out;
  }
  static int64_t add(JobStore& store, const JobRow& row) {
    EXPECT_TRUE(store.begin().ok());
    const auto n = store.insert(row);
    EXPECT_TRUE(n.ok()) << n.status().message();
    EXPECT_TRUE(store.commit().ok());
    return n.value();
  }

  fs::path home_, folder_;
};

TEST_F(JobStoreTest, KeepsAJob) {
  JobStore store = open();
  JobRow one = row("a");
  one.key = "k";
  const int64_t n = add(store, one);
  EXPECT_EQ(store.append(n, 0, std::vector<int32_t>{7, 8}).value(), 2);
  EXPECT_EQ(store.append(n, 2, std::vector<int32_t>{9}).value(), 1);
  ASSERT_TRUE(store.note_run(n, 2, 100).ok());
  ASSERT_TRUE(store.note_run(n, 1, 200).ok());
  const JobStore other = open();
  const JobRow read = *other.find("t", "a").value();
  EXPECT_EQ(read.body, one.body);
  EXPECT_EQ(read.prompt, one.prompt);
  EXPECT_EQ(read.progress.n_tokens, 3);
  EXPECT_EQ(read.progress.n_runs, 2);
  EXPECT_EQ(read.progress.n_cached, 2);
  EXPECT_EQ(read.progress.started_s, 100);
  EXPECT_EQ(other.tokens(n, 0, 100).value(), (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(other.tokens(n, 1, 1).value(), (std::vector<int32_t>{8}));
  EXPECT_EQ(other.tokens(n, 2, 5).value(), (std::vector<int32_t>{9}));
  EXPECT_TRUE(other.tokens(n, 9, 5).value().empty());
  EXPECT_EQ(other.find_key("t", "k").value()->id, "a");
  EXPECT_FALSE(other.find("u", "a").value());
  EXPECT_FALSE(other.find_key("u", "k").value());
}

TEST_F(JobStoreTest, TokensComeOnceAndWithoutAGap) {
  JobStore store = open();
  const int64_t n = add(store, row("a"));
  EXPECT_EQ(store.append(n, 0, std::vector<int32_t>{1, 2, 3}).value(), 3);
  EXPECT_EQ(store.append(n, 1, std::vector<int32_t>{2, 3, 4}).value(), 1);
  EXPECT_EQ(store.append(n, 0, std::vector<int32_t>{1}).value(), 0);
  EXPECT_EQ(store.append(n, 9, std::vector<int32_t>{1}).status().code(), Code::corrupt);
  EXPECT_EQ(store.tokens(n, 0, 9).value(), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_TRUE(store.end(n, JobState::cancelled, "{}", 5).value());
  EXPECT_EQ(store.append(n, 4, std::vector<int32_t>{5}).value(), 0);
  EXPECT_EQ(store.append(n + 1, 0, std::vector<int32_t>{5}).value(), 0);
}

TEST_F(JobStoreTest, AJobEndsOnce) {
  JobStore store = open();
  const int64_t n = add(store, row("a"));
  EXPECT_TRUE(store.set_state(n, JobState::paused).value());
  EXPECT_TRUE(store.end(n, JobState::completed, "{}", 5).value());
  EXPECT_FALSE(store.end(n, JobState::cancelled, "{}", 6).value());
  EXPECT_FALSE(store.set_state(n, JobState::queued).value());
  EXPECT_EQ(store.progress(n).value()->state, JobState::completed);
}

TEST_F(JobStoreTest, WhatIsNotCommittedIsNotThere) {
  JobStore store = open();
  ASSERT_TRUE(store.begin().ok());
  ASSERT_TRUE(store.insert(row("a")).ok());
  EXPECT_FALSE(open().find("t", "a").value());
  store.roll_back();
  EXPECT_FALSE(store.find("t", "a").value());
}

TEST_F(JobStoreTest, OneKeyIsOneJobOfATenant) {
  JobStore store = open();
  JobRow one = row("a");
  one.key = "k";
  add(store, one);
  one.id = "b";
  EXPECT_FALSE(store.insert(one).ok());
  one.tenant = "other";
  EXPECT_TRUE(store.insert(one).ok());
  EXPECT_TRUE(store.insert(row("c")).ok());
  EXPECT_TRUE(store.insert(row("d")).ok());
}

TEST_F(JobStoreTest, TheBudgetDropsTheLongestEndedOnly) {
  JobStore store = open();
  for (const char* id : {"a", "b", "c", "d"}) add(store, row(id));
  for (int64_t n = 1; n <= 3; ++n)
    EXPECT_TRUE(store.end(n, JobState::completed, "{}", 10 * n).value());
  const int64_t n_bytes = store.counts()->n_bytes;
  EXPECT_EQ(store.sweep(0, n_bytes).value(), 0);
  EXPECT_EQ(store.sweep(11, n_bytes).value(), 1);
  EXPECT_FALSE(store.find("t", "a").value());
  EXPECT_EQ(store.sweep(0, n_bytes / 2).value(), 1);
  EXPECT_FALSE(store.find("t", "b").value());
  EXPECT_EQ(store.sweep(1000, 0).value(), 1);
  EXPECT_TRUE(store.find("t", "d").value());  // it has not ended
}

TEST_F(JobStoreTest, TheBudgetTakesFromWhoHasMost) {
  JobStore store = open();
  for (const char* id : {"a", "b", "c", "d"}) add(store, row(id, "much"));
  add(store, row("x", "little"));
  for (int64_t n = 1; n <= 5; ++n)  // the one of `little` ended first
    EXPECT_TRUE(store.end(n, JobState::completed, "{}", n == 5 ? 1 : 10 * n).value());
  const int64_t n_bytes = store.counts()->n_bytes;
  EXPECT_EQ(store.sweep(0, n_bytes / 2).value(), 3);
  EXPECT_TRUE(store.find("little", "x").value());
  EXPECT_TRUE(store.find("much", "d").value());
}

TEST_F(JobStoreTest, WhoWantsMoreTakesNothingFromWhoHasLess) {
  JobStore store = open();
  add(store, row("x", "little"));
  EXPECT_TRUE(store.end(1, JobState::completed, "{}", 1).value());
  for (const char* id : {"a", "b", "c", "d"}) add(store, row(id, "much"));
  const int64_t n_bytes = store.counts()->n_bytes;
  EXPECT_FALSE(store.make_room("much", n_bytes - 1).value());  // all of its own are unfinished
  EXPECT_TRUE(store.find("little", "x").value());
  EXPECT_TRUE(store.end(2, JobState::completed, "{}", 2).value());
  EXPECT_FALSE(store.make_room("much", n_bytes / 2).value());
  EXPECT_TRUE(store.find("much", "a").value()) << "nothing is removed where it is not enough";
  EXPECT_TRUE(store.make_room("much", n_bytes - 1).value());
  EXPECT_FALSE(store.find("much", "a").value());
  EXPECT_TRUE(store.find("little", "x").value());
  add(store, row("y", "little"));
  EXPECT_TRUE(store.end(3, JobState::completed, "{}", 3).value());
  EXPECT_TRUE(store.make_room("little", n_bytes - 1).value());
  EXPECT_FALSE(store.find("much", "b").value());
}

TEST_F(JobStoreTest, CountsWhatHasNotEnded) {
  JobStore store = open();
  for (const char* id : {"a", "b", "c"}) add(store, row(id));
  add(store, row("x", "other"));
  EXPECT_TRUE(store.set_state(1, JobState::paused).value());
  EXPECT_TRUE(store.end(2, JobState::failed, "{}", 5).value());
  EXPECT_EQ(store.n_unfinished().value(), 3);
  EXPECT_EQ(store.load_of("t")->n_jobs, 2);
  EXPECT_EQ(store.load_of("nobody")->n_jobs, 0);
  EXPECT_EQ(store.load_of("nobody")->n_bytes, 0);
  const int64_t n_bytes = store.load_of("t")->n_bytes;
  for (int32_t i = 0; i < 100; ++i) ASSERT_TRUE(store.append(1, i, std::vector<int32_t>{i}).ok());
  // A token that is committed alone takes more than its four bytes.
  EXPECT_GE(store.load_of("t")->n_bytes - n_bytes, 100 * 16);
  const int64_t copy = add(store, row("copy"));
  ASSERT_TRUE(store.copy_tokens(1, copy).ok());
  EXPECT_EQ(store.load_of("t")->n_bytes, 2 * n_bytes + 200 * 20 - n_bytes / 2);
}

TEST_F(JobStoreTest, ForeignDamagedAndNewerFilesStayAsTheyAre) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "jobs.db") << std::string(5000, 'x');
  EXPECT_EQ(JobStore::open(folder_ / "jobs.db").status().code(), Code::corrupt);
  EXPECT_EQ(fs::file_size(folder_ / "jobs.db"), 5000u);
  fs::create_symlink(home_ / "elsewhere", folder_ / "link.db");
  EXPECT_FALSE(JobStore::open(folder_ / "link.db").ok());
  EXPECT_FALSE(fs::exists(home_ / "elsewhere"));
}

// Cut anywhere, the log that SQLite writes first gives what was committed before, or is refused.
TEST_F(JobStoreTest, ATornLogLosesNothingThatStoodBefore) {
  {
    JobStore store = open();
    const int64_t n = add(store, row("a"));
    for (int32_t i = 0; i < 20; ++i) {
      ASSERT_TRUE(store.begin().ok());
      ASSERT_TRUE(store.append(n, i, std::vector<int32_t>{i}).ok());
      ASSERT_TRUE(store.commit().ok());
    }
    fs::copy(folder_, home_ / "torn", fs::copy_options::recursive);
  }
  const fs::path log = home_ / "torn" / "jobs.db-wal";
  ASSERT_TRUE(fs::exists(log));
  int64_t n_before = INT64_MAX;
  for (auto size = static_cast<int64_t>(fs::file_size(log)); size > 0; size -= 1777) {
    fs::remove_all(home_ / "try");
    fs::copy(home_ / "torn", home_ / "try", fs::copy_options::recursive);
    fs::resize_file(home_ / "try" / "jobs.db-wal", static_cast<uintmax_t>(size));
    fs::remove(home_ / "try" / "jobs.db-shm");
    auto store = JobStore::open(home_ / "try" / "jobs.db");
    if (!store.ok()) continue;
    const auto found = store->find("t", "a");
    if (!found.ok() || !found.value()) continue;
    const int64_t n_tokens = found.value()->progress.n_tokens;
    EXPECT_LE(n_tokens, n_before);  // a shorter log has no more
    n_before = n_tokens;
    const auto tokens = store->tokens(found.value()->n, 0, 100);
    ASSERT_TRUE(tokens.ok());
    ASSERT_EQ(std::ssize(tokens.value()), n_tokens);
    for (int32_t i = 0; i < n_tokens; ++i) EXPECT_EQ(tokens.value()[static_cast<size_t>(i)], i);
  }
}

TEST_F(JobStoreTest, AFolderIsOneProcessesAndOursAlone) {
  {
    const auto first = JobFolder::open(folder_);
    ASSERT_TRUE(first.ok()) << first.status().message();
    struct stat is {};
    ASSERT_EQ(stat(folder_.c_str(), &is), 0);
    EXPECT_EQ(is.st_mode & 0777, 0700u);
    EXPECT_EQ(JobFolder::open(folder_).status().code(), Code::unavailable);
  }
  EXPECT_TRUE(JobFolder::open(folder_).ok());
  chmod(folder_.c_str(), 0755);
  EXPECT_FALSE(JobFolder::open(folder_).ok());
  fs::create_symlink(home_, home_ / "link");
  EXPECT_FALSE(JobFolder::open(home_ / "link").ok());
}

}  // namespace
}  // namespace millrace::serve
