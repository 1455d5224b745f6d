#include "lab/notebook/schema.h"

#include "base/sqlite.h"

namespace millrace::lab {
namespace {

// A uid names a record in every database that it is imported into; an id only in its own.
#define MILLRACE_UID "uid TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(16))))"

// Measurements. A run is sealed by its digest: from then on nothing of it changes. `process` tells
// whether the one that measures is still alive; `origin` is empty for what was measured here.
constexpr const char* kRunTables = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, kind TEXT NOT NULL, started TEXT NOT NULL,
  ended TEXT, state TEXT NOT NULL, device TEXT NOT NULL, machine TEXT NOT NULL,
  build_commit TEXT NOT NULL, command TEXT NOT NULL, process TEXT NOT NULL DEFAULT '',
  digest TEXT, origin TEXT NOT NULL DEFAULT '',
  experiment_id INTEGER REFERENCES experiments(id));
CREATE INDEX runs_by_experiment ON runs(experiment_id) WHERE experiment_id IS NOT NULL;
CREATE TABLE run_details(
  run_id INTEGER PRIMARY KEY REFERENCES runs(id), machine_json TEXT NOT NULL,
  build_json TEXT NOT NULL);
CREATE TABLE run_names(
  name TEXT NOT NULL, run_id INTEGER NOT NULL REFERENCES runs(id), PRIMARY KEY(name, run_id))
  WITHOUT ROWID;
CREATE TABLE ceilings(
  run_id INTEGER NOT NULL REFERENCES runs(id), at TEXT NOT NULL, label TEXT NOT NULL,
  json TEXT NOT NULL);
CREATE INDEX ceilings_by_run ON ceilings(run_id);
CREATE TABLE subjects(
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, problem TEXT NOT NULL,
  variant TEXT NOT NULL, mode TEXT NOT NULL, n_lanes INTEGER NOT NULL,
  UNIQUE(kind, name, problem, variant, mode, n_lanes));
CREATE INDEX subjects_by_name ON subjects(name, problem);
CREATE TABLE metrics(
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs(id),
  subject_id INTEGER NOT NULL REFERENCES subjects(id), name TEXT NOT NULL, unit TEXT NOT NULL,
  better TEXT NOT NULL CHECK(better IN ('lower', 'higher')), value REAL NOT NULL, lo REAL, hi REAL,
  noise REAL);
CREATE INDEX metrics_by_run ON metrics(run_id);
CREATE INDEX metrics_by_subject ON metrics(subject_id, name, run_id);
CREATE TABLE samples(
  metric_id INTEGER NOT NULL REFERENCES metrics(id), twin INTEGER NOT NULL, round INTEGER NOT NULL,
  value REAL NOT NULL, PRIMARY KEY(metric_id, twin, round)) WITHOUT ROWID;
CREATE TABLE kernel_facts(
  metric_id INTEGER PRIMARY KEY REFERENCES metrics(id), key TEXT NOT NULL, numerics TEXT NOT NULL,
  layout TEXT NOT NULL, isa TEXT NOT NULL, bytes REAL, macs REAL, gbps REAL, gflops REAL,
  floor_us REAL, floor_percent REAL, isa_percent REAL, bound TEXT, ring_entries INTEGER,
  ring_bytes REAL, verified_whole INTEGER, verified_sampled INTEGER,
  verified_rows INTEGER NOT NULL DEFAULT 0, witness TEXT NOT NULL DEFAULT '');
)sql";

// What people and agents think about them.
constexpr const char* kNotebookTables =
    R"sql(
CREATE TABLE hypotheses(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, created TEXT NOT NULL, text TEXT NOT NULL,
  rationale TEXT NOT NULL, metric TEXT NOT NULL,
  direction TEXT NOT NULL CHECK(direction IN ('down', 'up', 'same')), size REAL NOT NULL,
  kind TEXT NOT NULL, name TEXT NOT NULL, problem TEXT NOT NULL, mode TEXT NOT NULL,
  variant_a TEXT NOT NULL, variant_b TEXT NOT NULL,
  baseline_run_id INTEGER REFERENCES runs(id), origin TEXT NOT NULL DEFAULT '');
