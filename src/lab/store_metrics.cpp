// Metrics and their samples, into the store and out of it.
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/sqlite.h"
#include "lab/store.h"

namespace millrace::lab {
namespace {

// Stored as NULL: an interval that does not exist, a share of nothing.
double finite(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

double or_infinite(const Query& query, int column, double sign) {
  return query.is_null(column) ? sign * std::numeric_limits<double>::infinity()
                               : query.real(column);
}

Status write_samples(Query& insert, int64_t metric, int twin, const std::vector<double>& values) {
  for (size_t round = 0; round < values.size(); ++round)
    MILLRACE_TRY(insert.bind(metric, twin, round, values[round]).run());
  return {};
}

// A subject has one row, however often it is measured.
class Subjects {
 public:
  Subjects(sqlite3* db, std::string_view path)
      : insert_(db, path,
                "INSERT OR IGNORE INTO subjects(kind, name, problem, variant, mode, n_lanes)"
                " VALUES(?, ?, ?, ?, ?, ?)"),
        db_(db),
        path_(path) {}

  Result<int64_t> id_of(const Subject& s) {
    MILLRACE_TRY(insert_.bind(s.kind, s.name, s.problem, s.variant, s.mode, s.n_lanes).run());
    Query find(db_, path_,
               "SELECT id FROM subjects WHERE kind = ? AND name = ? AND problem = ?"
               " AND variant = ? AND mode = ? AND n_lanes = ?");
    find.bind(s.kind, s.name, s.problem, s.variant, s.mode, s.n_lanes);
    MILLRACE_ASSIGN(const bool found, find.step());
    MILLRACE_CHECK(found, "a subject was just stored");
    return find.integer(0);
  }

 private:
  Query insert_;
  sqlite3* db_;
  std::string_view path_;
};

Status write_facts(Query& insert, int64_t metric, const KernelFacts& k) {
  insert.bind(metric, k.key, k.numerics, k.layout, k.isa, finite(k.bytes), finite(k.macs),
              finite(k.gbps), finite(k.gflops), finite(k.floor_us), finite(k.floor_percent),
              finite(k.isa_percent), k.bound, k.ring_entries, finite(k.ring_bytes),
              k.verified_whole, k.verified_sampled, k.verified_rows, k.witness);
  return insert.run();
}

std::optional<KernelFacts> read_facts(const Query& q, int c) {
  if (q.is_null(c)) return std::nullopt;
  KernelFacts out;
  for (std::string* text : {&out.key, &out.numerics, &out.layout, &out.isa}) *text = q.text(c++);
  for (double* value : {&out.bytes, &out.macs, &out.gbps, &out.gflops, &out.floor_us,
                        &out.floor_percent, &out.isa_percent})
    *value = q.real(c++);
  out.bound = q.text(c++);
  out.ring_entries = q.integer(c++);
  out.ring_bytes = q.real(c++);
  out.verified_whole = q.integer(c++);
  out.verified_sampled = q.integer(c++);
  out.verified_rows = q.integer(c++);
  out.witness = q.text(c++);
  return out;
}

Metric read_metric(const Query& q) {
  Metric out;
  out.subject = {q.text(1), q.text(2), q.text(3),
                 q.text(4), q.text(5), static_cast<int>(q.integer(6))};
  out.name = q.text(7);
  out.unit = q.text(8);
  out.better = q.text(9);
  out.value = {or_infinite(q, 11, -1), q.real(10), or_infinite(q, 12, 1)};
  out.noise = or_infinite(q, 13, 1);
  out.kernel = read_facts(q, 14);
  return out;
}

constexpr const char* kMetrics =
    "SELECT m.id, s.kind, s.name, s.problem, s.variant, s.mode, s.n_lanes, m.name, m.unit,"
    " m.better, m.value, m.lo, m.hi, m.noise, k.key, k.numerics, k.layout, k.isa, k.bytes, k.macs,"
    " k.gbps, k.gflops, k.floor_us, k.floor_percent, k.isa_percent, k.bound, k.ring_entries,"
    " k.ring_bytes, k.verified_whole, k.verified_sampled, k.verified_rows, k.witness"
    " FROM metrics m JOIN subjects s ON s.id = m.subject_id"
    " LEFT JOIN kernel_facts k ON k.metric_id = m.id WHERE m.run_id = ? ORDER BY m.id";

}  // namespace

Status Store::insert_metrics(int64_t run, const std::vector<Metric>& metrics) {
  sqlite3* db = db_.get();
  Query metric(db, path_, "INSERT INTO metrics VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Query sample(db, path_, "INSERT INTO samples VALUES(?, ?, ?, ?)");
  Query facts(
      db, path_,
      "INSERT INTO kernel_facts VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Query name(db, path_, "INSERT OR IGNORE INTO run_names VALUES(?, ?)");
  Subjects subjects(db, path_);
  for (const Metric& m : metrics) {
    MILLRACE_ASSIGN(const int64_t subject, subjects.id_of(m.subject));
    metric.bind(run, subject, m.name, m.unit, m.better, m.value.mid, finite(m.value.lo),
                finite(m.value.hi), finite(m.noise));
    MILLRACE_TRY(metric.run());
    const int64_t id = sqlite3_last_insert_rowid(db);
    MILLRACE_TRY(write_samples(sample, id, 0, m.samples));
    MILLRACE_TRY(write_samples(sample, id, 1, m.twin));
    if (m.kernel) MILLRACE_TRY(write_facts(facts, id, *m.kernel));
    MILLRACE_TRY(name.bind(m.subject.name, run).run());
  }
  return {};
}

Result<std::vector<Metric>> Store::metrics(int64_t run) {
  Query query(db_.get(), path_, kMetrics);
  query.bind(run);
  std::vector<Metric> out;
  std::unordered_map<int64_t, size_t> places;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) break;
    places[query.integer(0)] = out.size();
    out.push_back(read_metric(query));
  }
  Query samples(db_.get(), path_,
                "SELECT metric_id, twin, value FROM samples WHERE metric_id IN"
                " (SELECT id FROM metrics WHERE run_id = ?) ORDER BY metric_id, twin, round");
  samples.bind(run);
  for (;;) {
    MILLRACE_ASSIGN(const bool more, samples.step());
    if (!more) return out;
    const auto place = places.find(samples.integer(0));
    if (place == places.end())
      return error(Code::corrupt, "{}: run:{} has samples of a measurement without its subject",
                   path_, run);
    Metric& metric = out[place->second];
    (samples.integer(1) == 0 ? metric.samples : metric.twin).push_back(samples.real(2));
  }
}

Result<int64_t> Store::insert_record(const RunRecord& record, std::optional<int64_t> experiment) {
  const RunSummary& head = record.head;
  Query insert(db_.get(), path_,
               "INSERT INTO runs(uid, kind, started, ended, state, device, machine, build_commit,"
               " command, origin, experiment_id) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(head.uid, head.kind, head.started, head.ended, head.state, head.device, head.machine,
              head.commit, head.command, head.origin, experiment);
  MILLRACE_TRY(insert.run());
  const int64_t id = sqlite3_last_insert_rowid(db_.get());
  Query details(db_.get(), path_, "INSERT INTO run_details VALUES(?, ?, ?)");
  MILLRACE_TRY(details.bind(id, record.machine_json, record.build_json).run());
  Query ceilings(db_.get(), path_, "INSERT INTO ceilings VALUES(?, ?, ?, ?)");
  for (const StoredCeilings& c : record.ceilings)
    MILLRACE_TRY(ceilings.bind(id, c.at, c.when, c.json).run());
  MILLRACE_TRY(insert_metrics(id, record.metrics));
  if (head.is_sealed()) {
    Query seal(db_.get(), path_, "UPDATE runs SET digest = ? WHERE id = ?");
    MILLRACE_TRY(seal.bind(head.digest, id).run());
  }
  return id;
}

}  // namespace millrace::lab
