#include "cli/replay_drive.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "files/json.h"

namespace millrace::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kPath = "/v1/chat/completions";
constexpr double kTurnS = 1800;   // for one answer
constexpr double kSettleS = 1.2;  // before a kill: what stood a second before it must be kept
constexpr int64_t kNotDue = -1;
constexpr int64_t kMostTokens = 1 << 30;  // that a server can have counted
constexpr int64_t kTwinTokens = 4;        // one alone may have no text

int64_t ns_of(double seconds) {
  return static_cast<int64_t>(seconds * 1e9);
}

struct Session {
  const TraceSession* trace = nullptr;
  json messages = json::array();
  size_t turn = 0;
  int64_t due_ns = kNotDue;
  int64_t n_history = 0;
  std::optional<LoadClient::Id> sent = {};

  bool is_done() const { return turn == trace->turns.size(); }
};

int64_t count(const json& object, std::string_view path) {
  const json::json_pointer at{std::string(path)};
  return object.contains(at) && object.at(at).is_number_integer() ? object.at(at).get<int64_t>()
                                                                  : 0;
}

class Drive {
 public:
  Drive(const Trace& trace, std::unique_ptr<LoadClient> client, const DriveOptions& options)
      : trace_(trace), client_(std::move(client)), options_(options) {
    sessions_.resize(trace.sessions.size());
    for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i].trace = &trace.sessions[i];
  }

  Result<std::vector<TurnCost>> all() {
    const int64_t start_ns = now_ns();
    for (Session& one : sessions_)
      if (one.trace->after < 0) one.due_ns = start_ns + gap(one.trace->start_s);
    while (!is_over()) {
      if (is_time_to_kill()) {
        MILLRACE_TRY(kill());
      } else {
        MILLRACE_TRY(send_due());
      }
      MILLRACE_TRY(wait());
      for (size_t i = 0; i < sessions_.size(); ++i)
        if (sessions_[i].sent && client_->at(*sessions_[i].sent).has_ended()) MILLRACE_TRY(end(i));
    }
    return std::move(costs_);
  }

 private:
  int64_t gap(double seconds) const { return ns_of(seconds / options_.speed); }
  bool is_over() const {
    return std::all_of(sessions_.begin(), sessions_.end(),
                       [](const Session& one) { return one.is_done(); });
  }
  int64_t n_in_flight() const {
    return std::count_if(sessions_.begin(), sessions_.end(),
                         [](const Session& one) { return one.sent.has_value(); });
  }
  bool is_time_to_kill() const {
    return !was_killed_ && static_cast<double>(costs_.size()) >=
                               options_.kill_share * static_cast<double>(trace_.n_turns());
  }

  // Nothing new is sent; when the last answer has come, and a little later, the server goes.
  Status kill() {
    if (n_in_flight() > 0) return {};
    MILLRACE_TRY(client_->idle(kSettleS));
    MILLRACE_ASSIGN(client_, options_.kill());
    was_killed_ = true;
    return {};
  }

  Status send_due() {
    const int64_t now = now_ns();
    std::vector<size_t> due;
    for (size_t i = 0; i < sessions_.size(); ++i)
      if (is_due(sessions_[i], now)) due.push_back(i);
    std::sort(due.begin(), due.end(),
              [&](size_t a, size_t b) { return sessions_[a].due_ns < sessions_[b].due_ns; });
    const int64_t most = options_.twins ? 1 : options_.n_at_once;
    for (const size_t i : due)
      if (most == 0 || n_in_flight() < most) MILLRACE_TRY(send(i));
    return {};
  }
  static bool is_due(const Session& one, int64_t now) {
    return !one.is_done() && !one.sent && one.due_ns != kNotDue && one.due_ns <= now;
  }

  // For an answer, or until the next turn is due.
  Status wait() {
    const int64_t now = now_ns();
    int64_t next_ns = INT64_MAX;
    for (const Session& one : sessions_)
      if (!one.is_done() && !one.sent && one.due_ns != kNotDue && one.due_ns > now)
        next_ns = std::min(next_ns, one.due_ns);
    const bool is_timer = next_ns < INT64_MAX;
    if (!is_timer && n_in_flight() == 0) return {};
    const auto has_ended = [&] {
      return std::any_of(sessions_.begin(), sessions_.end(), [&](const Session& one) {
        return one.sent && client_->at(*one.sent).has_ended();
      });
    };
    const double left_s =
        std::min(is_timer ? static_cast<double>(next_ns - now) * 1e-9 : kTurnS, kTurnS);
    const Status status = client_->wait(has_ended, left_s);
    return is_timer && status.code() == Code::unavailable ? Status() : status;
  }

  std::string text_of(const Session& session, std::string_view which, int64_t n_words) const {
    return prose(fmt::format("{} {} {} {}", trace_.seed, session.trace->id, session.turn, which),
                 n_words);
  }

  void begin(Session& session) const {
    const TraceSession& trace = *session.trace;
    if (session.turn > 0 || trace.forks || trace.n_system_words == 0) return;
    const std::string seed = fmt::format("{} system {}", trace_.seed, trace.system_seed);
    session.messages.push_back(
        {{"role", "system"}, {"content", prose(seed, trace.n_system_words)}});
  }

  // A compaction keeps the system prompt and puts a summary in the place of all the rest.
  void compact(Session& session, int64_t n_words) const {
    json kept = json::array();
    if (!session.messages.empty() && session.messages[0]["role"] == "system")
      kept.push_back(session.messages[0]);
    kept.push_back(
        {{"role", "user"}, {"content", "Summary: " + text_of(session, "summary", n_words)}});
    kept.push_back({{"role", "assistant"}, {"content", "I have read the summary."}});
    session.messages = std::move(kept);
    session.n_history = 0;
  }

  json message(const Session& session, std::string_view which) const {
    const TraceTurn& turn = session.trace->turns[session.turn];
    json out = {{"role", turn.role}, {"content", text_of(session, which, turn.n_words)}};
    if (turn.role == "tool") out["tool_call_id"] = fmt::format("call_{}", session.turn);
    return out;
  }

  std::string body(const json& messages, int64_t n_answer) const {
    return json_text(json{{"model", options_.model},
                          {"messages", messages},
                          {"max_tokens", n_answer},
                          {"temperature", 0},
                          {"ignore_eos", true},
                          {"stream", true},
                          {"stream_options", {{"include_usage", true}}},
                          {"cache_prompt", true}});
  }
  LoadClient::More more(const Session& session) const {
    return {.headers = fmt::format("X-Session-Id: replay-{}-{}\r\n{}", trace_.seed,
                                   session.trace->id, options_.headers),
            .keeps_chat = true};
  }

  Status send(size_t at) {
    Session& session = sessions_[at];
    const TraceTurn& turn = session.trace->turns[session.turn];
    begin(session);
    if (turn.n_compacted >= 0) compact(session, turn.n_compacted);
    session.messages.push_back(message(session, "says"));
    MILLRACE_ASSIGN(session.sent,
                    client_->send(kPath, body(session.messages, turn.n_answer), more(session)));
    return {};
  }

  Status end(size_t at) {
    Session& session = sessions_[at];
    const Fetched& fetched = client_->at(*session.sent);
    session.sent.reset();
    if (!fetched.ok() || fetched.text_ns.empty())
      return error(Code::unavailable, "session '{}', turn {}: status {} {}{}", session.trace->id,
                   session.turn, fetched.status, printable(fetched.failure, 300),
                   fetched.ok() ? "no text came" : printable(fetched.body, 300));
    MILLRACE_ASSIGN(TurnCost cost, cost_of(at, fetched));
    if (options_.twins && cost.is_later) {
      MILLRACE_ASSIGN(cost.twin_s, twin(session));
    }
    session.messages.push_back({{"role", "assistant"}, {"content", fetched.text}});
    session.n_history = cost.n_prompt + cost.n_answer;
    costs_.push_back(cost);
    if (options_.on_turn) options_.on_turn(costs_.size());
    start_followers(at);
    if (++session.turn < session.trace->turns.size())
      session.due_ns = now_ns() + gap(session.trace->turns[session.turn].gap_s);
    return {};
  }

  Result<TurnCost> cost_of(size_t at, const Fetched& fetched) const {
    const Session& session = sessions_[at];
    MILLRACE_ASSIGN(const json closing,
                    parse_json(fetched.body.empty() ? "{}" : fetched.body, "the end of a stream"));
    TurnCost out{.session = at, .turn = session.turn, .is_after_kill = was_killed_};
    out.first_s = static_cast<double>(fetched.text_ns.front() - fetched.sent_ns) * 1e-9;
    out.all_s = fetched.seconds();
    out.n_prompt = count(closing, "/usage/prompt_tokens");
    out.n_answer = count(closing, "/usage/completion_tokens");
    out.n_cached = count(closing, "/usage/prompt_tokens_details/cached_tokens");
    out.n_disk = count(closing, "/timings/cache_disk_n");
    if (out.n_prompt == 0)
      return error(Code::unavailable, "the server sends no usage with its streams");
    const auto is_in = [](int64_t n, int64_t most) { return n >= 0 && n <= most; };
    if (!is_in(out.n_prompt, kMostTokens) || !is_in(out.n_answer, kMostTokens) ||
        !is_in(out.n_cached, out.n_prompt) || !is_in(out.n_disk, out.n_cached))
      return error(Code::unavailable,
                   "session '{}', turn {}: the server's usage cannot be true: {} prompt tokens, of "
                   "which {} cached, {} of these from disk; {} in the answer",
                   session.trace->id, session.turn, out.n_prompt, out.n_cached, out.n_disk,
                   out.n_answer);
    out.is_later = session.n_history > 0;
    out.n_history = std::min(session.n_history, out.n_prompt);
    return out;
  }

  Result<double> twin(const Session& session) {
    json messages = session.messages;
    messages.back() = message(session, "twin");
    MILLRACE_ASSIGN(const auto id,
                    client_->send(kPath, body(messages, kTwinTokens), more(session)));
    MILLRACE_TRY(client_->wait([&] { return client_->at(id).has_ended(); }, kTurnS));
    const Fetched& fetched = client_->at(id);
    if (!fetched.ok() || fetched.text_ns.empty())
      return error(Code::unavailable, "a twin of session '{}' failed: status {} {}",
                   session.trace->id, fetched.status, printable(fetched.failure, 300));
    return static_cast<double>(fetched.text_ns.front() - fetched.sent_ns) * 1e-9;
  }

  void start_followers(size_t at) {
    const Session& leader = sessions_[at];
    for (Session& one : sessions_) {
      if (one.trace->after != static_cast<int>(at) || one.trace->after_turn != leader.turn)
        continue;
      one.due_ns = now_ns() + gap(one.trace->start_s);
      if (!one.trace->forks) continue;
      one.messages = leader.messages;
      one.n_history = leader.n_history;
    }
  }

  const Trace& trace_;
  std::unique_ptr<LoadClient> client_;
  const DriveOptions& options_;
  std::vector<Session> sessions_;
  std::vector<TurnCost> costs_;
  bool was_killed_ = false;
};

}  // namespace

Result<std::vector<TurnCost>> drive(const Trace& trace, std::unique_ptr<LoadClient> client,
                                    const DriveOptions& options) {
  return Drive(trace, std::move(client), options).all();
}

}  // namespace millrace::cli