CREATE TABLE experiments(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, created TEXT NOT NULL,
  hypothesis_id INTEGER NOT NULL REFERENCES hypotheses(id),
  role TEXT NOT NULL CHECK(role IN ('baseline', 'candidate')), command TEXT NOT NULL,
  origin TEXT NOT NULL DEFAULT '');
CREATE INDEX experiments_by_hypothesis ON experiments(hypothesis_id);
CREATE TABLE verdicts(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, created TEXT NOT NULL,
  hypothesis_id INTEGER NOT NULL REFERENCES hypotheses(id),
  run_id INTEGER NOT NULL REFERENCES runs(id), baseline_run_id INTEGER REFERENCES runs(id),
  outcome TEXT NOT NULL CHECK(outcome IN ('supported', 'refuted', 'undecided')),
  method TEXT NOT NULL, json TEXT NOT NULL, origin TEXT NOT NULL DEFAULT '');
CREATE INDEX verdicts_by_hypothesis ON verdicts(hypothesis_id);
CREATE TABLE learnings(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, created TEXT NOT NULL,
  hypothesis_id INTEGER NOT NULL REFERENCES hypotheses(id),
  verdict_id INTEGER NOT NULL REFERENCES verdicts(id), text TEXT NOT NULL, scope TEXT NOT NULL,
  hardware TEXT NOT NULL, driver TEXT NOT NULL, toolkit TEXT NOT NULL, source TEXT NOT NULL,
  origin TEXT NOT NULL DEFAULT '');
CREATE INDEX learnings_by_hypothesis ON learnings(hypothesis_id);
CREATE TABLE edges(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, created TEXT NOT NULL,
  src_kind TEXT NOT NULL
    CHECK(src_kind IN ('run', 'hyp', 'exp', 'verdict', 'learn', 'post', 'claim')),
  src_id INTEGER NOT NULL,
  dst_kind TEXT NOT NULL
    CHECK(dst_kind IN ('run', 'hyp', 'exp', 'verdict', 'learn', 'post', 'claim')),
  dst_id INTEGER NOT NULL,
  type TEXT NOT NULL CHECK(type IN ('tests', 'supports', 'refutes', 'leaves_open', 'derived_from',
    'refines', 'supersedes', 'contradicts', 'inspired_by', 'used_in')),
  run_id INTEGER REFERENCES runs(id), origin TEXT NOT NULL DEFAULT '',
  CHECK(run_id IS NOT NULL OR type NOT IN ('tests', 'supports', 'refutes', 'leaves_open')));
CREATE UNIQUE INDEX edges_by_source
  ON edges(src_kind, src_id, type, dst_kind, dst_id, ifnull(run_id, 0));
CREATE INDEX edges_by_target ON edges(dst_kind, dst_id);
CREATE TABLE posts(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID
    R"sql(, created TEXT NOT NULL, slug TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL, body TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('draft', 'published', 'retracted')),
  origin TEXT NOT NULL DEFAULT '');
CREATE TABLE claims(
  id INTEGER PRIMARY KEY, )sql" MILLRACE_UID R"sql(, created TEXT NOT NULL,
  post_id INTEGER REFERENCES posts(id), run_id INTEGER NOT NULL REFERENCES runs(id),
  text TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, problem TEXT NOT NULL,
  variant TEXT NOT NULL, mode TEXT NOT NULL, n_lanes INTEGER NOT NULL, metric TEXT NOT NULL,
  statistic TEXT NOT NULL CHECK(statistic IN ('median', 'low', 'high', 'best')),
  value REAL NOT NULL, unit TEXT NOT NULL, hardware TEXT NOT NULL, driver TEXT NOT NULL,
  toolkit TEXT NOT NULL, source TEXT NOT NULL, origin TEXT NOT NULL DEFAULT '');
