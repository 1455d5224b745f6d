// The notebook's tables as structs: column lists and how a row of each is read. Only the notebook's
// own files use it.
#pragma once

#include <vector>

#include "base/sqlite.h"
#include "lab/notebook/records.h"

namespace millrace::lab {

inline constexpr std::string_view kHypothesisColumns =
    "id, uid, created, origin, text, rationale, metric, direction, size, kind, name, problem, mode,"
    " variant_a, variant_b, baseline_run_id";
inline constexpr std::string_view kExperimentColumns =
    "id, uid, created, origin, hypothesis_id, role, command";
inline constexpr std::string_view kVerdictColumns =
    "id, uid, created, origin, hypothesis_id, run_id, baseline_run_id, outcome, method, json";
inline constexpr std::string_view kLearningColumns =
    "id, uid, created, origin, hypothesis_id, verdict_id, text, scope, hardware, driver, toolkit,"
    " source";
inline constexpr std::string_view kEdgeColumns =
    "id, uid, created, origin, src_kind, src_id, dst_kind, dst_id, type, run_id";
inline constexpr std::string_view kPostColumns =
    "id, uid, created, origin, slug, title, body, state";
inline constexpr std::string_view kClaimColumns =
    "id, uid, created, origin, post_id, run_id, text, kind, name, problem, variant, mode, n_lanes,"
    " metric, statistic, value, unit, hardware, driver, toolkit, source";
inline constexpr std::string_view kEventColumns =
    "seq, uid, at, actor, type, ref_kind, ref_id, text";

void read(const Query& q, Hypothesis& out);
void read(const Query& q, Experiment& out);
void read(const Query& q, Verdict& out);
void read(const Query& q, Learning& out);
void read(const Query& q, Edge& out);
void read(const Query& q, Post& out);
void read(const Query& q, Claim& out);
void read(const Query& q, Event& out);

// The table of a kind of node ("hyp": "hypotheses"); empty for a kind that there is not.
std::string table_of(std::string_view kind);

// Rows of a SELECT with a kind's columns.
template <class Record, class... T>
Result<std::vector<Record>> read_all(Store& store, const std::string& sql, const T&... values) {
  Query query(store.connection(), store.path(), sql.c_str());
  query.bind(values...);
  std::vector<Record> out;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    read(query, out.emplace_back());
  }
}

template <class Record>
Result<Record> read_one(Store& store, std::string_view columns, const NodeRef& ref) {
  MILLRACE_ASSIGN(auto found, read_all<Record>(store,
                                               fmt::format("SELECT {} FROM {} WHERE id = ?",
                                                           columns, table_of(ref.kind)),
                                               ref.id));
  if (found.empty()) return error(Code::not_found, "no {} in {}", to_text(ref), store.path());
  return std::move(found.front());
}

}  // namespace millrace::lab
