#include "lab/notebook/json.h"

#include <cmath>

#include "lab/json_fields.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json ref(std::string_view kind, const std::optional<int64_t>& id) {
  return id ? Json(to_text(NodeRef{std::string(kind), *id})) : Json();
}

Json head(std::string_view kind, const RecordHead& h) {
  return {{"id", ref(kind, h.id)},
          {"uid", h.uid},
          {"created", h.created},
          {"imported", !h.origin.empty()}};
}

Json json_of(const Conditions& c) {
  return {
      {"hardware", c.hardware}, {"driver", c.driver}, {"toolkit", c.toolkit}, {"source", c.source}};
}

}  // namespace

Json to_json(const RunSummary& run) {
  return {{"id", ref("run", run.id)}, {"run", run.id},
          {"uid", run.uid},           {"kind", run.kind},
          {"started", run.started},   {"ended", run.ended},
          {"state", run.state},       {"device", run.device},
          {"machine", run.machine},   {"commit", run.commit},
          {"command", run.command},   {"rows", run.n_results},
          {"digest", run.digest},     {"imported", !run.origin.empty()},
          {"origin", run.origin},     {"experiment", ref("exp", run.experiment)}};
}

Json to_json(const Metric& m) {
  return {{"kind", m.subject.kind},
          {"name", m.subject.name},
          {"problem", m.subject.problem},
          {"variant", m.subject.variant},
          {"mode", m.subject.mode},
          {"lanes", m.subject.n_lanes},
          {"metric", m.name},
          {"unit", m.unit},
          {"better", m.better},
          {"value", m.value.mid},
          {"lo", finite_or_null(m.value.lo)},
          {"hi", finite_or_null(m.value.hi)},
          {"noise", finite_or_null(m.noise)},
          {"n_samples", m.samples.size()}};
}

Json to_json(const Hypothesis& h) {
  const Prediction& p = h.prediction;
  Json out = head("hyp", h);
  out["text"] = h.text;
  out["rationale"] = h.rationale;
  out["prediction"] = {{"metric", p.metric},       {"direction", p.direction},
                       {"size", p.size},           {"says", effect_text(p)},
                       {"of", subject_text(p)},    {"kind", p.kind},
                       {"name", p.name},           {"problem", p.problem},
                       {"mode", p.mode},           {"variant_a", p.variant_a},
                       {"variant_b", p.variant_b}, {"baseline_run", ref("run", p.baseline_run)}};
  return out;
}

Json to_json(const HypothesisLine& line) {
  return {
      {"id", ref("hyp", line.id)}, {"created", line.created}, {"imported", !line.origin.empty()},
      {"status", line.status},     {"runs", line.n_runs},     {"text", line.text}};
}

Json to_json(const Experiment& e) {
  Json out = head("exp", e);
  out["hypothesis"] = ref("hyp", e.hypothesis);
  out["role"] = e.role;
  out["command"] = e.command;
  return out;
}

Json to_json(const Verdict& v) {
  Json out = head("verdict", v);
  out["hypothesis"] = ref("hyp", v.hypothesis);
  out["run"] = ref("run", v.run);
  out["baseline_run"] = ref("run", v.baseline_run);
  out["outcome"] = v.outcome;
  out["method"] = v.method;
  const Json judged = parse_shallow(v.json);
  out["rows"] = judged.is_object() && judged.contains("rows") ? judged["rows"] : Json::array();
  return out;
}

Json to_json(const Strength& strength) {
  return {{"name", strength.name},
          {"supporting_runs", strength.n_supporting},
          {"refuting_runs", strength.n_refuting},
          {"undecided_runs", strength.n_undecided},
          {"unfinished_runs", strength.n_unfinished},
          {"imported_runs", strength.n_imported},
          {"machines", strength.n_machines}};
}

Json to_json(const Learning& l, const LearningState& state) {
  Json out = head("learn", l);
  out["hypothesis"] = ref("hyp", l.hypothesis);
  out["verdict"] = ref("verdict", l.verdict);
  out["text"] = l.text;
  out["scope"] = l.scope;
  out["strength"] = to_json(state.strength);
  out["conditions"] = json_of(l.conditions);
  out["stale"] = state.stale;
  out["evidence_problem"] = state.evidence;
  out["evidence_imported"] = state.imported;
  return out;
}

Json to_json(const Post& p) {
  Json out = head("post", p);
  out["slug"] = p.slug;
  out["title"] = p.title;
  out["state"] = p.state;
  out["body"] = p.body;
  return out;
}

Json to_json(const Claim& c, const ClaimState& state) {
  Json out = head("claim", c);
  out["post"] = ref("post", c.post);
  out["run"] = ref("run", c.run);
  out["text"] = c.text;
  out["of"] = {{"kind", c.subject.kind},       {"name", c.subject.name},
               {"problem", c.subject.problem}, {"variant", c.subject.variant},
               {"mode", c.subject.mode},       {"lanes", c.subject.n_lanes}};
  out["metric"] = c.metric;
  out["statistic"] = c.statistic;
  out["value"] = c.value;
  out["unit"] = c.unit;
  out["status"] = state.status;
  out["value_now"] = state.status == "no evidence" ? Json() : Json(state.value_now);
  out["problem"] = state.problem;
  out["stale"] = state.stale;
  out["evidence_imported"] = state.imported;
  return out;
}

Json to_json(const Edge& e) {
  return {{"from", to_text(e.from)},
          {"type", e.type},
          {"to", to_text(e.to)},
          {"run", ref("run", e.run)},
          {"imported", !e.origin.empty()}};
}

Json to_json(const Event& e) {
  return {{"seq", e.seq},
          {"at", e.at},
          {"actor", e.actor},
          {"type", e.type},
          {"ref", e.ref.id > 0 ? Json(to_text(e.ref)) : Json()},
          {"text", e.text}};
}

}  // namespace millrace::lab
