#include "lab/notebook/rows.h"

namespace millrace::lab {
namespace {

void read_head(const Query& q, RecordHead& out) {
  out.id = q.integer(0);
  out.uid = q.text(1);
  out.created = q.text(2);
  out.origin = q.text(3);
}

Conditions read_conditions(const Query& q, int c) {
  return {q.text(c), q.text(c + 1), q.text(c + 2), q.text(c + 3)};
}

}  // namespace

void read(const Query& q, Hypothesis& out) {
  read_head(q, out);
  out.text = q.text(4);
  out.rationale = q.text(5);
  Prediction& p = out.prediction;
  p.metric = q.text(6);
  p.direction = q.text(7);
  p.size = q.real(8);
  int c = 9;
  for (std::string* text : {&p.kind, &p.name, &p.problem, &p.mode, &p.variant_a, &p.variant_b})
    *text = q.text(c++);
  p.baseline_run = q.maybe_integer(c);
}

void read(const Query& q, Experiment& out) {
  read_head(q, out);
  out.hypothesis = q.integer(4);
  out.role = q.text(5);
  out.command = q.text(6);
}

void read(const Query& q, Verdict& out) {
  read_head(q, out);
  out.hypothesis = q.integer(4);
  out.run = q.integer(5);
  out.baseline_run = q.maybe_integer(6);
  out.outcome = q.text(7);
  out.method = q.text(8);
  out.json = q.text(9);
}

void read(const Query& q, Learning& out) {
  read_head(q, out);
  out.hypothesis = q.integer(4);
  out.verdict = q.integer(5);
  out.text = q.text(6);
  out.scope = q.text(7);
  out.conditions = read_conditions(q, 8);
}

void read(const Query& q, Edge& out) {
  read_head(q, out);
  out.from = {q.text(4), q.integer(5)};
  out.to = {q.text(6), q.integer(7)};
  out.type = q.text(8);
  out.run = q.maybe_integer(9);
}

void read(const Query& q, Post& out) {
  read_head(q, out);
  out.slug = q.text(4);
  out.title = q.text(5);
  out.body = q.text(6);
  out.state = q.text(7);
}

void read(const Query& q, Claim& out) {
  read_head(q, out);
  out.post = q.maybe_integer(4);
  out.run = q.integer(5);
  out.text = q.text(6);
  out.subject = {q.text(7),  q.text(8),  q.text(9),
                 q.text(10), q.text(11), static_cast<int>(q.integer(12))};
  out.metric = q.text(13);
  out.statistic = q.text(14);
  out.value = q.real(15);
  out.unit = q.text(16);
  out.conditions = read_conditions(q, 17);
}

void read(const Query& q, Event& out) {
  out = {q.integer(0), q.text(1), q.text(2), q.text(3), q.text(4), {q.text(5), q.integer(6)},
         q.text(7)};
}

std::string table_of(std::string_view kind) {
  if (kind == "run") return "runs";
  if (kind == "hyp") return "hypotheses";
  if (kind == "exp") return "experiments";
  if (kind == "verdict") return "verdicts";
  if (kind == "learn") return "learnings";
  if (kind == "post") return "posts";
  return kind == "claim" ? "claims" : "";
}

}  // namespace millrace::lab
