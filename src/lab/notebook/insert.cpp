// How the notebook's records are written. A record that comes from another database brings its uid,
// date and origin; one that is made here gets them.
#include "base/clock.h"
#include "base/sqlite.h"
#include "lab/notebook/notebook.h"

namespace millrace::lab {
namespace {

// INSERT with the head's columns first; `columns` and their values follow.
template <class... T>
Result<int64_t> insert_row(Store& store, const char* table, const RecordHead& head,
                           std::string_view columns, const T&... values) {
  std::string places = "ifnull(?, lower(hex(randomblob(16)))), ?, ?";
  for (size_t i = 0; i < sizeof...(values); ++i) places += ", ?";
  const std::string sql =
      fmt::format("INSERT INTO {}(uid, created, origin, {}) VALUES({})", table, columns, places);
  Query query(store.connection(), store.path(), sql.c_str());
  const std::string created = head.created.empty() ? utc_now() : head.created;
  if (head.uid.empty())
    query.bind(nullptr, created, head.origin, values...);
  else
    query.bind(head.uid, created, head.origin, values...);
  MILLRACE_TRY(query.run());
  return static_cast<int64_t>(sqlite3_last_insert_rowid(store.connection()));
}

}  // namespace

Result<int64_t> Notebook::insert(const Hypothesis& h) {
  const Prediction& p = h.prediction;
  return insert_row(store_, "hypotheses", h,
                    "text, rationale, metric, direction, size, kind, name, problem, mode,"
                    " variant_a, variant_b, baseline_run_id",
                    h.text, h.rationale, p.metric, p.direction, p.size, p.kind, p.name, p.problem,
                    p.mode, p.variant_a, p.variant_b, p.baseline_run);
}

Result<int64_t> Notebook::insert(const Experiment& e) {
  return insert_row(store_, "experiments", e, "hypothesis_id, role, command", e.hypothesis, e.role,
                    e.command);
}

Result<int64_t> Notebook::insert(const Verdict& v) {
  return insert_row(store_, "verdicts", v,
                    "hypothesis_id, run_id, baseline_run_id, outcome, method, json", v.hypothesis,
                    v.run, v.baseline_run, v.outcome, v.method, v.json);
}

Result<int64_t> Notebook::insert(const Learning& l) {
  const Conditions& c = l.conditions;
  return insert_row(store_, "learnings", l,
                    "hypothesis_id, verdict_id, text, scope, hardware, driver, toolkit, source",
                    l.hypothesis, l.verdict, l.text, l.scope, c.hardware, c.driver, c.toolkit,
                    c.source);
}

Result<int64_t> Notebook::insert(const Edge& e) {
  return insert_row(store_, "edges", e, "src_kind, src_id, dst_kind, dst_id, type, run_id",
                    e.from.kind, e.from.id, e.to.kind, e.to.id, e.type, e.run);
}

Result<int64_t> Notebook::insert(const Post& p) {
  return insert_row(store_, "posts", p, "slug, title, body, state", p.slug, p.title, p.body,
                    p.state);
}

Result<int64_t> Notebook::insert(const Claim& c) {
  const Subject& s = c.subject;
  return insert_row(store_, "claims", c,
                    "post_id, run_id, text, kind, name, problem, variant, mode, n_lanes, metric,"
                    " statistic, value, unit, hardware, driver, toolkit, source",
                    c.post, c.run, c.text, s.kind, s.name, s.problem, s.variant, s.mode, s.n_lanes,
                    c.metric, c.statistic, c.value, c.unit, c.conditions.hardware,
                    c.conditions.driver, c.conditions.toolkit, c.conditions.source);
}

Status Notebook::add_event(std::string_view type, const NodeRef& ref, std::string_view text) {
  Query query(store_.connection(), store_.path(),
              "INSERT INTO events(at, actor, type, ref_kind, ref_id, text)"
              " VALUES(?, ?, ?, ?, ?, ?)");
  return query.bind(utc_now(), actor_, type, ref.kind, ref.id, text).run();
}

}  // namespace millrace::lab