CREATE INDEX claims_by_post ON claims(post_id);
CREATE TABLE events(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, )sql" MILLRACE_UID R"sql(, at TEXT NOT NULL,
  actor TEXT NOT NULL, type TEXT NOT NULL, ref_kind TEXT NOT NULL, ref_id INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE INDEX events_by_ref ON events(ref_kind, ref_id);
)sql";

// What is written is written. Of a post the text and state may change, nothing else; of a run that
// is not sealed, what its end brings.
constexpr const char* kTriggers = R"sql(
CREATE TRIGGER events_stay BEFORE UPDATE ON events
  BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
  BEGIN SELECT raise(ABORT, 'events are append-only'); END;
CREATE TRIGGER runs_are_sealed BEFORE UPDATE ON runs WHEN OLD.digest IS NOT NULL
  BEGIN SELECT raise(ABORT, 'a run that has ended does not change'); END;
CREATE TRIGGER runs_remain BEFORE DELETE ON runs
  BEGIN SELECT raise(ABORT, 'runs are not deleted'); END;
CREATE TRIGGER details_stay BEFORE UPDATE ON run_details
  BEGIN SELECT raise(ABORT, 'measurements do not change'); END;
CREATE TRIGGER details_remain BEFORE DELETE ON run_details
  BEGIN SELECT raise(ABORT, 'measurements are not deleted'); END;
CREATE TRIGGER ceilings_stay BEFORE UPDATE ON ceilings
  BEGIN SELECT raise(ABORT, 'measurements do not change'); END;
CREATE TRIGGER ceilings_remain BEFORE DELETE ON ceilings
  BEGIN SELECT raise(ABORT, 'measurements are not deleted'); END;
CREATE TRIGGER subjects_stay BEFORE UPDATE ON subjects
  BEGIN SELECT raise(ABORT, 'measurements do not change'); END;
CREATE TRIGGER subjects_remain BEFORE DELETE ON subjects
  BEGIN SELECT raise(ABORT, 'measurements are not deleted'); END;
CREATE TRIGGER metrics_stay BEFORE UPDATE ON metrics
  BEGIN SELECT raise(ABORT, 'measurements do not change'); END;
CREATE TRIGGER metrics_remain BEFORE DELETE ON metrics
  BEGIN SELECT raise(ABORT, 'measurements are not deleted'); END;
CREATE TRIGGER metrics_come_in_time BEFORE INSERT ON metrics
  WHEN (SELECT digest FROM runs WHERE id = NEW.run_id) IS NOT NULL
  BEGIN SELECT raise(ABORT, 'a run that has ended takes no more measurements'); END;
CREATE TRIGGER samples_stay BEFORE UPDATE ON samples
  BEGIN SELECT raise(ABORT, 'measurements do not change'); END;
CREATE TRIGGER samples_remain BEFORE DELETE ON samples
  BEGIN SELECT raise(ABORT, 'measurements are not deleted'); END;
CREATE TRIGGER samples_come_in_time BEFORE INSERT ON samples
  WHEN (SELECT digest FROM runs WHERE id = (SELECT run_id FROM metrics WHERE id = NEW.metric_id))
    IS NOT NULL
  BEGIN SELECT raise(ABORT, 'a run that has ended takes no more measurements'); END;
CREATE TRIGGER facts_stay BEFORE UPDATE ON kernel_facts
  BEGIN SELECT raise(ABORT, 'measurements do not change'); END;
CREATE TRIGGER facts_remain BEFORE DELETE ON kernel_facts
  BEGIN SELECT raise(ABORT, 'measurements are not deleted'); END;
CREATE TRIGGER hypotheses_stay BEFORE UPDATE ON hypotheses
  BEGIN SELECT raise(ABORT, 'a prediction does not change; add a hypothesis that refines it'); END;
CREATE TRIGGER hypotheses_remain BEFORE DELETE ON hypotheses
  BEGIN SELECT raise(ABORT, 'hypotheses are not deleted'); END;
