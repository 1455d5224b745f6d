#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "base/sqlite.h"
#include "lab/notebook/exchange.h"
#include "lab/notebook/rows.h"
#include "lab/run_record.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

class Exporter {
 public:
  Exporter(Notebook& notebook, const std::function<Status(std::string_view)>& write)
      : notebook_(notebook), write_(write) {}

  Result<Exported> all() {
    MILLRACE_TRY(line({{"type", "millrace-lab"}, {"version", 1}}));
    for (const char* kind : {"run", "hyp", "exp", "verdict", "learn", "post", "claim"}) {
      MILLRACE_ASSIGN(const auto ids, ids_of(table_of(kind)));
      for (const int64_t id : ids) MILLRACE_TRY(put({kind, id}));
    }
    MILLRACE_TRY(put_edges());
    MILLRACE_TRY(put_events());
    out_.n_records = n_lines_ - 1;
    MILLRACE_TRY(line({{"type", "end"}, {"lines", n_lines_}}));
    return std::move(out_);
  }

 private:
  Status line(const Json& record) {
    ++n_lines_;
    return write_(json_text(record) + "\n");
  }

  Result<std::vector<int64_t>> ids_of(const std::string& table) {
    const std::string sql = fmt::format("SELECT id FROM {} ORDER BY id", table);
    Query query(notebook_.store().connection(), notebook_.store().path(), sql.c_str());
    std::vector<int64_t> out;
    for (;;) {
      MILLRACE_ASSIGN(const bool more, query.step());
      if (!more) return out;
      out.push_back(query.integer(0));
    }
  }

  // A record after those that it names. One that is there no more leaves out what needs it.
  Status put(const NodeRef& ref) {
    if (!done_.insert(to_text(ref)).second) return {};
    MILLRACE_ASSIGN(const Json record, record_of(ref));
    if (record.is_null()) return {};
    there_.insert(to_text(ref));
    return line(record);
  }

  Result<Json> record_of(const NodeRef& ref) {
    if (ref.kind == "run") return run(ref);
    if (ref.kind == "hyp") return hypothesis(ref);
    if (ref.kind == "exp") return experiment(ref);
    if (ref.kind == "verdict") return verdict(ref);
    if (ref.kind == "learn") return learning(ref);
    return ref.kind == "post" ? post(ref) : claim(ref);
  }

  // The uid of what `of` names; null, and noted, when it is there no more.
  Result<Json> name(const NodeRef& of, const NodeRef& named) {
    if (named.id == 0) return Json();
    const auto uid = notebook_.uid_of(named);
    if (uid.status().code() == Code::not_found) {
      leave_out(of, fmt::format("{} was deleted", to_text(named)));
      return Json();
    }
    MILLRACE_TRY(uid.status());
    MILLRACE_TRY(put(named));
    if (there_.count(to_text(named)) > 0) return Json(uid.value());
    leave_out(of, fmt::format("{} is left out", to_text(named)));
    return Json();
  }
  void leave_out(const NodeRef& ref, const std::string& why) {
    out_.left_out.push_back(fmt::format("{}: {}", to_text(ref), why));
  }

  static Json head(const char* type, const RecordHead& h) {
    return {{"type", type}, {"uid", h.uid}, {"created", h.created}, {"origin", h.origin}};
  }
  static void add_conditions(Json& out, const Conditions& c) {
    out["hardware"] = c.hardware;
    out["driver"] = c.driver;
    out["toolkit"] = c.toolkit;
    out["source"] = c.source;
  }

  Result<Json> run(const NodeRef& ref) {
    MILLRACE_ASSIGN(const RunRecord record, notebook_.store().record(ref.id));
    if (record.head.state == "running") {
      leave_out(ref, "it has not ended");
      return Json();
    }
    MILLRACE_ASSIGN(const Json experiment, name(ref, {"exp", record.head.experiment.value_or(0)}));
    Json out = document_of(record);
    out["digest"] = record.head.is_sealed() ? Json(record.head.digest) : Json();
    out["origin"] = record.head.origin;
    out["experiment"] = experiment;
    return out;
  }

  Result<Json> hypothesis(const NodeRef& ref) {
    MILLRACE_ASSIGN(const Hypothesis h, notebook_.hypothesis(ref.id));
    const Prediction& p = h.prediction;
    MILLRACE_ASSIGN(const Json baseline, name(ref, {"run", p.baseline_run.value_or(0)}));
    if (p.baseline_run && baseline.is_null()) return Json();
    Json out = head("hypothesis", h);
    out.update(Json{{"text", h.text},
                    {"rationale", h.rationale},
                    {"metric", p.metric},
                    {"direction", p.direction},
                    {"size", p.size},
                    {"kind", p.kind},
                    {"name", p.name},
                    {"problem", p.problem},
                    {"mode", p.mode},
                    {"variant_a", p.variant_a},
                    {"variant_b", p.variant_b},
                    {"baseline_run", baseline}});
    return out;
  }

  Result<Json> experiment(const NodeRef& ref) {
    MILLRACE_ASSIGN(const Experiment e, notebook_.experiment(ref.id));
    MILLRACE_ASSIGN(const Json hypothesis, name(ref, {"hyp", e.hypothesis}));
    if (hypothesis.is_null()) return Json();
    Json out = head("experiment", e);
    out.update(Json{{"hypothesis", hypothesis}, {"role", e.role}, {"command", e.command}});
    return out;
  }

