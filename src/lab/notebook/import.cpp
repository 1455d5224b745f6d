#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/sqlite.h"
#include "base/utf8.h"
#include "lab/json_fields.h"
#include "lab/notebook/exchange.h"
#include "lab/run_record.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

// A run of every kernel is a few MB; what is longer is no export.
constexpr size_t kMostLineBytes = size_t{32} << 20;

// The next line, without its end; false where there is none.
Result<bool> read_line(std::istream& text, std::string& line) {
  line.clear();
  for (int c = text.get(); c != std::istream::traits_type::eof(); c = text.get()) {
    if (c == '\n') return true;
    if (line.size() == kMostLineBytes)
      return error(Code::corrupt, "a line of more than {} MiB", kMostLineBytes >> 20);
    line.push_back(static_cast<char>(c));
  }
  return !line.empty();
}

Status check_if_any(std::string_view what, const std::string& text) {
  return text.empty() ? Status() : check_text(what, text);
}

}  // namespace

// The notebook's friend: it alone writes records that were made elsewhere.
class Importer {
 public:
  explicit Importer(Notebook& notebook) : notebook_(notebook), origin_("imported " + utc_now()) {}

  Result<Imported> all(std::istream& text, const std::string& name) {
    const auto wrong = [&](const Status& status) {
      return error(status.code() == Code::io_error ? Code::io_error : Code::corrupt,
                   "{}:{}: {}; nothing was imported", name, n_lines_, status.message());
    };
    std::string line;
    auto more = read_line(text, line);  // before others have to wait for the transaction
    Transaction transaction(store().connection(), store().path());
    MILLRACE_TRY(transaction.begin());
    for (; more.ok() && more.value(); more = read_line(text, line)) {
      ++n_lines_;
      if (const Status status = take(line); !status.ok()) return wrong(status);
    }
    if (!more.ok()) return wrong(more.status());
    if (!ended_)
      return error(Code::corrupt,
                   "{} ends after {} lines without its last one: it is not a whole export; nothing "
                   "was imported",
                   name, n_lines_);
    MILLRACE_TRY(
        notebook_.add_event("import.done", {"", 0},
                            fmt::format("{} runs, {} other records", out_.n_runs, out_.n_others)));
    MILLRACE_TRY(transaction.commit());
    return out_;
  }

 private:
  Store& store() { return notebook_.store(); }

  Status take(const std::string& line) {
    const Json json = parse_shallow(line);
    if (!json.is_object()) return error(Code::corrupt, "not a JSON object");
    JsonFields in(json);
    const std::string type = in.text("type");
    MILLRACE_TRY(in.status());
    if (ended_) return error(Code::corrupt, "a line after the last");
    if (n_lines_ == 1) return begin(type, in);
    if (type == "end") return end(in);
    if (type == "event") return event(in);
    const std::string uid = in.text("uid");
    MILLRACE_TRY(in.status());
    if (uid.size() != 32 || uid.find_first_not_of("0123456789abcdef") != uid.npos)
      return error(Code::corrupt, "uid is not 32 hexadecimal digits");
    if (type == "run") return run(json, in);
    if (type == "hypothesis") return once("hyp", uid, [&] { return hypothesis(in); });
    if (type == "experiment") return once("exp", uid, [&] { return experiment(in); });
    if (type == "verdict") return once("verdict", uid, [&] { return verdict(in); });
    if (type == "learning") return once("learn", uid, [&] { return learning(in); });
    if (type == "post") return once("post", uid, [&] { return post(in); });
    if (type == "claim") return once("claim", uid, [&] { return claim(in); });
    if (type == "edge") return edge(in);
    return error(Code::corrupt, "no record has the type '{}'", printable(type, 100));
  }

  Status begin(const std::string& type, JsonFields& in) {
    const int64_t version = type == "millrace-lab" ? in.integer("version") : 0;
    if (type != "millrace-lab" || !in.status().ok())
      return error(Code::corrupt, "not an export of 'millrace lab export'");
    if (version == 1) return {};
    return error(Code::unsupported, "version {} of the format; this program knows 1", version);
  }
  Status end(JsonFields& in) {
    const int64_t n = in.integer("lines");
    MILLRACE_TRY(in.status());
    if (n != n_lines_ - 1)
      return error(Code::corrupt, "the export had {} lines, here are {}", n, n_lines_ - 1);
    ended_ = true;
    return {};
  }

  // Unless it is here already.
  template <class Insert>
  Status once(std::string_view kind, const std::string& uid, Insert&& insert) {
    const auto known = notebook_.ref_of(kind, uid);
    if (known.ok()) {
      ++out_.n_known;
      return {};
    }
    if (known.status().code() != Code::not_found) return known.status();
    ++out_.n_others;
    return insert();
  }

