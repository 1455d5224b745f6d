#include "lab/page/results.h"

#include <nlohmann/json.hpp>

#include "base/sqlite.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

// The measurements that `ids` picks, with all that is shown of one. CROSS JOIN keeps that order:
// else SQLite walks all measurements to spare itself a sort of fifty.
std::string select_rows(const std::string& ids) {
  return "SELECT m.id, m.run_id, r.started, r.state, r.origin, r.device, r.build_commit, s.id,"
         " s.kind, s.name, s.problem, s.variant, s.mode, s.n_lanes, m.name, m.unit, m.better,"
         " m.value, m.lo, m.hi, m.noise, k.gbps, k.gflops, k.bytes, k.macs, k.floor_us,"
         " k.floor_percent, k.bound, k.isa FROM (" +
         ids +
         ") picked CROSS JOIN metrics m ON m.id = picked.id CROSS JOIN subjects s ON s.id ="
         " m.subject_id CROSS JOIN runs r ON r.id = m.run_id"
         " LEFT JOIN kernel_facts k ON k.metric_id = m.id";
}

// Those after ?1 (a run) and ?2 (a measurement of it) in the order of newest runs first.
#define MILLRACE_AFTER(run) "(" run " < ?1 OR (" run " = ?1 AND m.id < ?2))"
#define MILLRACE_NEWEST " ORDER BY m.run_id DESC, m.id DESC LIMIT ?3"

constexpr const char* kOfAll =
    "SELECT m.id FROM metrics m WHERE m.run_id <= ?1 AND " MILLRACE_AFTER(
        "m.run_id") " AND (?4 = '' OR m.name = ?4)" MILLRACE_NEWEST;
// Walks the runs that measured it: each has what is looked for, so it ends soon.
constexpr const char* kOfName =
    "SELECT m.id FROM run_names n CROSS JOIN metrics m ON m.run_id = n.run_id"
    " CROSS JOIN subjects s ON s.id = m.subject_id WHERE n.name = ?5 AND s.name = ?5"
    " AND n.run_id <= ?1 AND " MILLRACE_AFTER(
        "n.run_id") " AND (?4 = '' OR m.name = ?4)"
                    " ORDER BY n.run_id DESC, m.id DESC LIMIT ?3";
#define MILLRACE_MATCHES                                         \
  " (?5 = '' OR s.name = ?5) AND (?6 = '' OR s.problem GLOB ?6)" \
  " AND (?7 = '' OR s.variant GLOB ?7) AND (?8 = '' OR s.mode GLOB ?8)"

// What matches is common, and so among the newest, or rare, and then its subjects lead to all of
// it. This looks at the newest,
constexpr const char* kOfNewest =
    "SELECT m.id FROM (SELECT id, run_id, subject_id, name FROM metrics m WHERE m.run_id <= ?1"
    " AND " MILLRACE_AFTER("m.run_id") " ORDER BY m.run_id DESC, m.id DESC LIMIT 5000) m"
    " CROSS JOIN subjects s ON s.id = m.subject_id WHERE" MILLRACE_MATCHES
    " AND (?4 = '' OR m.name = ?4)" MILLRACE_NEWEST;
// and this walks the subjects, and of each the index that has all that is sorted by.
constexpr const char* kOfSubjects =
    "SELECT m.id FROM subjects s CROSS JOIN metrics m ON m.subject_id = s.id WHERE" MILLRACE_MATCHES
    " AND ?4 = '' AND " MILLRACE_AFTER("m.run_id") MILLRACE_NEWEST;
constexpr const char* kOfSubjectsByMetric =
    "SELECT m.id FROM subjects s CROSS JOIN metrics m ON m.subject_id = s.id AND m.name = ?4"
    " WHERE" MILLRACE_MATCHES " AND " MILLRACE_AFTER("m.run_id") MILLRACE_NEWEST;
constexpr const char* kOfSubject =
    "SELECT m.id FROM metrics m WHERE m.subject_id = ?5 AND (?4 = '' OR m.name = ?4) "
    "AND " MILLRACE_AFTER("m.run_id") MILLRACE_NEWEST;
constexpr const char* kOfRun =
    "SELECT m.id FROM metrics m WHERE m.run_id = ?1 AND m.id > ?2 ORDER BY m.id LIMIT ?3";

Json real(const Query& q, int column) {
  return q.is_null(column) ? Json() : Json(q.real(column));
}