  Result<Json> verdict(const NodeRef& ref) {
    MILLRACE_ASSIGN(const Verdict v, notebook_.verdict(ref.id));
    MILLRACE_ASSIGN(const Json hypothesis, name(ref, {"hyp", v.hypothesis}));
    MILLRACE_ASSIGN(const Json run, name(ref, {"run", v.run}));
    MILLRACE_ASSIGN(const Json baseline, name(ref, {"run", v.baseline_run.value_or(0)}));
    if (hypothesis.is_null() || run.is_null() || (v.baseline_run && baseline.is_null()))
      return Json();
    Json out = head("verdict", v);
    out.update(Json{{"hypothesis", hypothesis},
                    {"run", run},
                    {"baseline_run", baseline},
                    {"outcome", v.outcome},
                    {"method", v.method},
                    {"json", v.json}});
    return out;
  }

  Result<Json> learning(const NodeRef& ref) {
    MILLRACE_ASSIGN(const Learning l, notebook_.learning(ref.id));
    MILLRACE_ASSIGN(const Json hypothesis, name(ref, {"hyp", l.hypothesis}));
    MILLRACE_ASSIGN(const Json verdict, name(ref, {"verdict", l.verdict}));
    if (hypothesis.is_null() || verdict.is_null()) return Json();
    Json out = head("learning", l);
    out.update(Json{
        {"hypothesis", hypothesis}, {"verdict", verdict}, {"text", l.text}, {"scope", l.scope}});
    add_conditions(out, l.conditions);
    return out;
  }

  Result<Json> post(const NodeRef& ref) {
    MILLRACE_ASSIGN(const Post p, notebook_.post(ref.id));
    Json out = head("post", p);
    out.update(Json{{"slug", p.slug}, {"title", p.title}, {"body", p.body}, {"state", p.state}});
    return out;
  }

  Result<Json> claim(const NodeRef& ref) {
    MILLRACE_ASSIGN(const Claim c, notebook_.claim(ref.id));
    MILLRACE_ASSIGN(const Json post, name(ref, {"post", c.post.value_or(0)}));
    MILLRACE_ASSIGN(const Json run, name(ref, {"run", c.run}));
    if (run.is_null() || (c.post && post.is_null())) return Json();
    Json out = head("claim", c);
    out.update(Json{{"post", post},
                    {"run", run},
                    {"text", c.text},
                    {"kind", c.subject.kind},
                    {"name", c.subject.name},
                    {"problem", c.subject.problem},
                    {"variant", c.subject.variant},
                    {"mode", c.subject.mode},
                    {"n_lanes", c.subject.n_lanes},
                    {"metric", c.metric},
                    {"statistic", c.statistic},
                    {"value", c.value},
                    {"unit", c.unit}});
    add_conditions(out, c.conditions);
    return out;
  }

  Status put_edges() {
    for (int64_t after = 0;;) {
      MILLRACE_ASSIGN(const auto edges, notebook_.edges(after, 1000));
      if (edges.empty()) return {};
      after = edges.back().id;
      for (const Edge& e : edges) MILLRACE_TRY(put_edge(e));
    }
  }
  Status put_edge(const Edge& e) {
    const auto is_there = [this](const NodeRef& ref) { return there_.count(to_text(ref)) > 0; };
    if (!is_there(e.from) || !is_there(e.to) || (e.run && !is_there({"run", *e.run}))) return {};
    MILLRACE_ASSIGN(const std::string from, notebook_.uid_of(e.from));
    MILLRACE_ASSIGN(const std::string to, notebook_.uid_of(e.to));
    MILLRACE_ASSIGN(const Json run, name(e.from, {"run", e.run.value_or(0)}));
    Json out = head("edge", e);
    out.update(Json{{"from_kind", e.from.kind},
                    {"from", from},
                    {"to_kind", e.to.kind},
                    {"to", to},
                    {"edge", e.type},
                    {"run", run}});
    return line(out);
  }

  Status put_events() {
    for (int64_t after = 0;;) {
      MILLRACE_ASSIGN(const auto events, notebook_.events(after, 1000));
      if (events.empty()) return {};
      after = events.back().seq;
      for (const Event& e : events) MILLRACE_TRY(put_event(e));
    }
  }
  Status put_event(const Event& e) {
    Json ref;
    if (there_.count(to_text(e.ref)) > 0) {
      MILLRACE_ASSIGN(ref, name(e.ref, e.ref));
    }
    return line({{"type", "event"},
                 {"uid", e.uid},
                 {"at", e.at},
                 {"actor", e.actor},
                 {"event", e.type},
                 {"ref_kind", ref.is_null() ? "" : e.ref.kind},
                 {"ref", ref},
                 {"text", e.text}});
  }

  Notebook& notebook_;
  const std::function<Status(std::string_view)>& write_;
  std::set<std::string> done_, there_;
  int64_t n_lines_ = 0;
  Exported out_;
};

}  // namespace

Result<Exported> export_notebook(Notebook& notebook,
                                 const std::function<Status(std::string_view)>& write) {
  return Exporter(notebook, write).all();
}

}  // namespace millrace::lab