CREATE TRIGGER experiments_stay BEFORE UPDATE ON experiments
  BEGIN SELECT raise(ABORT, 'experiments do not change'); END;
CREATE TRIGGER verdicts_stay BEFORE UPDATE ON verdicts
  BEGIN SELECT raise(ABORT, 'verdicts do not change; a new run gives a new one'); END;
CREATE TRIGGER verdicts_remain BEFORE DELETE ON verdicts
  BEGIN SELECT raise(ABORT, 'verdicts are not deleted'); END;
CREATE TRIGGER learnings_stay BEFORE UPDATE ON learnings
  BEGIN SELECT raise(ABORT, 'learnings do not change; add one that supersedes it'); END;
CREATE TRIGGER edges_stay BEFORE UPDATE ON edges
  BEGIN SELECT raise(ABORT, 'edges do not change'); END;
CREATE TRIGGER claims_stay BEFORE UPDATE ON claims
  BEGIN SELECT raise(ABORT, 'claims do not change; they are recomputed'); END;
)sql";

// INSERT OR REPLACE deletes without asking the triggers above.
std::string triggers_against_replacing() {
  std::string out;
  for (const char* table :
       {"runs", "hypotheses", "experiments", "verdicts", "learnings", "edges", "claims", "events"})
    out += fmt::format(
        "CREATE TRIGGER {0}_are_new BEFORE INSERT ON {0} WHEN EXISTS"
        " (SELECT 1 FROM {0} WHERE {1} = NEW.{1} OR uid = NEW.uid)"
        " BEGIN SELECT raise(ABORT, 'what is written is not replaced'); END;",
        table, std::string_view(table) == "events" ? "seq" : "id");
  for (const auto& [table, key] : {std::pair("run_details", "run_id"),
                                   {"metrics", "id"},
                                   {"subjects", "id"},
                                   {"kernel_facts", "metric_id"}})
    out += fmt::format(
        "CREATE TRIGGER {0}_are_new BEFORE INSERT ON {0} WHEN EXISTS"
        " (SELECT 1 FROM {0} WHERE {1} = NEW.{1})"
        " BEGIN SELECT raise(ABORT, 'what is written is not replaced'); END;",
        table, key);
  return out;
}

// Schema 1 knew runs of kernels: results with microseconds. A result becomes a metric, "time", of a
// subject; a run without a process that could still be alive, and an end, is an interrupted one.
constexpr const char* kSetAside = R"sql(
DROP INDEX results_by_run;
ALTER TABLE samples RENAME TO old_samples;
ALTER TABLE results RENAME TO old_results;
ALTER TABLE ceilings RENAME TO old_ceilings;
ALTER TABLE runs RENAME TO old_runs;
)sql";
constexpr const char* kCopy = R"sql(
INSERT INTO runs(id, kind, started, ended, state, device, machine, build_commit, command)
  SELECT id, CASE WHEN command LIKE '%--chain%' THEN 'chain' ELSE 'op' END, started, ended, state,
    device, machine, build_commit, command FROM old_runs ORDER BY id;
INSERT INTO run_details SELECT id, machine_json, build_json FROM old_runs;
INSERT INTO ceilings SELECT run_id, at, label, json FROM old_ceilings ORDER BY rowid;
INSERT INTO subjects(kind, name, problem, variant, mode, n_lanes)
  SELECT DISTINCT runs.kind, op, problem, variant, mode, n_lanes
  FROM old_results JOIN runs ON runs.id = run_id;
INSERT INTO metrics
  SELECT r.id, r.run_id, s.id, 'time', 'us', 'lower', r.us, r.us_lo, r.us_hi, r.noise
  FROM old_results r JOIN runs ON runs.id = r.run_id
  JOIN subjects s ON s.kind = runs.kind AND s.name = r.op AND s.problem = r.problem
    AND s.variant = r.variant AND s.mode = r.mode AND s.n_lanes = r.n_lanes ORDER BY r.id;
