#include "lab/notebook/notebook.h"

#include <algorithm>

#include "base/sqlite.h"
#include "base/utf8.h"
#include "lab/notebook/rows.h"

namespace millrace::lab {
namespace {

constexpr size_t kMostText = 64 << 10;

std::string select(std::string_view columns, std::string_view table, std::string_view rest) {
  return fmt::format("SELECT {} FROM {} {}", columns, table, rest);
}

int64_t or_all(int64_t before) {
  return before > 0 ? before : INT64_MAX;
}

}  // namespace

Status check_text(std::string_view what, std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return error(Code::invalid_argument, "{} is empty", what);
  if (text.size() > kMostText)
    return error(Code::invalid_argument, "{} has {} bytes; the most is {}", what, text.size(),
                 kMostText);
  if (!is_utf8(text)) return error(Code::invalid_argument, "{} is not UTF-8", what);
  return {};
}

Result<Notebook> Notebook::open(const std::filesystem::path& path, Store::Missing missing) {
  MILLRACE_ASSIGN(Store store, Store::open(path, missing));
  return Notebook(std::move(store));
}

Result<int64_t> Notebook::add(const Hypothesis& hypothesis) {
  MILLRACE_TRY(check_text("the hypothesis", hypothesis.text));
  const Prediction& p = hypothesis.prediction;
  MILLRACE_TRY(check_text("the metric", p.metric));
  for (const std::string& text :
       {hypothesis.rationale, p.kind, p.name, p.problem, p.mode, p.variant_a, p.variant_b})
    if (!text.empty()) MILLRACE_TRY(check_text("a part of the prediction", text));
  if (p.baseline_run) MILLRACE_TRY(store_.run(*p.baseline_run).status());
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(const int64_t id, insert(hypothesis));
  MILLRACE_TRY(add_event("hypothesis.added", {"hyp", id}, hypothesis.text));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Result<int64_t> Notebook::add(const Experiment& experiment) {
  MILLRACE_TRY(hypothesis(experiment.hypothesis).status());
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(const int64_t id, insert(experiment));
  MILLRACE_TRY(add_event("experiment.began", {"exp", id}, experiment.command));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Result<int64_t> Notebook::add(const Edge& edge) {
  for (const NodeRef& end : {edge.from, edge.to}) MILLRACE_TRY(uid_of(end).status());
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(const int64_t id, insert(edge));
  MILLRACE_TRY(
      add_event("edge.added", edge.from, fmt::format("{} {}", edge.type, to_text(edge.to))));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Status check(const Post& post) {
  MILLRACE_TRY(check_text("the title", post.title));
  MILLRACE_TRY(check_text("the post", post.body));
  if (post.slug.empty() ||
      post.slug.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
    return error(Code::invalid_argument,
                 "a post's short name has lower-case letters, digits and '-' alone");
  return {};
}

Result<int64_t> Notebook::add(const Post& post) {
  MILLRACE_TRY(check(post));
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  MILLRACE_ASSIGN(const int64_t id, insert(post));
  MILLRACE_TRY(add_event("post.added", {"post", id}, post.title));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Status Notebook::set_post_state(int64_t id, std::string_view state) {
  MILLRACE_TRY(post(id).status());
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  Query update(store_.connection(), store_.path(), "UPDATE posts SET state = ? WHERE id = ?");
  MILLRACE_TRY(update.bind(state, id).run());
  MILLRACE_TRY(add_event("post.state", {"post", id}, state));
  return transaction.commit();
}

Status Notebook::set_post_text(int64_t id, const std::string& title, const std::string& body) {
  MILLRACE_ASSIGN(Post changed, post(id));
  changed.title = title;
  changed.body = body;
  MILLRACE_TRY(check(changed));
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  Query update(store_.connection(), store_.path(),
               "UPDATE posts SET title = ?, body = ? WHERE id = ?");
  MILLRACE_TRY(update.bind(title, body, id).run());
  MILLRACE_TRY(add_event("post.changed", {"post", id}, title));
  return transaction.commit();
}

// Text and state together: a post that is published never has, for one moment or after a crash, a
// text that was not.
Result<int64_t> Notebook::keep(const Post& changed) {
  MILLRACE_TRY(check(changed));
  Transaction transaction(store_.connection(), store_.path());
  MILLRACE_TRY(transaction.begin());
  int64_t id = changed.id;
  if (id == 0) {
    MILLRACE_ASSIGN(id, insert(changed));
    MILLRACE_TRY(add_event("post.added", {"post", id}, changed.title));
  }
  MILLRACE_ASSIGN(const Post before, post(id));
  Query update(store_.connection(), store_.path(),
               "UPDATE posts SET title = ?, body = ?, state = ? WHERE id = ?");
  MILLRACE_TRY(update.bind(changed.title, changed.body, changed.state, id).run());
  if (before.title != changed.title || before.body != changed.body)
    MILLRACE_TRY(add_event("post.changed", {"post", id}, changed.title));
  if (before.state != changed.state || changed.id == 0)
    MILLRACE_TRY(add_event("post.state", {"post", id}, changed.state));
  MILLRACE_TRY(transaction.commit());
  return id;
}

Result<Hypothesis> Notebook::hypothesis(int64_t id) {
  return read_one<Hypothesis>(store_, kHypothesisColumns, {"hyp", id});
}
Result<Experiment> Notebook::experiment(int64_t id) {
  return read_one<Experiment>(store_, kExperimentColumns, {"exp", id});
}
Result<Verdict> Notebook::verdict(int64_t id) {
  return read_one<Verdict>(store_, kVerdictColumns, {"verdict", id});
}
Result<Learning> Notebook::learning(int64_t id) {
  return read_one<Learning>(store_, kLearningColumns, {"learn", id});
}
Result<Post> Notebook::post(int64_t id) {
  return read_one<Post>(store_, kPostColumns, {"post", id});
}
Result<Post> Notebook::post_named(const std::string& slug) {
  MILLRACE_ASSIGN(auto found,
                  read_all<Post>(store_, select(kPostColumns, "posts", "WHERE slug = ?"), slug));
  if (found.empty())
    return error(Code::not_found, "no post '{}' in {}", printable(slug, 100), store_.path());
  return std::move(found.front());
}
Result<Claim> Notebook::claim(int64_t id) {
  return read_one<Claim>(store_, kClaimColumns, {"claim", id});
}

// What all verdicts say, of each run and baseline the newest; without any, whether there is a run.
// The newest alone would let who repeats a run until it suits have the last word.
#define MILLRACE_STATUS                                                                \
  " coalesce((SELECT CASE"                                                             \
  "  WHEN max(v.outcome = 'supported') AND max(v.outcome = 'refuted')"                 \
  "   THEN 'contradicted'"                                                             \
  "  WHEN max(v.outcome = 'refuted') THEN 'refuted'"                                   \
  "  WHEN max(v.outcome = 'supported') THEN 'supported'"                               \
  "  WHEN count(*) > 0 THEN 'undecided' END"                                           \
  "  FROM verdicts v WHERE v.hypothesis_id = h.id AND NOT EXISTS (SELECT 1"            \
  "   FROM verdicts n WHERE n.hypothesis_id = v.hypothesis_id AND n.run_id = v.run_id" \
  "   AND n.baseline_run_id IS v.baseline_run_id AND n.id > v.id)),"                   \
  "  CASE WHEN EXISTS (SELECT 1 FROM experiments e JOIN runs r"                        \
  "  ON r.experiment_id = e.id WHERE e.hypothesis_id = h.id) THEN 'testing' ELSE 'open' END)"

Result<std::vector<HypothesisLine>> Notebook::hypotheses(int64_t before, int limit,
                                                         std::string_view status) {
  Query query(store_.connection(), store_.path(),
              "SELECT h.id, h.created, h.text, h.origin," MILLRACE_STATUS
              " AS status, (SELECT count(*) FROM experiments e JOIN runs r"
              "  ON r.experiment_id = e.id WHERE e.hypothesis_id = h.id)"
              " FROM hypotheses h WHERE h.id < ?1 AND (?3 = '' OR status = ?3)"
              " ORDER BY h.id DESC LIMIT ?2");
  query.bind(or_all(before), limit, status);
  std::vector<HypothesisLine> out;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    HypothesisLine& line = out.emplace_back();
    line.id = query.integer(0);
    line.created = query.text(1);
    line.text = query.text(2);
    line.origin = query.text(3);
    line.status = query.text(4);
    line.n_runs = query.integer(5);
  }
}

Result<std::map<std::string, int64_t>> Notebook::count_hypotheses() {
  Query query(store_.connection(), store_.path(),
              "SELECT" MILLRACE_STATUS " AS status, count(*) FROM hypotheses h GROUP BY status");
  std::map<std::string, int64_t> out;
  for (;;) {
    MILLRACE_ASSIGN(const bool more, query.step());
    if (!more) return out;
    out[query.text(0)] = query.integer(1);
  }
}

Result<std::vector<Experiment>> Notebook::experiments(int64_t before, int limit) {
  return read_all<Experiment>(
      store_, select(kExperimentColumns, "experiments", "WHERE id < ? ORDER BY id DESC LIMIT ?"),
      or_all(before), limit);
}

Result<std::vector<Learning>> Notebook::learnings(int64_t before, int limit) {
  return read_all<Learning>(
      store_, select(kLearningColumns, "learnings", "WHERE id < ? ORDER BY id DESC LIMIT ?"),
      or_all(before), limit);
}
Result<std::vector<Post>> Notebook::posts(int64_t before, int limit) {
  return read_all<Post>(store_,
                        select(kPostColumns, "posts", "WHERE id < ? ORDER BY id DESC LIMIT ?"),
                        or_all(before), limit);
}
Result<std::vector<Experiment>> Notebook::experiments_of(int64_t hypothesis) {
  return read_all<Experiment>(
      store_, select(kExperimentColumns, "experiments", "WHERE hypothesis_id = ? ORDER BY id"),
      hypothesis);
}
Result<std::vector<Verdict>> Notebook::verdicts_of(int64_t hypothesis) {
  return read_all<Verdict>(
      store_, select(kVerdictColumns, "verdicts", "WHERE hypothesis_id = ? ORDER BY id"),
      hypothesis);
}
Result<std::vector<Learning>> Notebook::learnings_of(int64_t hypothesis) {
  return read_all<Learning>(
      store_, select(kLearningColumns, "learnings", "WHERE hypothesis_id = ? ORDER BY id"),
      hypothesis);
}
Result<std::vector<Claim>> Notebook::claims_of(int64_t post) {
  return read_all<Claim>(store_, select(kClaimColumns, "claims", "WHERE post_id = ? ORDER BY id"),
                         post);
}
Result<std::vector<Edge>> Notebook::edges_at(const NodeRef& node) {
  return read_all<Edge>(store_,
                        select(kEdgeColumns, "edges",
                               "WHERE (src_kind = ?1 AND src_id = ?2) OR"
                               " (dst_kind = ?1 AND dst_id = ?2) ORDER BY id"),
                        node.kind, node.id);
}
Result<std::vector<Edge>> Notebook::edges(int64_t after, int limit) {
  return read_all<Edge>(store_, select(kEdgeColumns, "edges", "WHERE id > ? ORDER BY id LIMIT ?"),
                        after, limit);
}
Result<std::vector<Event>> Notebook::events(int64_t after, int limit) {
  return read_all<Event>(
      store_, select(kEventColumns, "events", "WHERE seq > ? ORDER BY seq LIMIT ?"), after, limit);
}
Result<std::vector<Event>> Notebook::newest_events(int limit) {
  auto out =
      read_all<Event>(store_, select(kEventColumns, "events", "ORDER BY seq DESC LIMIT ?"), limit);
  if (out.ok()) std::reverse(out->begin(), out->end());
  return out;
}

Result<std::vector<Event>> Notebook::events_before(int64_t seq, int limit) {
  return read_all<Event>(store_,
                         select(kEventColumns, "events", "WHERE seq < ? ORDER BY seq DESC LIMIT ?"),
                         or_all(seq), limit);
}

// Newest first, over all experiments of that role.
Result<std::vector<RunSummary>> Notebook::runs_of(int64_t hypothesis, std::string_view role) {
  MILLRACE_ASSIGN(const auto experiments, experiments_of(hypothesis));
  std::vector<RunSummary> out;
  for (const Experiment& e : experiments) {
    if (!role.empty() && e.role != role) continue;
    MILLRACE_ASSIGN(const auto runs, store_.runs({.experiment = e.id, .limit = 1000}));
    out.insert(out.end(), runs.begin(), runs.end());
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id > b.id; });
  return out;
}

Result<std::string> Notebook::uid_of(const NodeRef& ref) {
  const std::string table = table_of(ref.kind);
  if (table.empty())
    return error(Code::invalid_argument, "'{}' is no kind of record", printable(ref.kind, 100));
  const std::string sql = fmt::format("SELECT uid FROM {} WHERE id = ?", table);
  Query query(store_.connection(), store_.path(), sql.c_str());
  query.bind(ref.id);
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found) return error(Code::not_found, "no {} in {}", to_text(ref), store_.path());
  return query.text(0);
}

Result<NodeRef> Notebook::ref_of(std::string_view kind, const std::string& uid) {
  const std::string table = table_of(kind);
  if (table.empty())
    return error(Code::invalid_argument, "'{}' is no kind of record", printable(kind, 100));
  const std::string sql = fmt::format("SELECT id FROM {} WHERE uid = ?", table);
  Query query(store_.connection(), store_.path(), sql.c_str());
  query.bind(uid);
  MILLRACE_ASSIGN(const bool found, query.step());
  if (!found)
    return error(Code::not_found, "no {} with the uid {} in {}", kind, printable(uid, 100),
                 store_.path());
  return NodeRef{std::string(kind), query.integer(0)};
}

}  // namespace millrace::lab
