#include "lab/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/sqlite.h"

namespace millrace::lab {
namespace {

namespace fs = std::filesystem;

class StoreTest : public testing::Test {
 protected:
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("millrace_store_{}", getpid());
  const fs::path file = folder / "deep" / "lab.db";

  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }

  static std::vector<Row> some_rows(size_t n_samples) {
    Row row;
    row.op = "rmsnorm";
    row.problem = "1x576_f32";
    row.variant = "avx2";
    row.mode = "cold";
    row.us = {0.9, 1.0, 1.1};
    row.noise = INFINITY;
    row.bytes = 4612;
    row.samples_us.assign(n_samples, 1.25);
    row.twin_us.assign(n_samples, 1.5);
    row.mount.checked.n_rows = 36;
    row.witness = "plain";
    Row other = row;
    other.us = {-INFINITY, 2.0, INFINITY};
    other.variant = "avx512";
    return {row, other};
  }
  static RunHead head() { return {"cpu", "a machine", "{}", "abc", "{}", "bench"}; }

  void write_text(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string read_text(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  Status open_status() { return Store::open(file).status(); }
};

TEST_F(StoreTest, KeepsRunsRowsAndSamples) {
  int64_t id = 0;
  {
    auto store = Store::open(file);
    ASSERT_TRUE(store.ok()) << store.status().message();
    id = store->begin_run(head()).value();
    EXPECT_TRUE(store->add_ceilings(id, "before", "{}").ok());
    EXPECT_TRUE(store->add_rows(id, some_rows(20)).ok());
    EXPECT_TRUE(store->end_run(id, "done").ok());
  }
  auto store = Store::open(file);
  ASSERT_TRUE(store.ok());
  auto runs = store->runs(10);
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ((*runs)[0].state, "done");
  EXPECT_EQ((*runs)[0].n_results, 2);
  auto rows = store->rows(id);
  ASSERT_EQ(rows->size(), 2u);
  const Row& row = (*rows)[0];
  EXPECT_EQ(row.samples_us, some_rows(20)[0].samples_us);
  EXPECT_EQ(row.twin_us, some_rows(20)[0].twin_us);
  EXPECT_EQ(row.us.hi, 1.1);
  EXPECT_EQ(row.mount.checked.n_rows, 36u);
  EXPECT_EQ(row.witness, "plain");
  EXPECT_EQ(row.bytes, 4612);
  EXPECT_TRUE(std::isinf(row.noise));
  EXPECT_FALSE((*rows)[1].us.finite());
  EXPECT_EQ(store->rows(99).status().code(), Code::not_found);
}

TEST_F(StoreTest, WhatAGpuSaidOfItsRoundsIsKeptBesideItsRow) {
  auto store = Store::open(file);
  ASSERT_TRUE(store.ok());
  const int64_t id = store->begin_run(head()).value();
  std::vector<Row> rows = some_rows(3);
  rows[0].sm_mhz = {1980, 1975, 1980};
  rows[0].power_w = {401, 402, 403};
  rows[0].clock_reasons = {4, 4, 64};
  ASSERT_TRUE(store->add_rows(id, rows).ok());
  ASSERT_TRUE(store->end_run(id, "done").ok());
  const auto metrics = store->metrics(id).value();
  ASSERT_EQ(metrics.size(), 5u);
  EXPECT_EQ(metrics[2].name, "power");
  EXPECT_EQ(metrics[2].samples, rows[0].power_w);
  EXPECT_EQ(metrics[3].name, "clock_reasons");
  EXPECT_EQ(metrics[3].samples[2], 64);
  EXPECT_EQ(metrics[3].subject, metrics[0].subject);
  EXPECT_EQ(store->rows(id)->size(), 2u);
  EXPECT_EQ(store->problem_of(id).value(), "");
}

TEST_F(StoreTest, WhatIsToBeReadIsNotMade) {
  EXPECT_EQ(Store::open(file, Store::Missing::refuse).status().code(), Code::not_found);
  EXPECT_FALSE(fs::exists(file.parent_path()));
  write_text(file, "");
  EXPECT_EQ(Store::open(file, Store::Missing::refuse).status().code(), Code::not_found);
  EXPECT_EQ(fs::file_size(file), 0u);
  ASSERT_TRUE(Store::open(file).ok());
  EXPECT_TRUE(Store::open(file, Store::Missing::refuse).ok());
}

TEST_F(StoreTest, TwoProcessesShareIt) {
  auto a = Store::open(file), b = Store::open(file);
  ASSERT_TRUE(a.ok() && b.ok());
  const int64_t first = a->begin_run(head()).value(), second = b->begin_run(head()).value();
  EXPECT_NE(first, second);
  EXPECT_TRUE(a->add_rows(first, some_rows(3)).ok());
  EXPECT_TRUE(b->add_rows(second, some_rows(3)).ok());
  EXPECT_EQ(a->runs(10)->size(), 2u);
}

TEST_F(StoreTest, ADamagedFileIsLeftAsItIs) {
  const std::string junk(5000, 'x');
  write_text(file, junk);
  EXPECT_EQ(open_status().code(), Code::corrupt);
  EXPECT_NE(open_status().message().find("--db"), std::string_view::npos);
  EXPECT_EQ(read_text(file), junk);
}

TEST_F(StoreTest, ATornFileIsAnErrorAndNoCrash) {
  {
    auto store = Store::open(file);
    const int64_t id = store->begin_run(head()).value();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->add_rows(id, some_rows(200)).ok());
  }
  std::string text = read_text(file);
  for (size_t i = 4096; i < text.size(); ++i) text[i] = static_cast<char>(i * 131);
  write_text(file, text);
  auto store = Store::open(file);
  if (!store.ok()) {
    EXPECT_EQ(store.status().code(), Code::corrupt);
    return;
  }
  EXPECT_FALSE(store->rows(1).ok());
  EXPECT_FALSE(store->add_rows(1, some_rows(200)).ok());
}

TEST_F(StoreTest, AForeignOrNewerDatabaseIsRefused) {
  fs::create_directories(file.parent_path());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "CREATE TABLE theirs(x)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_NE(open_status().message().find("another program"), std::string_view::npos);
  fs::remove(file);
  ASSERT_TRUE(Store::open(file).ok());
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(open_status().code(), Code::unsupported);
  EXPECT_NE(open_status().message().find("newer"), std::string_view::npos);
}

TEST_F(StoreTest, PlacesThatCannotBeWrittenAreErrors) {
  write_text(folder / "plain", "a file");
  EXPECT_EQ(Store::open(folder / "plain" / "lab.db").status().code(), Code::io_error);
  EXPECT_FALSE(Store::open(folder).ok());  // a folder
}

// In a child, as nobody where this is root: root writes anywhere.
TEST_F(StoreTest, AReadOnlyFolderIsAnError) {
  ASSERT_TRUE(Store::open(folder / "lab.db").ok());
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                              fs::perms::others_exec);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    const Status fresh = Store::open(folder / "new.db").status();
    const Status old = Store::open(folder / "lab.db").status();
    _exit(fresh.code() == Code::io_error && !old.ok() ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
}

// A file-size limit is how a full disk is staged here; SQLite sees the same failed write.
TEST_F(StoreTest, AFullDiskLosesNothingThatWasStored) {
  {
    auto store = Store::open(file);
    const int64_t id = store->begin_run(head()).value();
    ASSERT_TRUE(store->add_rows(id, some_rows(10)).ok());
  }
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{160 << 10, 160 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto store = Store::open(file);
    if (!store.ok()) _exit(3);
    auto id = store->begin_run(head());
    if (!id.ok()) _exit(4);
    Status status;
    for (int i = 0; i < 100 && status.ok(); ++i) status = store->add_rows(*id, some_rows(300));
    _exit(status.code() == Code::io_error ? 0 : 5);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  auto store = Store::open(file);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(store->rows(1)->size(), 2u);
  EXPECT_EQ(store->rows(1)->at(0).samples_us.size(), 10u);
}

}  // namespace
}  // namespace millrace::lab
