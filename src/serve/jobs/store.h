// The jobs of a server in one SQLite file: what was asked, the tokens drawn so far, how it ended. A
// connection belongs to one thread; the server has one that writes and one that reads. The folder
// is the user's own and belongs to one process at a time. What is damaged, foreign or newer is
// refused and left as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

struct sqlite3;

namespace millrace::serve {

// What is stored of a job's state. That one runs, or is stale, is a matter of the server.
enum class JobState : unsigned char { queued, paused, completed, failed, cancelled };
inline constexpr int kJobStates = 5;
std::string_view name_of(JobState state);
inline bool has_ended(JobState state) {
  return state != JobState::queued && state != JobState::paused;
}

// Of a job, what changes while it runs.
struct JobProgress {
  JobState state = JobState::queued;
  int64_t n_tokens = 0;  // committed
  int64_t n_cached =
      -1;              // tokens of the prompt that were remembered when it first ran; -1: not yet
  int64_t n_runs = 0;  // how often it was begun or gone on with
  int64_t started_s = 0, ended_s = 0;  // unix time; 0: not yet
  std::string end = {};                // JSON: how it ended
};

struct JobRow {
  int64_t n = 0;        // its place in the order of arrival
  std::string id = {};  // random; without the prefix that clients see
  std::string tenant = {}, api = {};
  std::string key = {};                 // Idempotency-Key; empty: none
  std::string body = {}, headers = {};  // of the request: as it came, and JSON
  std::string how = {};                 // JSON: what was made of them, the seed with it
  std::string root = {};                // JSON: what its tokens depend on
  int64_t created_s = 0;
  int64_t n_prompt = 0;
  std::vector<int32_t> prompt = {};
  JobProgress progress = {};
};

// The folder: made where it is missing, checked, and locked for as long as this lives.
class JobFolder {
 public:
  static Result<JobFolder> open(const std::string& path);
  ~JobFolder();
  JobFolder(JobFolder&& other) noexcept;
  JobFolder& operator=(JobFolder&&) = delete;
  std::string database() const { return path_ + "/jobs.db"; }

 private:
  JobFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;  // without symbolic links
  int lock_;
};

class JobStore {
 public:
  static Result<JobStore> open(const std::string& path);

  // Every change is made between these two, and lost without the second.
  Status begin();
  Status commit();
  void roll_back();

  Result<int64_t> insert(const JobRow& row);
  // Tokens from this place on; those that are there already are skipped, and a job that has ended
  // takes none. How many were added.
  Result<int64_t> append(int64_t n, int64_t at, std::span<const int32_t> tokens);
  // It runs (again).
  Status note_run(int64_t n, int64_t n_cached, int64_t now_s);
  // False where the job has ended already, or is gone.
  Result<bool> set_state(int64_t n, JobState state);
  Result<bool> end(int64_t n, JobState state, std::string_view how, int64_t now_s);
  Status remove(int64_t n);
  // Removes jobs that ended by `before_s`, and ended ones while all take more than `max_bytes`: of
  // the tenant that takes most, the one that ended first. How many.
  Result<int64_t> sweep(int64_t before_s, int64_t max_bytes);
  // The same for a tenant that wants more, which takes nothing from those that have less. False
  // where that is not enough: then nothing is removed.
  Result<bool> make_room(std::string_view tenant, int64_t max_bytes);
  Status copy_tokens(int64_t from, int64_t to);

  Result<std::optional<JobRow>> find(std::string_view tenant, std::string_view id) const;
  Result<std::optional<JobRow>> find_key(std::string_view tenant, std::string_view key) const;
  Result<std::optional<JobRow>> at(int64_t n) const;
  Result<std::optional<JobProgress>> progress(int64_t n) const;
  // At most so many, from the place `from` on.
  Result<std::vector<int32_t>> tokens(int64_t n, int64_t from, int64_t most) const;
  // A tenant's, the newest before `before` first, without their bodies and prompts.
  Result<std::vector<JobRow>> list(std::string_view tenant, int64_t before, int64_t most) const;
  // All that have not ended, the oldest first; likewise.
  Result<std::vector<JobRow>> unfinished() const;
  struct Counts {
    int64_t by_state[kJobStates] = {};
    int64_t n_bytes = 0;  // that the budget counts
  };
  Result<Counts> counts() const;
  // Of those that have not ended.
  struct Load {
    int64_t n_jobs = 0, n_bytes = 0;
  };
  Result<Load> load_of(std::string_view tenant) const;
  Result<int64_t> n_unfinished() const;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  JobStore() = default;
  Status prepare_schema();
  // What to remove, and whether it is enough. `tenant`: who wants more; null: nobody.
  struct Plan {
    std::vector<int64_t> gone = {};
    bool is_enough = false;
  };
  Result<Plan> plan(int64_t max_bytes, const std::string* tenant) const;
  Status remove_all(const std::vector<int64_t>& gone);

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

}  // namespace millrace::serve
