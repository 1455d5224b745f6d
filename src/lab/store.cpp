#include "lab/store.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/clock.h"
#include "base/sqlite.h"

namespace millrace::lab {
namespace {

constexpr int kSchema = 1;
constexpr int kApplication = 0x4d696c6c;  // "Mill": what `file` and foreign_file() know it by

constexpr const char* kTables = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, started TEXT NOT NULL, ended TEXT, state TEXT NOT NULL,
  device TEXT NOT NULL, machine TEXT NOT NULL, machine_json TEXT NOT NULL,
  build_commit TEXT NOT NULL, build_json TEXT NOT NULL, command TEXT NOT NULL);
CREATE TABLE ceilings(
  run_id INTEGER NOT NULL REFERENCES runs(id), at TEXT NOT NULL, label TEXT NOT NULL,
  json TEXT NOT NULL);
CREATE TABLE results(
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs(id),
  op TEXT NOT NULL, problem TEXT NOT NULL, key TEXT NOT NULL, variant TEXT NOT NULL,
  numerics TEXT NOT NULL, layout TEXT NOT NULL, isa TEXT NOT NULL, mode TEXT NOT NULL,
  n_lanes INTEGER NOT NULL, us REAL NOT NULL, us_lo REAL, us_hi REAL, bytes REAL, macs REAL,
  gbps REAL, gflops REAL, floor_us REAL, floor_percent REAL, isa_percent REAL, bound TEXT,
  noise REAL, ring_entries INTEGER, ring_bytes REAL, verified_whole INTEGER,
  verified_sampled INTEGER);
CREATE INDEX results_by_run ON results(run_id);
CREATE TABLE samples(
  result_id INTEGER NOT NULL REFERENCES results(id), twin INTEGER NOT NULL, round INTEGER NOT NULL,
  us REAL NOT NULL, PRIMARY KEY(result_id, twin, round)) WITHOUT ROWID;
)sql";

Status exec(sqlite3* db, std::string_view path, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_failure(db, path);
}

Result<int64_t> integer_of(sqlite3* db, std::string_view path, const char* sql) {
  Query query(db, path, sql);
  MILLRACE_ASSIGN(const bool row, query.step());
  return row ? query.integer(0) : int64_t{0};
}

double or_infinite(const Query& query, int column, double sign) {
  return query.is_null(column) ? sign * std::numeric_limits<double>::infinity()
                               : query.real(column);
}

Row read_row(const Query& q) {
  Row row;
  int c = 1;
  for (std::string* text : {&row.op, &row.problem, &row.key, &row.variant, &row.numerics,
                            &row.layout, &row.isa, &row.mode})
    *text = q.text(c++);
  row.n_lanes = static_cast<int>(q.integer(c++));
  row.us.mid = q.real(c++);
  row.us.lo = or_infinite(q, c++, -1);
  row.us.hi = or_infinite(q, c++, 1);
  for (double* value : {&row.bytes, &row.macs, &row.gbps, &row.gflops, &row.floor_us,
                        &row.floor_percent, &row.isa_percent})
    *value = q.real(c++);
  row.bound = q.text(c++);
  row.noise = or_infinite(q, c++, 1);
  row.mount.n_entries = static_cast<size_t>(q.integer(c++));
  row.mount.cold_bytes = q.real(c++);
  row.mount.checked.n_whole = static_cast<size_t>(q.integer(c++));
  row.mount.checked.n_sampled = static_cast<size_t>(q.integer(c++));
  return row;
}

Status read_samples(sqlite3* db, std::string_view path, int64_t result, Row& row) {
  Query query(db, path, "SELECT twin, us FROM samples WHERE result_id = ? ORDER BY twin, round");
  query.bind(result);
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return {};
    (query.integer(0) == 0 ? row.samples_us : row.twin_us).push_back(query.real(1));
  }
}

