#include "lab/store.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/sqlite.h"
#include "lab/notebook/schema.h"
#include "lab/process_mark.h"
#include "lab/run_record.h"

namespace millrace::lab {
namespace {

// What a run shows as: of one whose process is gone, its row still says that it runs.
RunSummary read_summary(const Query& q) {
  RunSummary out{.id = q.integer(0),
                 .started = q.text(1),
                 .ended = q.text(2),
                 .state = q.text(3),
                 .device = q.text(4),
                 .machine = q.text(5),
                 .commit = q.text(6),
                 .command = q.text(7),
                 .n_results = q.integer(8),
                 .kind = q.text(9),
                 .uid = q.text(10),
                 .digest = q.text(11),
                 .origin = q.text(12),
                 .experiment = q.maybe_integer(13)};
  if (out.state == "running" && !may_be_alive(q.text(14))) out.state = "interrupted";
  return out;
}

#define MILLRACE_SUMMARY                                                               \
  "SELECT runs.id, started, ended, state, device, machine, build_commit, command,"     \
  " (SELECT count(*) FROM metrics WHERE run_id = runs.id), kind, uid, digest, origin," \
  " experiment_id, process FROM "

// The newest before ?1, of all, of those that measured ?3, of experiment ?3.
constexpr const char* kNewest = MILLRACE_SUMMARY "runs WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
constexpr const char* kNewestNamed = MILLRACE_SUMMARY
    "run_names JOIN runs ON runs.id = run_id WHERE name = ?3 AND run_id < ?1"
    " ORDER BY run_id DESC LIMIT ?2";
constexpr const char* kOfExperiment =
    MILLRACE_SUMMARY "runs WHERE experiment_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2";
constexpr const char* kOne = MILLRACE_SUMMARY "runs WHERE id = ?1";

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

Result<Store> Store::open_to_read(const std::filesystem::path& path) {
  constexpr int kPatienceMs = 1000;  // a checkpoint of the writer's
  Store store;
  store.path_ = path.string();
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return no_runs_at(store.path_);
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(store.path_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr);
  store.db_.reset(db);
  if (code != SQLITE_OK) return sqlite_failure(db, store.path_);
  sqlite3_busy_timeout(db, kPatienceMs);
  MILLRACE_ASSIGN(const FileState file, inspect_file(db, store.path_));
  if (file.empty) return no_runs_at(store.path_);
  if (file.version != kSchema)
    return error(
        Code::unsupported,
        "{} was written by an older Millrace (schema {}; this one reads {}): 'millrace lab "
        "show' brings it up to date",
        store.path_, file.version, kSchema);
  // A view or trigger that somebody planted in the file must not run functions.
  MILLRACE_TRY(execute(db, store.path_, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF"));
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
  MILLRACE_ASSIGN(const FileState file, inspect_file(db, path_));
  if (file.empty && missing == Missing::refuse) return no_runs_at(path_);
  MILLRACE_TRY(execute(db, path_, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  {
    Transaction transaction(db, path_);
    MILLRACE_TRY(transaction.begin());  // also finds out here whether the file can be written
    MILLRACE_ASSIGN(const bool changed, migrate(db, path_));
    if (changed && !file.empty) MILLRACE_TRY(seal_ended());
    MILLRACE_TRY(transaction.commit());
  }
  return execute(db, path_, "PRAGMA foreign_keys = ON");
}

// Runs of a schema that had no digests.
Status Store::seal_ended() {
  std::vector<int64_t> ended;
  Query query(db_.get(), path_, "SELECT id FROM runs WHERE ended IS NOT NULL AND digest IS NULL");
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) break;
    ended.push_back(query.integer(0));
  }
  for (const int64_t run : ended) MILLRACE_TRY(seal(run));
  return {};
}

Status Store::add_event(std::string_view type, int64_t run, std::string_view text) {
  Query insert(db_.get(), path_,
               "INSERT INTO events(at, actor, type, ref_kind, ref_id, text)"
               " VALUES(?, 'bench', ?, 'run', ?, ?)");
  return insert.bind(utc_now(), type, run, text).run();
}

Result<int64_t> Store::begin_run(const RunHead& head) {
  Transaction transaction(db_.get(), path_);
  MILLRACE_TRY(transaction.begin());
  Query insert(db_.get(), path_,
               "INSERT INTO runs(kind, started, state, device, machine, build_commit, command,"
               " process, experiment_id) VALUES(?, ?, 'running', ?, ?, ?, ?, ?, ?)");
  insert.bind(head.kind, utc_now(), head.device, head.machine, head.commit, head.command,
              process_mark(), head.experiment);
  MILLRACE_TRY(insert.run());
  const int64_t id = sqlite3_last_insert_rowid(db_.get());
  Query details(db_.get(), path_, "INSERT INTO run_details VALUES(?, ?, ?)");
  MILLRACE_TRY(details.bind(id, head.machine_json, head.build_json).run());
  if (head.experiment) {
    Query edge(db_.get(), path_,
               "INSERT INTO edges(created, src_kind, src_id, dst_kind, dst_id, type, run_id)"
               " SELECT ?, 'exp', id, 'hyp', hypothesis_id, 'tests', ? FROM experiments"
               " WHERE id = ?");
    MILLRACE_TRY(edge.bind(utc_now(), id, *head.experiment).run());
  }
  MILLRACE_TRY(add_event("run.began", id, head.command));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Status Store::add_ceilings(int64_t run, std::string_view when, const std::string& json) {
  Query insert(db_.get(), path_, "INSERT INTO ceilings VALUES(?, ?, ?, ?)");
  return insert.bind(run, utc_now(), when, json).run();
}

Result<int64_t> Store::run_of_uid(std::string_view digits) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (digits.size() < 8 || digits.find_first_not_of(kHex) != digits.npos)
    return error(Code::invalid_argument,
                 "a run goes by its number, or by the first 8 hexadecimal digits of its uid");
  Query find(db_.get(), path_, "SELECT id FROM runs WHERE uid >= ? AND uid < ? LIMIT 2");
  find.bind(std::string(digits), std::string(digits) + "g");
  MILLRACE_ASSIGN(const bool found, find.step());
  if (!found)
    return error(Code::not_found, "{}: no run has a uid that begins with {}", path_, digits);
  const int64_t id = find.integer(0);
  MILLRACE_ASSIGN(const bool another, find.step());
  if (another)
    return error(Code::invalid_argument, "{}: several runs have a uid that begins with {}", path_,
                 digits);
  return id;
}

Status Store::add_rows(int64_t run_id, const std::vector<Row>& rows) {
  MILLRACE_ASSIGN(const RunSummary head, run(run_id));
  std::vector<Metric> metrics;
  for (const Row& row : rows) {
    metrics.push_back(metric_of(row, head.kind));
    const Subject subject = metrics.back().subject;
    const auto add = [&](const char* name, const char* unit, const char* better,
                         const std::vector<double>& samples) {
      if (!samples.empty()) metrics.push_back(metric_of(subject, name, unit, better, samples));
    };
    add("sm_clock", "MHz", "higher", row.sm_mhz);
    add("power", "W", "lower", row.power_w);
    add("clock_reasons", "NVML bits", "lower", row.clock_reasons);
  }
  return add_metrics(run_id, metrics);
}

Status Store::add_metrics(int64_t run, const std::vector<Metric>& metrics) {
  Transaction transaction(db_.get(), path_);
  MILLRACE_TRY(transaction.begin());
  MILLRACE_TRY(insert_metrics(run, metrics));
  return transaction.commit();
}

Status Store::end_run(int64_t run, std::string_view state) {
  Transaction transaction(db_.get(), path_);
  MILLRACE_TRY(transaction.begin());
  Query update(db_.get(), path_, "UPDATE runs SET ended = ?, state = ? WHERE id = ?");
  MILLRACE_TRY(update.bind(utc_now(), state, run).run());
  MILLRACE_TRY(seal(run));
  MILLRACE_TRY(add_event("run.ended", run, state));
  return transaction.commit();
}

Status Store::seal(int64_t run) {
  MILLRACE_ASSIGN(const RunRecord whole, record(run));
  Query update(db_.get(), path_, "UPDATE runs SET digest = ? WHERE id = ?");
  return update.bind(digest_of(whole), run).run();
}

Result<std::vector<RunSummary>> Store::runs(const RunFilter& filter) {
  const int64_t before = filter.before > 0 ? filter.before : INT64_MAX;
  const char* sql = filter.experiment > 0 ? kOfExperiment
                    : filter.name.empty() ? kNewest
                                          : kNewestNamed;
  Query query(db_.get(), path_, sql);
  if (filter.experiment > 0)
    query.bind(before, filter.limit, filter.experiment);
  else if (filter.name.empty())
    query.bind(before, filter.limit);
  else
    query.bind(before, filter.limit, filter.name);
  std::vector<RunSummary> found;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return found;
    found.push_back(read_summary(query));
  }
}

Result<RunSummary> Store::run(int64_t id) {
  Query query(db_.get(), path_, kOne);
  query.bind(id);
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found) return error(Code::not_found, "no run {} in {}", id, path_);
  return read_summary(query);
}

Result<std::vector<Row>> Store::rows(int64_t run_id) {
  MILLRACE_ASSIGN(const RunSummary summary, run(run_id));
  MILLRACE_ASSIGN(const std::vector<Metric> all, metrics(summary.id));
  std::vector<Row> rows;
  for (const Metric& metric : all)
    if (metric.kernel) rows.push_back(row_of(metric));
  return rows;
}

Result<RunRecord> Store::record(int64_t run_id) {
  RunRecord out;
  MILLRACE_ASSIGN(out.head, run(run_id));
  Query details(db_.get(), path_,
                "SELECT machine_json, build_json FROM run_details WHERE run_id = ?");
  details.bind(run_id);
  MILLRACE_ASSIGN(const bool has_details, details.step());
  if (has_details) {
    out.machine_json = details.text(0);
    out.build_json = details.text(1);
  }
  Query ceilings(db_.get(), path_,
                 "SELECT at, label, json FROM ceilings WHERE run_id = ? ORDER BY rowid");
  ceilings.bind(run_id);
  for (;;) {
    MILLRACE_ASSIGN(const bool more, ceilings.step());
    if (!more) break;
    out.ceilings.push_back({ceilings.text(0), ceilings.text(1), ceilings.text(2)});
  }
  MILLRACE_ASSIGN(out.metrics, metrics(run_id));
  return out;
}

Result<std::string> Store::problem_of(int64_t run_id) {
  auto whole = record(run_id);
  if (whole.status().code() == Code::not_found)
    return fmt::format("run:{} is missing: the evidence was deleted", run_id);
  MILLRACE_TRY(whole.status());
  if (!whole->head.is_sealed())
    return fmt::format("run:{} {}: it has no digest", run_id,
                       whole->head.state == "running" ? "has not ended" : "was interrupted");
  if (digest_of(*whole) != whole->head.digest)
    return fmt::format("run:{} was changed after it was measured: its digest does not match",
                       run_id);
  return std::string();
}

}  // namespace millrace::lab