  void read_head(JsonFields& in, RecordHead& out) {
    out.uid = in.text("uid");
    out.created = in.text("created");
    out.origin = origin_;
  }
  static Conditions read_conditions(JsonFields& in) {
    return {in.text("hardware"), in.text("driver"), in.text("toolkit"), in.text("source")};
  }
  Result<int64_t> named(std::string_view kind, JsonFields& in, const char* member) {
    const std::string uid = in.text(member);
    MILLRACE_TRY(in.status());
    MILLRACE_ASSIGN(const NodeRef ref, notebook_.ref_of(kind, uid));
    return ref.id;
  }
  Result<std::optional<int64_t>> maybe_named(std::string_view kind, JsonFields& in,
                                             const char* member) {
    if (!in.has(member)) return std::optional<int64_t>();
    MILLRACE_ASSIGN(const int64_t id, named(kind, in, member));
    return std::optional(id);
  }

  Status run(const Json& json, JsonFields& in) {
    MILLRACE_ASSIGN(RunRecord record, parse_run_record(json));
    RunSummary& head = record.head;
    if (head.state != "done" && head.state != "failed" && head.state != "interrupted")
      return error(Code::corrupt, "a run cannot have the state '{}'", printable(head.state, 100));
    if (!head.is_sealed() && head.state != "interrupted")
      return error(Code::corrupt, "a run that ended has no digest");
    if (head.is_sealed() && digest_of(record) != head.digest)
      return error(Code::corrupt,
                   "the run's digest does not match: its samples, machine or build were changed");
    if (const auto known = notebook_.ref_of("run", head.uid); known.ok()) {
      MILLRACE_ASSIGN(const RunSummary here, store().run(known.value().id));
      if (here.digest != head.digest)
        return error(Code::corrupt, "run:{} is the same run with another digest", here.id);
      ++out_.n_known;
      return {};
    }
    head.origin = origin_;
    MILLRACE_TRY(check_if_any("the run's command", head.command));
    MILLRACE_ASSIGN(const auto experiment, maybe_named("exp", in, "experiment"));
    if (experiment) {
      MILLRACE_ASSIGN(const Experiment made, notebook_.experiment(*experiment));
      if (made.origin.empty())
        return error(Code::corrupt, "exp:{} was made here, and only runs from here belong to it",
                     made.id);
    }
    MILLRACE_ASSIGN(const int64_t id, store().insert_record(record, experiment));
    ++out_.n_runs;
    return notebook_.add_event("run.imported", {"run", id}, head.command);
  }

  Status hypothesis(JsonFields& in) {
    Hypothesis h;
    read_head(in, h);
    h.text = in.text("text");
    h.rationale = in.text("rationale");
    Prediction& p = h.prediction;
    p.metric = in.text("metric");
    p.direction = in.text("direction");
    p.size = in.real("size");
    p.kind = in.text("kind");
    p.name = in.text("name");
    p.problem = in.text("problem");
    p.mode = in.text("mode");
    p.variant_a = in.text("variant_a");
    p.variant_b = in.text("variant_b");
    MILLRACE_TRY(in.status());
    MILLRACE_TRY(check_text("the hypothesis", h.text));
    MILLRACE_TRY(check_text("the metric", p.metric));
    for (const std::string& text :
         {h.rationale, p.kind, p.name, p.problem, p.mode, p.variant_a, p.variant_b})
      MILLRACE_TRY(check_if_any("a part of the prediction", text));
    if (p.size <= -1 || (p.direction == "down" && p.size > 0) ||
        (p.direction == "up" && p.size < 0) || (p.direction == "same" && p.size != 0))
      return error(Code::corrupt, "a size of {} does not go with '{}'", p.size,
                   printable(p.direction, 100));
    MILLRACE_ASSIGN(p.baseline_run, maybe_named("run", in, "baseline_run"));
    return notebook_.insert(h).status();
  }

  Status experiment(JsonFields& in) {
    Experiment e;
    read_head(in, e);
    e.role = in.text("role");
    e.command = in.text("command");
    MILLRACE_ASSIGN(e.hypothesis, named("hyp", in, "hypothesis"));
    MILLRACE_TRY(check_if_any("the experiment's command", e.command));
    return notebook_.insert(e).status();
  }

  // The outcome has to follow from the samples, as it would here.
  Status verdict(JsonFields& in) {
    Verdict v;
    read_head(in, v);
    v.outcome = in.text("outcome");
    v.method = in.text("method");
    v.json = in.text("json");
    MILLRACE_ASSIGN(v.hypothesis, named("hyp", in, "hypothesis"));
    MILLRACE_ASSIGN(v.run, named("run", in, "run"));
    MILLRACE_ASSIGN(v.baseline_run, maybe_named("run", in, "baseline_run"));
    if (v.method != kJudgeMethod)
      return error(Code::unsupported, "no verdict is made by '{}' here", printable(v.method, 100));
    MILLRACE_ASSIGN(const auto runs, notebook_.runs_of(v.hypothesis, "candidate"));
    const bool is_of_it = std::any_of(runs.begin(), runs.end(), [&](const RunSummary& run) {
      return run.id == v.run && run.state == "done";
    });
    if (!is_of_it)
      return error(Code::corrupt, "the verdict's run was not measured to its end for hyp:{}",
                   v.hypothesis);
    MILLRACE_ASSIGN(const Hypothesis h, notebook_.hypothesis(v.hypothesis));
    MILLRACE_ASSIGN(const Judgement again, notebook_.judge_runs(h, v.run, v.baseline_run));
    if (again.outcome != v.outcome)
      return error(Code::corrupt, "the verdict says {}, and the samples say {}",
                   printable(v.outcome, 100), again.outcome);
    v.json = to_json_text(again);
    return notebook_.insert(v).status();
  }

