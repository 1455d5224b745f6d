#include "engine/retention.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "engine/disk/record.h"
#include "engine/kv_pages.h"

namespace millrace {
namespace {

// How a turn ended, where no tool was called; the rest of the classes are tools, the first of them
// for those that came when there were too many.
enum Ends : size_t { kEndNamed, kEndUnnamed, kCut, kGone, kOtherTools, kFirstTool };
constexpr size_t kMostTools = 256;
constexpr size_t kMostToolBytes = 128;

// Before anything was learned. Agents come back after a tool call, people often do not.
const Gaps::Hazards kTools = assumed_hazards(0.95, 3, 1.8), kEnds = assumed_hazards(0.5, 40, 1.5);
// What is assumed counts like so many clients.
constexpr double kAssumed = 4;

constexpr double kInUse = 1e3;   // uses a second: it runs
constexpr double kLatest = 0.1;  // the last wait's part in what is known of waiting
// Of what a line used in an earlier turn and no longer does: an answer that is rendered otherwise
// as history, a message that was edited.
constexpr double kLeftBehind = 0.02;
// Of clients that say they will be back, so many are, some time before it.
constexpr double kHinted = 0.5;
constexpr double kLeastHintS = 1, kMostHintS = 7 * 86400;
// Of older lines of a session so many go on, before anything was learned, and what that weighs.
constexpr double kOlder = 0.25, kOlderWeight = 2;

constexpr double kSweepS = 0.5;
constexpr double kExpiredS = 3600;  // without a hint
constexpr size_t kMostLines = 16384;

template <class T>
std::span<const std::byte> bytes_of(const T& values) {
  return std::as_bytes(std::span(values));
}

// All that keeps lines apart: the tenant, the salt, the session. By the hashes of records on disk:
// clients choose the words and the tokens, and must not hit another tenant's line.
Hash128 first_end(const Retention::Arrival& arrival) {
  std::string text;
  for (const std::string_view part : {arrival.tenant, arrival.salt, arrival.session}) {
    text += std::to_string(part.size()) + ':';
    text += part;
  }
  return disk::first_hash({}, disk::salt_of(text));
}

// After each whole page, the one of no pages first.
std::vector<Hash128> ends_of(const Retention::Arrival& arrival) {
  std::vector<Hash128> out = {first_end(arrival)};
  for (auto rest = arrival.prompt; std::ssize(rest) >= kPageTokens;
       rest = rest.subspan(static_cast<size_t>(kPageTokens)))
    out.push_back(disk::next_hash(out.back(), rest.first(static_cast<size_t>(kPageTokens))));
  return out;
}

}  // namespace

void Uses::add(const Use& use) {
  if (use.line == 0) return;
  size_t at = 0;
  while (at < n_ && uses_[at].line != use.line) ++at;
  if (at == uses_.size()) --at;  // the one that was here longest ago makes room
  n_ = std::max(n_, at + 1);
  std::rotate(uses_.begin(), uses_.begin() + static_cast<int64_t>(at),
              uses_.begin() + static_cast<int64_t>(at) + 1);
  uses_[0] = use;
}

Retention::Retention(KvPolicy policy, Clock clock)
    : policy_(policy),
      clock_(clock ? std::move(clock) : [] { return static_cast<double>(now_ns()) * 1e-9; }) {
  for (const char* name : {"end", "end", "cut", "gone", "other"})
    classes_.push_back({.name = name, .is_tool = classes_.size() == kOtherTools});
}

// The line whose last prompt this one begins with most of; 0: none.
uint64_t Retention::find(const Arrival& arrival, std::span<const Hash128> ends) const {
  const size_t least = arrival.session.empty() ? 1 : 0;  // without a name, a page must tell
  for (size_t i = ends.size(); i > least; --i)
    if (const auto it = by_end_.find(ends[i - 1]); it != by_end_.end()) return it->second;
  return 0;
}

Use Retention::continued(const Arrival& arrival) const {
  const std::vector<Hash128> ends = ends_of(arrival);
  const std::lock_guard lock(mutex_);
  const uint64_t id = find(arrival, ends);
  return id == 0 ? Use{} : Use{id, lines_.at(id).turn};
}

Use Retention::arrived(const Arrival& arrival) {
  const std::vector<Hash128> ends = ends_of(arrival);
  const std::lock_guard lock(mutex_);
  pass_time();
  uint64_t id = find(arrival, ends);
  if (id == 0) {
    if (lines_.size() >= kMostLines) prune();
    id = ++last_line_;
    lines_[id] = {.session = ends[0],
                  .is_named = !arrival.session.empty(),
                  .tenant = hash64(bytes_of(arrival.tenant)),
                  .n_passed = Gaps::kBuckets};
  }
  Line& line = lines_.at(id);
  if (line.n_busy++ == 0) {
    come_back(id, line);
    ++line.turn;
    line.waits = true;
    line.since_s = clock_();
    line.n_before = std::exchange(line.n_prompt, std::ssize(arrival.prompt));
  }
  line.ttl_s = arrival.ttl_s >= kLeastHintS ? std::min(arrival.ttl_s, kMostHintS) : 0;
  if (const auto it = by_end_.find(line.end); it != by_end_.end() && it->second == id)
    by_end_.erase(it);
  line.end = ends.back();
  by_end_[line.end] = id;
  supersede(id, line);
  return {id, line.turn};
}

void Retention::wait_through(Line& line, int bucket) {
  Class& of = classes_[line.ended];
  if (line.n_passed < bucket) hazards_.clear();
  for (; line.n_passed < bucket; ++line.n_passed) {
    of.gaps.passed(line.n_passed);
    if (of.is_tool) all_tools_.passed(line.n_passed);
  }
}

void Retention::come_back(uint64_t id, Line& line) {
  if (line.turn == 0) return;
  const int bucket = Gaps::bucket_of(clock_() - line.since_s);
  if (line.n_passed <= bucket) {
    wait_through(line, bucket);
    Class& of = classes_[line.ended];
    of.gaps.returned(bucket);
    hazards_.clear();
    if (of.is_tool) all_tools_.returned(bucket);
  }
  line.n_passed = Gaps::kBuckets;
  line.is_expired = false;
  const auto session = sessions_.find(line.session);
  if (!line.is_named || session == sessions_.end() || session->second.newest == id) return;
  ++session->second.n_returned;
  ++n_returned_;
}

void Retention::supersede(uint64_t id, const Line& line) {
  if (!line.is_named) return;
  Session& session = sessions_[line.session];
  const uint64_t before = std::exchange(session.newest, id);
  if (before == 0 || before == id || !lines_.contains(before)) return;
  ++session.n_superseded;
  ++n_superseded_;
}

void Retention::ended(const Use& use, TurnEnd how, std::string_view tool) {
  const std::lock_guard lock(mutex_);
  pass_time();
  const auto it = lines_.find(use.line);
  if (it == lines_.end() || it->second.n_busy == 0) return;
  Line& line = it->second;
  if (--line.n_busy > 0) return;
  line.waits = false;
  line.since_s = clock_();
  line.n_passed = 0;
  if (!tool.empty())
    line.ended = class_of(tool);
  else if (how == TurnEnd::end)
    line.ended = line.is_named ? kEndNamed : kEndUnnamed;
  else
    line.ended = how == TurnEnd::cut ? kCut : kGone;
}

size_t Retention::class_of(std::string_view tool) {
  tool = tool.substr(0, kMostToolBytes);
  if (const auto it = tools_.find(tool); it != tools_.end()) return it->second;
  if (tools_.size() >= kMostTools) return kOtherTools;
  tools_.emplace(std::string(tool), classes_.size());
  classes_.push_back({.name = std::string(tool), .is_tool = true});
  return classes_.size() - 1;
}

void Retention::let_in(const Use& use, int64_t n_kept) {
  const std::lock_guard lock(mutex_);
  const auto it = lines_.find(use.line);
  if (it == lines_.end() || !it->second.waits) return;
  Line& line = it->second;
  line.waits = false;
  wait_s_ += kLatest * (clock_() - line.since_s - wait_s_);
  if (line.n_before > 0) ++(n_kept + kPageTokens >= line.n_before ? n_hits_ : n_evicted_);
}

// Those who have not come back count as far as they have waited.
void Retention::pass_time() {
  const double now = clock_();
  if (now < passed_s_ + kSweepS) return;
  passed_s_ = now;
  for (auto& [id, line] : lines_) {
    if (line.n_busy > 0) continue;
    const double away_s = now - line.since_s;
    if (line.n_passed < Gaps::kBuckets) wait_through(line, Gaps::bucket_of(away_s));
    if (line.is_expired || away_s < (line.ttl_s > 0 ? line.ttl_s : kExpiredS)) continue;
    line.is_expired = true;
    ++n_expired_;
  }
}

// A quarter of the lines: those that are away longest, of the tenants that have most, so that one
// who begins many does not make another's forgotten.
void Retention::prune() {
  struct Idle {
    double since_s;
    uint64_t id, tenant;
    size_t n_newer = 0;  // of the same tenant
  };
  std::vector<Idle> idle;
  for (const auto& [id, line] : lines_)
    if (line.n_busy == 0) idle.push_back({line.since_s, id, line.tenant});
  std::sort(idle.begin(), idle.end(), [](const Idle& a, const Idle& b) {
    return std::tuple(a.since_s, a.id) > std::tuple(b.since_s, b.id);
  });
  std::unordered_map<uint64_t, size_t> n_of;
  for (Idle& one : idle) one.n_newer = n_of[one.tenant]++;
  std::stable_sort(idle.begin(), idle.end(),
                   [](const Idle& a, const Idle& b) { return a.n_newer > b.n_newer; });
  idle.resize(std::min(idle.size(), kMostLines / 4));
  for (const Idle& one : idle) forget(one.id);
}

void Retention::forget(uint64_t id) {
  const Line& line = lines_.at(id);
  if (const auto it = by_end_.find(line.end); it != by_end_.end() && it->second == id)
    by_end_.erase(it);
  if (const auto it = sessions_.find(line.session);
      it != sessions_.end() && it->second.newest == id)
    sessions_.erase(it);
  lines_.erase(id);
}

// A block is weighed some hundred times for each that goes; gaps change once a turn.
const Gaps::Hazards& Retention::hazards(size_t of) const {
  hazards_.resize(classes_.size());
  std::optional<Gaps::Hazards>& out = hazards_[of];
  const Class& known = classes_[of];
  if (!out && known.is_tool)
    out = known.gaps.hazards(all_tools_.hazards(kTools, kAssumed), kAssumed);
  else if (!out)
    out = known.gaps.hazards(kEnds, kAssumed);
  return *out;
}

double Retention::share_of_older(const Session& session) const {
  const double all = (static_cast<double>(n_returned_) + kOlderWeight * kOlder) /
                     (static_cast<double>(n_superseded_) + kOlderWeight);
  return std::min(
      1.0, (session.n_returned + kOlderWeight * all) / (session.n_superseded + kOlderWeight));
}

// Who waits is the sooner let in the longer it has waited.
double Retention::busy_rate(const Line& line) const {
  if (!line.waits) return kInUse;
  const double left_s = wait_s_ - (clock_() - line.since_s);
  return std::min(kInUse, 1 / std::max(left_s, wait_s_ / 16 + 1e-3));
}

// A client that comes back waits as all do: what is kept for it is kept until then.
Retention::Rates Retention::rates_of(uint64_t id, const Line& line, uint32_t turn) const {
  const bool is_current = line.uses_still(turn);
  const double left = is_current ? 1 : kLeftBehind;
  if (line.n_busy > 0) return {busy_rate(line) * left, busy_rate(line) * left};
  const double away_s = clock_() - line.since_s;
  double rate = return_rate(hazards(line.ended), away_s) * left;
  const auto session = sessions_.find(line.session);
  const bool is_older = line.is_named && session != sessions_.end() && session->second.newest != id;
  if (is_older) rate *= share_of_older(session->second);
  const bool is_hinted = away_s < line.ttl_s && is_current;
  const double hinted = is_hinted ? std::max(rate, kHinted / line.ttl_s) : rate;
  return {rate / (1 + rate * wait_s_), hinted / (1 + hinted * wait_s_)};
}

Retention::Worth Retention::worth(std::span<const Use> uses, double age_s) const {
  const std::lock_guard lock(mutex_);
  Worth out;
  double most = -1;
  for (const Use& use : uses) {
    const auto it = lines_.find(use.line);
    if (it == lines_.end()) continue;
    const Rates rates = rates_of(use.line, it->second, use.turn);
    out.learned += rates.learned;
    out.rate += rates.hinted;
    if (rates.learned <= most) continue;
    most = rates.learned;
    out.tenant = it->second.tenant;
  }
  if (most >= 0) return out;
  const double rate = return_rate(kEnds, age_s);
  out.rate = out.learned = rate / (1 + rate * wait_s_);
  return out;
}

size_t Retention::least(std::span<const Candidate> all) {
  const auto first = [&](auto is_of, auto rate_of) {
    size_t best = all.size();
    const auto key = [&](size_t i) {
      return std::tuple(rate_of(all[i].worth) * all[i].cost, -all[i].age_s);
    };
    for (size_t i = 0; i < all.size(); ++i)
      if (is_of(all[i]) && (best == all.size() || key(i) < key(best))) best = i;
    return best;
  };
  const size_t gives = first([](const Candidate&) { return true; },
                             [](const Worth& worth) { return worth.learned; });
  if (gives == all.size()) return gives;
  const uint64_t tenant = all[gives].worth.tenant;
  return first([&](const Candidate& one) { return one.worth.tenant == tenant; },
               [](const Worth& worth) { return worth.rate; });
}

Retention::Shown Retention::shown(const Use& use) const {
  const std::lock_guard lock(mutex_);
  const auto it = lines_.find(use.line);
  if (it == lines_.end()) return {.state = "unknown"};
  const Line& line = it->second;
  const auto session = sessions_.find(line.session);
  Shown out{.state = "idle", .after = classes_[line.ended].name};
  if (line.is_named && session != sessions_.end() && session->second.newest != use.line)
    out.state = "superseded";
  if (!line.uses_still(use.turn)) out.state = "left behind";
  if (line.n_busy > 0) {
    out.state = line.waits ? "waiting" : "in use";
    return out;
  }
  out.idle_s = clock_() - line.since_s;
  out.hint_s = line.ttl_s;
  out.p_minute = return_chance(hazards(line.ended), out.idle_s, 60);
  return out;
}

Retention::Counts Retention::counts() const {
  const std::lock_guard lock(mutex_);
  return {.n_lines = std::ssize(lines_),
          .n_tools = std::ssize(tools_),
          .n_hits = n_hits_,
          .n_evicted = n_evicted_,
          .n_superseded = n_superseded_,
          .n_expired = n_expired_,
          .tool_gaps = all_tools_};
}

}  // namespace millrace
