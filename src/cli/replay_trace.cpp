#include "cli/replay_trace.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/hash.h"
#include "base/philox.h"
#include "base/utf8.h"
#include "files/json.h"

namespace millrace::cli {
namespace {

using nlohmann::json;

// Far above any real trace, far below what would hurt.
constexpr size_t kMaxSessions = 10000, kMaxTurns = 10000;
constexpr int64_t kMaxWords = 1 << 20;
constexpr size_t kMaxNameBytes = 200;
constexpr double kMaxSeconds = 7 * 24 * 3600;

constexpr std::array<std::string_view, 32> kWords = {
    "river",  "wheel",  "stone",   "grain",  "water",  "mill",   "road",     "field",
    "paper",  "engine", "table",   "window", "garden", "letter", "market",   "winter",
    "summer", "green",  "small",   "heavy",  "quiet",  "early",  "under",    "between",
    "turns",  "reads",  "carries", "opens",  "finds",  "keeps",  "measures", "writes"};

class Reader {
 public:
  Reader(const json& object, std::string where)
      : fields_(object, where), where_(std::move(where)) {}

  Result<int64_t> count(std::string_view key, int64_t fallback, int64_t most) const {
    MILLRACE_ASSIGN(const int64_t value, fields_.integer_or(key, fallback));
    if (value != fallback && (value < 0 || value > most))
      return error(Code::invalid_argument, "{}: {} is {}, not 0 to {}", where_, key, value, most);
    return value;
  }
  Result<double> seconds(std::string_view key) const {
    MILLRACE_ASSIGN(const double value, fields_.real_or(key, 0));
    if (!(value >= 0 && value <= kMaxSeconds))
      return error(Code::invalid_argument, "{}: {} is {}, not 0 to {:g} seconds", where_, key,
                   value, kMaxSeconds);
    return value;
  }
  Result<std::string> text(std::string_view key, std::string_view fallback) const {
    return fields_.string_or(key, fallback);
  }
  Result<bool> flag(std::string_view key) const { return fields_.boolean_or(key, false); }
  const json* find(std::string_view key) const { return fields_.find(key); }
  Status wrong(std::string_view why) const {
    return error(Code::invalid_argument, "{}: {}", where_, why);
  }

 private:
  JsonFields fields_;
  std::string where_;
};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

Result<TraceTurn> read_turn(const json& object, const std::string& where) {
  const Reader in(object, where);
  if (!object.is_object()) return in.wrong("a turn is an object");
  TraceTurn out;
  MILLRACE_ASSIGN(out.gap_s, in.seconds("gap_s"));
  MILLRACE_ASSIGN(out.role, in.text("role", "user"));
  MILLRACE_ASSIGN(out.tool, in.text("tool", ""));
  MILLRACE_ASSIGN(out.n_words, in.count("words", 0, kMaxWords));
  MILLRACE_ASSIGN(out.n_answer, in.count("answer", 0, kMaxWords));
  MILLRACE_ASSIGN(out.n_compacted, in.count("compact_to", -1, kMaxWords));
  if (out.role != "user" && out.role != "tool") return in.wrong("role is neither user nor tool");
  if (out.n_answer < 1) return in.wrong("answer: how many tokens are drawn is missing");
  return out;
}

class TraceReader {
 public:
  explicit TraceReader(std::string file) : file_(std::move(file)) {}

  Status line(std::string_view text, size_t n) {
    const std::string where = fmt::format("{}, line {}", file_, n);
    MILLRACE_ASSIGN(const json object, parse_json(text, where));
    const Reader in(object, where);
    if (!object.is_object()) return in.wrong("a line is an object");
    if (in.find("trace") != nullptr) return head(in);
    if (in.find("session") != nullptr) return session(in, where);
    return in.wrong("neither a trace nor a session");
  }

  Result<Trace> end() {
    if (!has_head_) return error(Code::invalid_argument, "{}: no {{\"trace\": 1}} line", file_);
    if (trace_.sessions.empty())
      return error(Code::invalid_argument, "{}: the trace has no session", file_);
    return std::move(trace_);
  }