Status write_samples(Query& insert, int64_t result, int twin, const std::vector<double>& us) {
  for (size_t round = 0; round < us.size(); ++round)
    MILLRACE_TRY(insert.bind(result, twin, round, us[round]).run());
  return {};
}

RunSummary read_summary(const Query& q) {
  return {q.integer(0), q.text(1), q.text(2), q.text(3),   q.text(4),
          q.text(5),    q.text(6), q.text(7), q.integer(8)};
}

constexpr const char* kSummaries =
    "SELECT id, started, ended, state, device, machine, build_commit, command,"
    " (SELECT count(*) FROM results WHERE run_id = runs.id) FROM runs"
    " WHERE ?1 = 0 OR id = ?1 ORDER BY id DESC LIMIT ?2";

}  // namespace

void Store::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

Result<std::filesystem::path> Store::default_path() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return std::filesystem::path(data) / "millrace" / "lab.db";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/')
    return error(Code::not_found,
                 "XDG_DATA_HOME and HOME are not set, so there is no place for runs; use --db");
  return std::filesystem::path(home) / ".local" / "share" / "millrace" / "lab.db";
}

namespace {

Status make_folder_of(const std::filesystem::path& path) {
  std::error_code failure;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), failure);
  if (!failure) return {};
  return error(Code::io_error, "cannot create the folder {}: {}", path.parent_path().string(),
               failure.message());
}

Status no_runs_at(std::string_view path) {
  return error(Code::not_found,
               "no runs are stored in {}: 'millrace bench' stores them, there or in the file that "
               "--db names",
               path);
}

}  // namespace

Result<Store> Store::open(const std::filesystem::path& path, Missing missing) {
  Store store;
  store.path_ = path.string();
  MILLRACE_TRY(store.open_file(missing));
  MILLRACE_TRY(store.prepare_schema(missing));
  return store;
}

Status Store::open_file(Missing missing) {
  std::error_code failure;
  if (missing == Missing::make)
    MILLRACE_TRY(make_folder_of(path_));
  else if (!std::filesystem::exists(path_, failure))
    return no_runs_at(path_);
  sqlite3* db = nullptr;
  const int create = missing == Missing::make ? SQLITE_OPEN_CREATE : 0;
  const int code = sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READWRITE | create, nullptr);
  db_.reset(db);
  if (code != SQLITE_OK) return sqlite_failure(db, path_);
  sqlite3_busy_timeout(db, 5000);
  return {};
}