  Status learning(JsonFields& in) {
    Learning l;
    read_head(in, l);
    l.text = in.text("text");
    l.scope = in.text("scope");
    l.conditions = read_conditions(in);
    MILLRACE_ASSIGN(l.hypothesis, named("hyp", in, "hypothesis"));
    MILLRACE_ASSIGN(l.verdict, named("verdict", in, "verdict"));
    MILLRACE_TRY(check_text("the learning", l.text));
    MILLRACE_TRY(check_if_any("the scope", l.scope));
    return notebook_.insert(l).status();
  }

  Status post(JsonFields& in) {
    Post p;
    read_head(in, p);
    p.slug = in.text("slug");
    p.title = in.text("title");
    p.body = in.text("body");
    p.state = in.text("state");
    MILLRACE_TRY(in.status());
    MILLRACE_TRY(check(p));
    return notebook_.insert(p).status();
  }

  // Its value is computed from the run, as it was when the claim was made.
  Status claim(JsonFields& in) {
    Claim c;
    read_head(in, c);
    c.text = in.text("text");
    c.subject = {in.text("kind"),    in.text("name"), in.text("problem"),
                 in.text("variant"), in.text("mode"), static_cast<int>(in.integer("n_lanes"))};
    c.metric = in.text("metric");
    c.statistic = in.text("statistic");
    c.value = in.real("value");
    c.unit = in.text("unit");
    c.conditions = read_conditions(in);
    MILLRACE_ASSIGN(c.post, maybe_named("post", in, "post"));
    MILLRACE_ASSIGN(c.run, named("run", in, "run"));
    MILLRACE_TRY(check_text("the claim", c.text));
    MILLRACE_ASSIGN(const double again, notebook_.value_of(c));
    if (again != c.value)
      return error(Code::corrupt, "the claim says {}, and the run says {}", c.value, again);
    return notebook_.insert(c).status();
  }

  Status edge(JsonFields& in) {
    Edge e;
    read_head(in, e);
    e.type = in.text("edge");
    const std::string from = in.text("from_kind"), to = in.text("to_kind");
    MILLRACE_ASSIGN(e.from.id, named(from, in, "from"));
    MILLRACE_ASSIGN(e.to.id, named(to, in, "to"));
    e.from.kind = from;
    e.to.kind = to;
    MILLRACE_ASSIGN(e.run, maybe_named("run", in, "run"));
    MILLRACE_ASSIGN(const auto there, notebook_.edges_at(e.from));
    for (const Edge& other : there)
      if (other.from == e.from && other.to == e.to && other.type == e.type && other.run == e.run) {
        ++out_.n_known;
        return {};
      }
    ++out_.n_others;
    return notebook_.insert(e).status();
  }

  Status event(JsonFields& in) {
    const std::string uid = in.text("uid"), at = in.text("at"), by = in.text("actor"),
                      type = in.text("event"), kind = in.text("ref_kind"), text = in.text("text");
    MILLRACE_TRY(in.status());
    MILLRACE_TRY(check_if_any("the event", text));
    const std::string actor = by.starts_with("imported ") ? by : "imported " + by;
    NodeRef ref;
    if (in.has("ref")) {
      MILLRACE_ASSIGN(ref.id, named(kind, in, "ref"));
      ref.kind = kind;
    }
    Query known(store().connection(), store().path(), "SELECT 1 FROM events WHERE uid = ?");
    known.bind(uid);
    MILLRACE_ASSIGN(const bool is_known, known.step());
    if (is_known) return {};
    Query query(store().connection(), store().path(),
                "INSERT INTO events(uid, at, actor, type, ref_kind, ref_id, text)"
                " VALUES(?, ?, ?, ?, ?, ?, ?)");
    return query.bind(uid, at, actor, type, ref.kind, ref.id, text).run();
  }

  Notebook& notebook_;
  const std::string origin_;
  int64_t n_lines_ = 0;
  bool ended_ = false;
  Imported out_;
};

Result<Imported> import_notebook(Notebook& notebook, std::istream& text, const std::string& name) {
  return Importer(notebook).all(text, name);
}

}  // namespace millrace::lab