Json read_row(const Query& q) {
  Json out = {{"id", q.integer(0)},
              {"run", q.integer(1)},
              {"started", q.text(2)},
              {"state", q.text(3)},
              {"imported", !q.text(4).empty()},
              {"device", q.text(5)},
              {"commit", q.text(6)},
              {"subject", q.integer(7)},
              {"kind", q.text(8)},
              {"name", q.text(9)},
              {"problem", q.text(10)},
              {"variant", q.text(11)},
              {"mode", q.text(12)},
              {"lanes", q.integer(13)},
              {"metric", q.text(14)},
              {"unit", q.text(15)},
              {"better", q.text(16)},
              {"value", q.real(17)},
              {"lo", real(q, 18)},
              {"hi", real(q, 19)},
              {"noise", real(q, 20)}};
  if (q.is_null(28)) return out;
  out["kernel"] = {{"gbps", real(q, 21)}, {"gflops", real(q, 22)},   {"bytes", real(q, 23)},
                   {"macs", real(q, 24)}, {"floor_us", real(q, 25)}, {"floor_percent", real(q, 26)},
                   {"bound", q.text(27)}, {"isa", q.text(28)}};
  return out;
}

Result<Json> read_rows(Query& query) {
  Json out = Json::array();
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    out.push_back(read_row(query));
  }
}

// Where the next page begins: the run of a measurement.
Result<int64_t> run_of(Store& store, int64_t metric) {
  if (metric == 0) return INT64_MAX;
  Query query(store.connection(), store.path(), "SELECT run_id FROM metrics WHERE id = ?");
  query.bind(metric);
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found) return error(Code::not_found, "no measurement {} in {}", metric, store.path());
  return query.integer(0);
}

}  // namespace

Result<Json> read_results(Store& store, const ResultFilter& f) {
  if (f.run > 0) {
    Query query(store.connection(), store.path(), select_rows(kOfRun).c_str());
    query.bind(f.run, f.before, f.limit);
    return read_rows(query);
  }
  MILLRACE_ASSIGN(const int64_t run, run_of(store, f.before));
  const int64_t before = f.before > 0 ? f.before : INT64_MAX;
  const auto ask = [&](const char* ids, const auto&... more) {
    const std::string sql = select_rows(ids) + " ORDER BY m.run_id DESC, m.id DESC";
    Query query(store.connection(), store.path(), sql.c_str());
    query.bind(run, before, f.limit, f.metric, more...);
    return read_rows(query);
  };
  if (f.subject > 0) return ask(kOfSubject, f.subject);
  if (!f.has_patterns() && !f.name.empty()) return ask(kOfName, f.name);
  if (!f.has_patterns() && f.metric.empty()) return ask(kOfAll);
  auto newest = ask(kOfNewest, f.name, f.problem, f.variant, f.mode);
  if (!newest.ok() || std::ssize(*newest) >= f.limit) return newest;
  return ask(f.metric.empty() ? kOfSubjects : kOfSubjectsByMetric, f.name, f.problem, f.variant,
             f.mode);
}

Result<Json> read_samples(Store& store, int64_t run, int64_t after, int64_t most) {
  Query query(store.connection(), store.path(),
              "SELECT metric_id, twin, value FROM samples WHERE metric_id IN"
              " (SELECT id FROM metrics WHERE run_id = ?1 AND id > ?2)"
              " ORDER BY metric_id, twin, round LIMIT ?3");
  query.bind(run, after, most);
  Json out = Json::array();
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) break;
    if (out.empty() || out.back()["id"] != query.integer(0))
      out.push_back(
          {{"id", query.integer(0)}, {"samples", Json::array()}, {"twin", Json::array()}});
    out.back()[query.integer(1) == 0 ? "samples" : "twin"].push_back(query.real(2));
  }
  return out;
}

Result<Json> read_names(Store& store) {
  Query query(store.connection(), store.path(),
              "SELECT n.name, n.runs, (SELECT kind FROM subjects s WHERE s.name = n.name LIMIT 1)"
              " FROM (SELECT name, count(*) AS runs FROM run_names GROUP BY name LIMIT 1000) n");
  Json out = Json::array();
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    out.push_back({{"name", query.text(0)}, {"runs", query.integer(1)}, {"kind", query.text(2)}});
  }
}

Result<Json> read_subjects(Store& store, const std::string& name, int limit) {
  Query query(store.connection(), store.path(),
              "SELECT s.id, s.kind, s.name, s.problem, s.variant, s.mode, s.n_lanes,"
              " (SELECT group_concat(name) FROM (SELECT DISTINCT name FROM metrics"
              "  WHERE subject_id = s.id))"
              " FROM subjects s WHERE (?1 = '' OR s.name = ?1)"
              " ORDER BY s.name, s.problem, s.mode, s.variant LIMIT ?2");
  query.bind(name, limit);
  Json out = Json::array();
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    out.push_back({{"id", query.integer(0)},
                   {"kind", query.text(1)},
                   {"name", query.text(2)},
                   {"problem", query.text(3)},
                   {"variant", query.text(4)},
                   {"mode", query.text(5)},
                   {"lanes", query.integer(6)},
                   {"metrics", query.text(7)}});
  }
}

}  // namespace millrace::lab
