#include "serve/jobs/writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

namespace millrace::serve {
namespace {

namespace fs = std::filesystem;

class JobWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "millrace_writer_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    home_ = name;
  }
  void TearDown() override { fs::remove_all(home_); }
  JobStore open() { return std::move(JobStore::open(home_ / "jobs.db")).value(); }

  fs::path home_;
  JobMetrics metrics_;
};

TEST_F(JobWriterTest, TellsAfterTheCommit) {
  JobWriter writer(open(), metrics_, [](const Status&) {});
  const JobStore reader = open();
  std::promise<int64_t> made;
  const auto n = std::make_shared<int64_t>(0);
  writer.ask(
      [n](JobStore& store) -> Status {
        MILLRACE_ASSIGN(*n, store.insert({.id = "a", .tenant = "t", .root = "{}"}));
        return {};
      },
      [&, n](const Status& status) {
        EXPECT_TRUE(status.ok());
        EXPECT_TRUE(reader.find("t", "a").value());
        made.set_value(*n);
      });
  const int64_t job = made.get_future().get();
  std::atomic<int64_t> n_seen = 0;
  const auto then = std::make_shared<const JobWriter::Then>(
      [&](const Status&) { n_seen = reader.progress(job).value()->n_tokens; });
  for (int32_t i = 0; i < 1000; ++i) writer.token(job, i, i, then);
  writer.stop();
  EXPECT_EQ(n_seen, 1000);
  EXPECT_EQ(metrics_.n_tokens, 1000);
  EXPECT_EQ(reader.tokens(job, 0, 2000).value().size(), 1000u);
}

// What a client waits for is given up, what happened is kept, and in order.
TEST_F(JobWriterTest, TriesAgainWhatMustBeKept) {
  std::vector<bool> changes;
  std::atomic<bool> is_broken = true;
  std::promise<void> is_whole;
  {
    JobWriter writer(open(), metrics_,
                     [&](const Status& status) { changes.push_back(status.ok()); });
    std::promise<Status> refused;
    writer.keep(
        [&](JobStore& store) -> Status {
          if (is_broken) return error(Code::io_error, "no space left");
          return store.insert({.id = "a", .tenant = "t", .root = "{}"}).status();
        },
        [&](const Status& status) {
          EXPECT_TRUE(status.ok());
          is_whole.set_value();
        });
    writer.ask([](JobStore&) { return Status(); },
               [&](const Status& status) { refused.set_value(status); });
    EXPECT_FALSE(refused.get_future().get().ok());
    is_broken = false;
    is_whole.get_future().wait();
  }
  EXPECT_EQ(changes, (std::vector<bool>{false, true}));
  EXPECT_TRUE(open().find("t", "a").value());
}

}  // namespace
}  // namespace millrace::serve