INSERT OR IGNORE INTO run_names SELECT op, run_id FROM old_results;
INSERT INTO kernel_facts
  SELECT id, key, numerics, layout, isa, bytes, macs, gbps, gflops, floor_us, floor_percent,
    isa_percent, bound, ring_entries, ring_bytes, verified_whole, verified_sampled, 0, ''
  FROM old_results;
INSERT INTO samples SELECT result_id, twin, round, us FROM old_samples;
)sql";
constexpr const char* kForget = R"sql(
DROP TABLE old_samples;
DROP TABLE old_results;
DROP TABLE old_ceilings;
DROP TABLE old_runs;
)sql";

// Schema 2 did not keep how many rows were compared, nor whose bits they have.
constexpr const char* kFromSchema2 = R"sql(
ALTER TABLE kernel_facts ADD COLUMN verified_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE kernel_facts ADD COLUMN witness TEXT NOT NULL DEFAULT '';
PRAGMA user_version = 3;
)sql";

// What was copied is as much as there was.
Status check_copy(sqlite3* db, std::string_view path) {
  for (const auto& [old_table, table] : {std::pair("old_runs", "runs"),
                                         {"old_ceilings", "ceilings"},
                                         {"old_results", "metrics"},
                                         {"old_results", "kernel_facts"},
                                         {"old_samples", "samples"}}) {
    const std::string missing = fmt::format(
        "SELECT (SELECT count(*) FROM {}) - (SELECT count(*) FROM {})", old_table, table);
    MILLRACE_ASSIGN(const int64_t n, integer_of(db, path, missing.c_str()));
    if (n != 0)
      return error(Code::corrupt,
                   "{} was written by an older Millrace and {} rows of its {} belong to nothing; "
                   "it was not changed: name another file with --db",
                   path, n, table);
  }
  return {};
}

}  // namespace

Result<FileState> inspect_file(sqlite3* db, std::string_view path) {
  MILLRACE_ASSIGN(const int64_t n_tables,
                  integer_of(db, path, "SELECT count(*) FROM sqlite_master"));
  MILLRACE_ASSIGN(const int64_t application, integer_of(db, path, "PRAGMA application_id"));
  MILLRACE_ASSIGN(const int64_t version, integer_of(db, path, "PRAGMA user_version"));
  if (n_tables > 0 && application != kApplication)
    return error(Code::corrupt,
                 "{} is an SQLite database of another program; name another file with --db", path);
  if (version > kSchema)
    return error(Code::unsupported,
                 "{} was written by a newer Millrace (schema {}; this one knows {}); name another "
                 "file with --db",
                 path, version, kSchema);
  if (n_tables > 0 && version < 1)
    return error(Code::corrupt, "{} says schema {}; name another file with --db", path, version);
  return FileState{n_tables == 0, version};
}

Result<bool> migrate(sqlite3* db, std::string_view path) {
  // Inside the transaction: another process may have done it meanwhile.
  MILLRACE_ASSIGN(const int64_t version, integer_of(db, path, "PRAGMA user_version"));
  if (version == kSchema) return false;
  if (version == 2) {
    MILLRACE_TRY(execute(db, path, kFromSchema2));
    return true;
  }
  if (version == 1) MILLRACE_TRY(execute(db, path, kSetAside));
  MILLRACE_TRY(execute(db, path, kRunTables));
  MILLRACE_TRY(execute(db, path, kNotebookTables));
  if (version == 1) {
    MILLRACE_TRY(execute(db, path, kCopy));
    MILLRACE_TRY(check_copy(db, path));
    MILLRACE_TRY(execute(db, path, kForget));
  }
  MILLRACE_TRY(execute(db, path, kTriggers));
  MILLRACE_TRY(execute(db, path, triggers_against_replacing()));
  MILLRACE_TRY(execute(db, path, fmt::format("PRAGMA application_id = {}", kApplication)));
  MILLRACE_TRY(execute(db, path, fmt::format("PRAGMA user_version = {}", kSchema)));
  return true;
}

}  // namespace millrace::lab