Status Store::prepare_schema(Missing missing) {
  sqlite3* db = db_.get();
  MILLRACE_ASSIGN(const int64_t n_tables,
                  integer_of(db, path_, "SELECT count(*) FROM sqlite_master"));
  MILLRACE_ASSIGN(const int64_t application, integer_of(db, path_, "PRAGMA application_id"));
  MILLRACE_ASSIGN(const int64_t version, integer_of(db, path_, "PRAGMA user_version"));
  if (n_tables > 0 && application != kApplication)
    return error(Code::corrupt,
                 "{} is an SQLite database of another program; name another file with --db", path_);
  if (version > kSchema)
    return error(Code::unsupported,
                 "{} was written by a newer Millrace (schema {}; this one knows {}); name another "
                 "file with --db",
                 path_, version, kSchema);
  if (n_tables == 0 && missing == Missing::refuse) return no_runs_at(path_);
  MILLRACE_TRY(exec(db, path_, "PRAGMA journal_mode = WAL"));
  MILLRACE_TRY(exec(db, path_, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON"));
  Transaction transaction(db, path_);
  MILLRACE_TRY(transaction.begin());  // also finds out here whether the file can be written
  // Another process may have made the tables meanwhile.
  MILLRACE_ASSIGN(const int64_t now, integer_of(db, path_, "PRAGMA user_version"));
  if (now == 0) {
    MILLRACE_TRY(exec(db, path_, kTables));
    MILLRACE_TRY(exec(db, path_, fmt::format("PRAGMA application_id = {}", kApplication).c_str()));
    MILLRACE_TRY(exec(db, path_, fmt::format("PRAGMA user_version = {}", kSchema).c_str()));
  }
  return transaction.commit();
}

Result<int64_t> Store::begin_run(const RunHead& head) {
  Query insert(db_.get(), path_,
               "INSERT INTO runs(started, state, device, machine, machine_json, build_commit,"
               " build_json, command) VALUES(?, 'running', ?, ?, ?, ?, ?, ?)");
  insert.bind(utc_now(), head.device, head.machine, head.machine_json, head.commit, head.build_json,
              head.command);
  MILLRACE_TRY(insert.run());
  return static_cast<int64_t>(sqlite3_last_insert_rowid(db_.get()));
}

Status Store::add_ceilings(int64_t run, std::string_view when, const std::string& json) {
  Query insert(db_.get(), path_, "INSERT INTO ceilings VALUES(?, ?, ?, ?)");
  return insert.bind(run, utc_now(), when, json).run();
}

Status Store::add_rows(int64_t run, const std::vector<Row>& rows) {
  Transaction transaction(db_.get(), path_);
  MILLRACE_TRY(transaction.begin());
  // A double that is not finite is stored as NULL by SQLite (NaN) or kept (infinity); intervals
  // that do not exist are NULL.
  Query result(db_.get(), path_,
               "INSERT INTO results VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
               " ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Query sample(db_.get(), path_, "INSERT INTO samples VALUES(?, ?, ?, ?)");
  const auto finite = [](double value) {
    return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
  };
  for (const Row& row : rows) {
    result.bind(run, row.op, row.problem, row.key, row.variant, row.numerics, row.layout, row.isa,
                row.mode, row.n_lanes, row.us.mid, finite(row.us.lo), finite(row.us.hi), row.bytes,
                row.macs, row.gbps, row.gflops, row.floor_us, row.floor_percent, row.isa_percent,
                row.bound, finite(row.noise), row.mount.n_entries, row.mount.cold_bytes,
                row.mount.checked.n_whole, row.mount.checked.n_sampled);
    MILLRACE_TRY(result.run());
    const int64_t id = sqlite3_last_insert_rowid(db_.get());
    MILLRACE_TRY(write_samples(sample, id, 0, row.samples_us));
    MILLRACE_TRY(write_samples(sample, id, 1, row.twin_us));
  }
  return transaction.commit();
}

Status Store::end_run(int64_t run, std::string_view state) {
  Query update(db_.get(), path_, "UPDATE runs SET ended = ?, state = ? WHERE id = ?");
  return update.bind(utc_now(), state, run).run();
}

Result<std::vector<RunSummary>> Store::runs(int limit) {
  Query query(db_.get(), path_, kSummaries);
  query.bind(0, limit);
  std::vector<RunSummary> found;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return found;
    found.push_back(read_summary(query));
  }
}

Result<RunSummary> Store::run(int64_t id) {
  Query query(db_.get(), path_, kSummaries);
  query.bind(id, 1);
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found || id == 0) return error(Code::not_found, "no run {} in {}", id, path_);
  return read_summary(query);
}

Result<std::vector<Row>> Store::rows(int64_t run_id) {
  MILLRACE_ASSIGN(const RunSummary summary, run(run_id));
  Query query(
      db_.get(), path_,
      "SELECT id, op, problem, key, variant, numerics, layout, isa, mode, n_lanes, us, us_lo,"
      " us_hi, bytes, macs, gbps, gflops, floor_us, floor_percent, isa_percent, bound, noise,"
      " ring_entries, ring_bytes, verified_whole, verified_sampled"
      " FROM results WHERE run_id = ? ORDER BY id");
  query.bind(summary.id);
  std::vector<Row> rows;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return rows;
    rows.push_back(read_row(query));
    MILLRACE_TRY(read_samples(db_.get(), path_, query.integer(0), rows.back()));
  }
}

}  // namespace millrace::lab