 private:
  Status head(const Reader& in) {
    MILLRACE_ASSIGN(const int64_t version, in.count("trace", 0, INT32_MAX));
    if (version != 1)
      return in.wrong(fmt::format("trace version {}: this program reads version 1", version));
    MILLRACE_ASSIGN(trace_.name, in.text("name", ""));
    if (!trace_.name.empty() && !is_name(trace_.name))
      return in.wrong(fmt::format("name: not 1 to {} visible ASCII characters", kMaxNameBytes));
    MILLRACE_ASSIGN(trace_.seed, in.count("seed", 0, INT64_MAX));
    has_head_ = true;
    return {};
  }

  Status session(const Reader& in, const std::string& where) {
    if (trace_.sessions.size() >= kMaxSessions)
      return in.wrong(fmt::format("more than {} sessions", kMaxSessions));
    TraceSession out;
    MILLRACE_ASSIGN(out.id, in.text("session", ""));
    MILLRACE_ASSIGN(out.start_s, in.seconds("start_s"));
    MILLRACE_TRY(after(in, where, out));
    if (const json* system = in.find("system")) {
      const Reader of_system(*system, where + ", system");
      MILLRACE_ASSIGN(out.system_seed, of_system.text("seed", out.id));
      MILLRACE_ASSIGN(out.n_system_words, of_system.count("words", 0, kMaxWords));
    }
    MILLRACE_TRY(turns(in, where, out));
    const int at = static_cast<int>(trace_.sessions.size());
    if (!is_name(out.id))  // it goes into a header of every request
      return in.wrong(fmt::format("session: a name of 1 to {} visible ASCII characters is missing",
                                  kMaxNameBytes));
    if (!places_.emplace(out.id, at).second)
      return in.wrong(fmt::format("session '{}' is there twice", out.id));
    trace_.sessions.push_back(std::move(out));
    return {};
  }

  Status after(const Reader& in, const std::string& where, TraceSession& out) {
    const json* after = in.find("after");
    if (after == nullptr) return {};
    const Reader fields(*after, where + ", after");
    MILLRACE_ASSIGN(const std::string id, fields.text("session", ""));
    MILLRACE_ASSIGN(const int64_t turn, fields.count("turn", 0, kMaxTurns));
    MILLRACE_ASSIGN(out.forks, fields.flag("fork"));
    const auto found = places_.find(id);
    if (found == places_.end())
      return fields.wrong(
          fmt::format("no session '{}' stands before this one", printable(id, kMaxNameBytes)));
    out.after = found->second;
    out.after_turn = static_cast<size_t>(turn);
    if (out.after_turn >= trace_.sessions[static_cast<size_t>(out.after)].turns.size())
      return fields.wrong(fmt::format("session '{}' has no turn {}", id, turn));
    return {};
  }

  Status turns(const Reader& in, const std::string& where, TraceSession& out) {
    const json* turns = in.find("turns");
    if (turns == nullptr || !turns->is_array() || turns->empty() || turns->size() > kMaxTurns)
      return in.wrong(fmt::format("turns: a list of 1 to {} is missing", kMaxTurns));
    for (const json& one : *turns) {
      MILLRACE_ASSIGN(TraceTurn turn,
                      read_turn(one, fmt::format("{}, turn {}", where, out.turns.size())));
      out.turns.push_back(std::move(turn));
    }
    return {};
  }

  const std::string file_;
  Trace trace_;
  std::unordered_map<std::string, int> places_;
  bool has_head_ = false;
};

}  // namespace

size_t Trace::n_turns() const {
  return std::accumulate(sessions.begin(), sessions.end(), size_t{0},
                         [](size_t n, const TraceSession& one) { return n + one.turns.size(); });
}

Result<Trace> parse_trace(std::string_view text, const std::string& file) {
  TraceReader reader(file);
  for (size_t n = 1; !text.empty(); ++n) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      MILLRACE_TRY(reader.line(line, n));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.end();
}

std::string prose(std::string_view seed, int64_t n_words) {
  const uint64_t key = hash64(std::as_bytes(std::span(seed)));
  std::string out;
  for (int64_t i = 0; i < n_words; ++i) {
    if (i > 0) out += ' ';
    out += kWords[philox(key, static_cast<uint64_t>(i))[0] % kWords.size()];
    if (i % 12 == 11) out += '.';
  }
  return out;
}

}  // namespace millrace::cli
