#include "serve/jobs/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/sqlite.h"

namespace millrace::serve {
namespace {

constexpr int64_t kApplication = 0x4d4c4a42;  // "MLJB"
constexpr int64_t kSchema = 1;
constexpr int kBusyMs = 5000;
// A job without tokens takes about so much beside its texts, and a commit of tokens beside these.
constexpr int64_t kRowBytes = 512, kTokenRowBytes = 16;

constexpr char kTables[] = R"sql(
CREATE TABLE jobs(
  n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,
  api TEXT NOT NULL, key TEXT, created_s INTEGER NOT NULL, n_prompt INTEGER NOT NULL,
  state INTEGER NOT NULL, n_tokens INTEGER NOT NULL, n_cached INTEGER NOT NULL,
  n_runs INTEGER NOT NULL, started_s INTEGER NOT NULL, ended_s INTEGER NOT NULL,
  bytes INTEGER NOT NULL, end TEXT NOT NULL, root TEXT NOT NULL, how TEXT NOT NULL,
  headers TEXT NOT NULL, body BLOB NOT NULL, prompt BLOB NOT NULL);  -- the large ones last
CREATE UNIQUE INDEX jobs_by_key ON jobs(tenant, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_by_tenant ON jobs(tenant, n);
CREATE INDEX jobs_by_state ON jobs(state, ended_s);
CREATE TABLE tokens(job INTEGER NOT NULL, at INTEGER NOT NULL, ids BLOB NOT NULL,
  PRIMARY KEY(job, at)) WITHOUT ROWID;
)sql";

// All that counting and the budget read of a job, so that they need not read what was asked. Apart,
// because the first files of this schema lack it.
constexpr char kIndex[] =
    "CREATE INDEX IF NOT EXISTS jobs_by_size ON jobs(tenant, ended_s, state, bytes)";

#define MILLRACE_JOB_PROGRESS "state, n_tokens, n_cached, n_runs, started_s, ended_s, end"
#define MILLRACE_JOB_LIGHT \
  MILLRACE_JOB_PROGRESS ", n, id, tenant, api, key, how, root, created_s, n_prompt"

std::string_view bytes_of(std::span<const int32_t> ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()};
}

Result<std::vector<int32_t>> ids_of(const std::string& bytes, std::string_view path) {
  if (bytes.size() % sizeof(int32_t) != 0)
    return error(Code::corrupt, "{} has {} bytes where token ids should be", path, bytes.size());
  std::vector<int32_t> out(bytes.size() / sizeof(int32_t));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Result<JobProgress> read_progress(const Query& q, std::string_view path) {
  const int64_t state = q.integer(0);
  if (state < 0 || state >= kJobStates)
    return error(Code::corrupt, "{} has a job in state {}", path, state);
  return JobProgress{.state = static_cast<JobState>(state),
                     .n_tokens = q.integer(1),
                     .n_cached = q.integer(2),
                     .n_runs = q.integer(3),
                     .started_s = q.integer(4),
                     .ended_s = q.integer(5),
                     .end = q.text(6)};
}

Result<JobRow> read_light(const Query& q, std::string_view path) {
  JobRow out;
  MILLRACE_ASSIGN(out.progress, read_progress(q, path));
  out.n = q.integer(7);
  out.id = q.text(8);
  out.tenant = q.text(9);
  out.api = q.text(10);
  out.key = q.text(11);
  out.how = q.text(12);
  out.root = q.text(13);
  out.created_s = q.integer(14);
  out.n_prompt = q.integer(15);
  return out;
}

Status folder_failure(const std::string& path, const char* why) {
  return error(Code::io_error, "cannot keep jobs in {}: {}; --jobs names another folder", path,
               why);
}

// Ours alone: others could read what was asked, or put something else there.
Status check_folder(const std::string& path) {
  struct stat is {};
  if (lstat(path.c_str(), &is) != 0) return folder_failure(path, std::strerror(errno));
  if (S_ISLNK(is.st_mode)) return folder_failure(path, "it is a symbolic link");
  if (!S_ISDIR(is.st_mode)) return folder_failure(path, "it is no folder");
  if (is.st_uid != geteuid()) return folder_failure(path, "it belongs to another user");
  if ((is.st_mode & 077) != 0) return folder_failure(path, "others may look into it (chmod 700)");
  return {};
}

}  // namespace

std::string_view name_of(JobState state) {
  constexpr std::string_view kNames[] = {"queued", "paused", "completed", "failed", "cancelled"};
  return kNames[static_cast<size_t>(state)];
}

Result<JobFolder> JobFolder::open(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return folder_failure(path, std::strerror(errno));
  MILLRACE_TRY(check_folder(path));
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return folder_failure(path, std::strerror(errno));
  std::string real = resolved;
  std::free(resolved);
  const int lock =
      ::open((real + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return folder_failure(path, std::strerror(errno));
  JobFolder out(std::move(real), lock);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    return error(Code::unavailable,
                 "another server keeps its jobs in {}; --jobs names another folder", path);
  return out;
}

JobFolder::JobFolder(JobFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

JobFolder::~JobFolder() {
  if (lock_ >= 0) close(lock_);
}

void JobStore::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

Result<JobStore> JobStore::open(const std::string& path) {
  JobStore out;
  out.path_ = path;
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  out.db_.reset(db);
  if (code != SQLITE_OK) return sqlite_failure(db, out.path_);
  sqlite3_busy_timeout(db, kBusyMs);
  MILLRACE_TRY(out.prepare_schema());
  return out;
}

Status JobStore::prepare_schema() {
  sqlite3* db = db_.get();
  MILLRACE_ASSIGN(const int64_t application, integer_of(db, path_, "PRAGMA application_id"));
  MILLRACE_ASSIGN(const int64_t version, integer_of(db, path_, "PRAGMA user_version"));
  MILLRACE_ASSIGN(const int64_t n_tables,
                  integer_of(db, path_, "SELECT count(*) FROM sqlite_master"));
  const bool is_new = application == 0 && version == 0 && n_tables == 0;
  if (!is_new && application != kApplication)
    return error(Code::corrupt,
                 "{} is an SQLite database of another program; it was not changed: --jobs names "
                 "another folder",
                 path_);
  if (!is_new && version != kSchema)
    return error(Code::unsupported,
                 "{} has schema {}, and this program knows {}; it was not changed: use the version "
                 "that wrote it, or name another folder with --jobs",
                 path_, version, kSchema);
  if (is_new) MILLRACE_TRY(execute(db, path_, "PRAGMA auto_vacuum = INCREMENTAL"));
  MILLRACE_TRY(execute(db, path_, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
  if (!is_new) return execute(db, path_, kIndex);
  Transaction transaction(db, path_);
  MILLRACE_TRY(transaction.begin());
  MILLRACE_TRY(execute(db, path_, kTables));
  MILLRACE_TRY(execute(db, path_, kIndex));
  MILLRACE_TRY(execute(db, path_, fmt::format("PRAGMA application_id = {}", kApplication)));
  MILLRACE_TRY(execute(db, path_, fmt::format("PRAGMA user_version = {}", kSchema)));
  return transaction.commit();
}

Status JobStore::begin() {
  return execute(db_.get(), path_, "BEGIN IMMEDIATE");
}

Status JobStore::commit() {
  return execute(db_.get(), path_, "COMMIT");
}

void JobStore::roll_back() {
  sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<int64_t> JobStore::insert(const JobRow& row) {
  Query query(db_.get(), path_,
              "INSERT INTO jobs(id, tenant, api, key, body, headers, how, root, created_s,"
              " n_prompt, prompt, state, n_tokens, n_cached, n_runs, started_s, ended_s, end,"
              " bytes) VALUES(?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, 0, -1, 0, 0, 0, '',"
              " ?)");
  const auto n_bytes = static_cast<int64_t>(row.body.size() + row.headers.size() + row.how.size() +
                                            4 * row.prompt.size()) +
                       kRowBytes;
  query.bind(row.id, row.tenant, row.api, row.key, Blob{row.body}, row.headers, row.how, row.root,
             row.created_s, row.prompt.size(), Blob{bytes_of(row.prompt)},
             static_cast<int>(row.progress.state), n_bytes);
  MILLRACE_TRY(query.run());
  return sqlite3_last_insert_rowid(db_.get());
}

Result<int64_t> JobStore::append(int64_t n, int64_t at, std::span<const int32_t> tokens) {
  MILLRACE_ASSIGN(const auto now, progress(n));
  if (!now || has_ended(now->state)) return int64_t{0};
  // An earlier run may have drawn them too: they are the same.
  const int64_t n_known = std::clamp<int64_t>(now->n_tokens - at, 0, std::ssize(tokens));
  tokens = tokens.subspan(static_cast<size_t>(n_known));
  if (tokens.empty()) return int64_t{0};
  at += n_known;
  if (at != now->n_tokens)
    return error(Code::corrupt,
                 "{}: job {} has {} tokens, and the next is number {}; did another "
                 "program change the file?",
                 path_, n, now->n_tokens, at);
  Query add(db_.get(), path_, "INSERT INTO tokens(job, at, ids) VALUES(?, ?, ?)");
  MILLRACE_TRY(add.bind(n, at, Blob{bytes_of(tokens)}).run());
  Query count(db_.get(), path_,
              "UPDATE jobs SET n_tokens = n_tokens + ?1, bytes = bytes + 4 * ?1 + ?3 WHERE n = ?2");
  MILLRACE_TRY(count.bind(std::ssize(tokens), n, kTokenRowBytes).run());
  return std::ssize(tokens);
}

Status JobStore::note_run(int64_t n, int64_t n_cached, int64_t now_s) {
  Query query(db_.get(), path_,
              "UPDATE jobs SET n_runs = n_runs + 1,"
              " n_cached = CASE WHEN n_cached < 0 THEN ?2 ELSE n_cached END,"
              " started_s = CASE WHEN started_s = 0 THEN ?3 ELSE started_s END WHERE n = ?1");
  return query.bind(n, n_cached, now_s).run();
}

Result<bool> JobStore::set_state(int64_t n, JobState state) {
  Query query(db_.get(), path_, "UPDATE jobs SET state = ?2 WHERE n = ?1 AND state <= 1");
  MILLRACE_TRY(query.bind(n, static_cast<int>(state)).run());
  return sqlite3_changes(db_.get()) > 0;
}

Result<bool> JobStore::end(int64_t n, JobState state, std::string_view how, int64_t now_s) {
  Query query(db_.get(), path_,
              "UPDATE jobs SET state = ?2, end = ?3, ended_s = ?4 WHERE n = ?1 AND state <= 1");
  MILLRACE_TRY(query.bind(n, static_cast<int>(state), how, now_s).run());
  return sqlite3_changes(db_.get()) > 0;
}

Status JobStore::remove(int64_t n) {
  for (const char* sql : {"DELETE FROM tokens WHERE job = ?", "DELETE FROM jobs WHERE n = ?"}) {
    Query query(db_.get(), path_, sql);
    MILLRACE_TRY(query.bind(n).run());
  }
  return {};
}

Status JobStore::remove_all(const std::vector<int64_t>& gone) {
  for (const int64_t n : gone) MILLRACE_TRY(remove(n));
  if (gone.empty()) return {};
  return execute(db_.get(), path_, "PRAGMA incremental_vacuum(1000)");
}

namespace {

// A tenant's share of the store, and its ended jobs, the first ended first.
struct Holder {
  int64_t n_bytes = 0;
  std::unique_ptr<Query> ended = {};
  bool has_ended = true;
};
using Holders = std::map<std::string, Holder>;

// Who takes most, and at least so much, of those who may have something to give.
Holders::iterator heaviest(Holders& holders, int64_t n_least) {
  auto most = holders.end();
  for (auto it = holders.begin(); it != holders.end(); ++it)
    if (it->second.has_ended && it->second.n_bytes >= n_least &&
        (most == holders.end() || it->second.n_bytes > most->second.n_bytes))
      most = it;
  return most;
}

}  // namespace

Result<JobStore::Plan> JobStore::plan(int64_t max_bytes, const std::string* tenant) const {
  Holders holders;
  int64_t n_all = 0;
  Query sums(db_.get(), path_, "SELECT tenant, sum(bytes) FROM jobs GROUP BY tenant");
  for (;;) {
    MILLRACE_ASSIGN(const bool more, sums.step());
    if (!more) break;
    holders[sums.text(0)].n_bytes = sums.integer(1);
    n_all += sums.integer(1);
  }
  Plan out;
  while (n_all > max_bytes) {
    const int64_t n_least = tenant == nullptr ? 0 : holders[*tenant].n_bytes;
    const auto most = heaviest(holders, n_least);
    if (most == holders.end()) return out;
    auto& [name, holder] = *most;
    if (!holder.ended) {
      holder.ended = std::make_unique<Query>(
          db_.get(), path_,
          "SELECT n, bytes FROM jobs WHERE tenant = ? AND ended_s > 0 ORDER BY ended_s");
      holder.ended->bind(name);
    }
    MILLRACE_ASSIGN(holder.has_ended, holder.ended->step());
    if (!holder.has_ended) continue;
    out.gone.push_back(holder.ended->integer(0));
    holder.n_bytes -= holder.ended->integer(1);
    n_all -= holder.ended->integer(1);
  }
  out.is_enough = true;
  return out;
}

Result<int64_t> JobStore::sweep(int64_t before_s, int64_t max_bytes) {
  std::vector<int64_t> expired;
  {
    Query query(db_.get(), path_, "SELECT n FROM jobs WHERE state > 1 AND ended_s <= ?");
    query.bind(before_s);
    for (;;) {
      MILLRACE_ASSIGN(const bool more, query.step());
      if (!more) break;
      expired.push_back(query.integer(0));
    }
  }
  MILLRACE_TRY(remove_all(expired));
  MILLRACE_ASSIGN(const Plan over, plan(max_bytes, nullptr));
  MILLRACE_TRY(remove_all(over.gone));
  return std::ssize(expired) + std::ssize(over.gone);
}

Result<bool> JobStore::make_room(std::string_view tenant, int64_t max_bytes) {
  const std::string name(tenant);
  MILLRACE_ASSIGN(const Plan over, plan(max_bytes, &name));
  if (!over.is_enough) return false;
  MILLRACE_TRY(remove_all(over.gone));
  return true;
}

Status JobStore::copy_tokens(int64_t from, int64_t to) {
  Query copy(db_.get(), path_,
             "INSERT INTO tokens(job, at, ids) SELECT ?2, at, ids FROM tokens WHERE job = ?1");
  MILLRACE_TRY(copy.bind(from, to).run());
  Query count(db_.get(), path_,
              "UPDATE jobs SET n_tokens = (SELECT n_tokens FROM jobs WHERE n = ?1),"
              " bytes = bytes + (SELECT coalesce(sum(length(ids) + ?3), 0) FROM tokens WHERE job ="
              " ?1) WHERE n = ?2");
  return count.bind(from, to, kTokenRowBytes).run();
}

namespace {

#define MILLRACE_JOB_WHOLE "SELECT " MILLRACE_JOB_LIGHT ", body, headers, prompt FROM jobs WHERE "

Result<std::optional<JobRow>> read_whole(Query& query, std::string_view path) {
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found) return std::optional<JobRow>();
  MILLRACE_ASSIGN(JobRow out, read_light(query, path));
  out.body = query.blob(16);
  out.headers = query.text(17);
  MILLRACE_ASSIGN(out.prompt, ids_of(query.blob(18), path));
  return std::optional(std::move(out));
}

}  // namespace

Result<std::optional<JobRow>> JobStore::find(std::string_view tenant, std::string_view id) const {
  Query query(db_.get(), path_, MILLRACE_JOB_WHOLE "tenant = ? AND id = ?");
  return read_whole(query.bind(tenant, id), path_);
}

Result<std::optional<JobRow>> JobStore::find_key(std::string_view tenant,
                                                 std::string_view key) const {
  Query query(db_.get(), path_, MILLRACE_JOB_WHOLE "tenant = ? AND key = ?");
  return read_whole(query.bind(tenant, key), path_);
}

Result<std::optional<JobRow>> JobStore::at(int64_t n) const {
  Query query(db_.get(), path_, MILLRACE_JOB_WHOLE "n = ?");
  return read_whole(query.bind(n), path_);
}

Result<std::optional<JobProgress>> JobStore::progress(int64_t n) const {
  Query query(db_.get(), path_, "SELECT " MILLRACE_JOB_PROGRESS " FROM jobs WHERE n = ?");
  query.bind(n);
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found) return std::optional<JobProgress>();
  MILLRACE_ASSIGN(JobProgress out, read_progress(query, path_));
  return std::optional(std::move(out));
}

Result<std::vector<int32_t>> JobStore::tokens(int64_t n, int64_t from, int64_t most) const {
  Query query(db_.get(), path_,
              "SELECT at, ids FROM tokens WHERE job = ?1 AND at >= coalesce((SELECT max(at) FROM"
              " tokens WHERE job = ?1 AND at <= ?2), 0) ORDER BY at");
  query.bind(n, from);
  std::vector<int32_t> out;
  while (std::ssize(out) < most) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) break;
    MILLRACE_ASSIGN(const std::vector<int32_t> ids, ids_of(query.blob(1), path_));
    const int64_t skipped = from + std::ssize(out) - query.integer(0);
    if (skipped < 0)
      return error(Code::corrupt, "{} lacks tokens of job {} before {}", path_, n,
                   query.integer(0));
    if (skipped >= std::ssize(ids)) continue;
    const int64_t n_taken = std::min(std::ssize(ids) - skipped, most - std::ssize(out));
    out.insert(out.end(), ids.begin() + skipped, ids.begin() + skipped + n_taken);
  }
  return out;
}

namespace {

Result<std::vector<JobRow>> read_all(Query& query, std::string_view path) {
  std::vector<JobRow> out;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    MILLRACE_ASSIGN(JobRow row, read_light(query, path));
    out.push_back(std::move(row));
  }
}

}  // namespace

Result<std::vector<JobRow>> JobStore::list(std::string_view tenant, int64_t before,
                                           int64_t most) const {
  Query query(db_.get(), path_,
              "SELECT " MILLRACE_JOB_LIGHT
              " FROM jobs WHERE tenant = ? AND n < ? ORDER BY n DESC LIMIT ?");
  query.bind(tenant, before, most);
  return read_all(query, path_);
}

Result<std::vector<JobRow>> JobStore::unfinished() const {
  Query query(db_.get(), path_,
              "SELECT " MILLRACE_JOB_LIGHT " FROM jobs WHERE state <= 1 ORDER BY n");
  return read_all(query, path_);
}

Result<JobStore::Counts> JobStore::counts() const {
  Counts out;
  Query query(db_.get(), path_, "SELECT state, count(*), sum(bytes) FROM jobs GROUP BY state");
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    const int64_t state = query.integer(0);
    if (state < 0 || state >= kJobStates)
      return error(Code::corrupt, "{} has a job in state {}", path_, state);
    out.by_state[state] = query.integer(1);
    out.n_bytes += query.integer(2);
  }
}

Result<JobStore::Load> JobStore::load_of(std::string_view tenant) const {
  Query query(db_.get(), path_,
              "SELECT count(*), sum(bytes) FROM jobs WHERE tenant = ? AND ended_s = 0");
  MILLRACE_TRY(query.bind(tenant).step().status());
  return Load{query.integer(0), query.integer(1)};
}

Result<int64_t> JobStore::n_unfinished() const {
  return integer_of(db_.get(), path_, "SELECT count(*) FROM jobs WHERE state <= 1");
}

}  // namespace millrace::serve
