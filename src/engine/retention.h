// What a remembered context is worth: how soon its client will be back, learned from how they came
// back before and from what they say. It knows no page, no tree and no disk; those ask it which of
// their blocks is worth least. What it says changes what is kept and never a token.
//
// A line is a conversation: each prompt begins with all of the one before. A session may have
// several (sub-agents, a history that was compacted). The same events at the same times give the
// same values. The engine's thread tells it what happens; values may be asked for from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "engine/gaps.h"

namespace millrace {

enum class KvPolicy : unsigned char { value, lru };

// Who used a block last: a line, and the turn of it.
struct Use {
  uint64_t line = 0;  // 0: nobody that is known
  uint32_t turn = 0;
};

// Of one block: the last few lines that used it. Empty ones come last.
class Uses {
 public:
  void add(const Use& use);
  std::span<const Use> all() const { return {uses_.data(), n_}; }

 private:
  std::array<Use, 4> uses_ = {};
  size_t n_ = 0;
};

// How a turn ended.
enum class TurnEnd : unsigned char { end, cut, gone };

class Retention {
 public:
  using Clock = std::function<double()>;  // seconds, never backwards
  explicit Retention(KvPolicy policy, Clock clock = {});

  KvPolicy policy() const { return policy_; }
  bool by_value() const { return policy_ == KvPolicy::value; }

  // ---- what happens
  struct Arrival {
    std::string_view tenant = {};   // whose share of memory it uses
    std::string_view session = {};  // empty: it has no name
    std::string_view salt = {};
    std::span<const int32_t> prompt = {};
    double ttl_s = 0;  // the client says it will be back within this; 0: it says nothing
  };
  // A request came: its line goes on, or begins. Until ended() the line is in use.
  Use arrived(const Arrival& arrival);
  // Of the same line, but not because the client is back.
  Use continued(const Arrival& arrival) const;
  // `tool`: what the answer asks the client to run; empty: nothing.
  void ended(const Use& use, TurnEnd how, std::string_view tool = {});
  // It waits no more, and found so many tokens of its prompt kept.
  void let_in(const Use& use, int64_t n_kept);

  // ---- what it is worth
  struct Worth {
    double rate = 0;      // uses per second of keeping it, hints included
    double learned = 0;   // the same without hints
    uint64_t tenant = 0;  // of the line that counts most
  };
  // Of a block that these lines used, the last of them `age_s` ago.
  Worth worth(std::span<const Use> uses, double age_s) const;
  double now_s() const { return clock_(); }

  // A block that could be given up: what it is worth, what getting it back costs per byte, and how
  // long ago it was used.
  struct Candidate {
    Worth worth = {};
    double cost = 1, age_s = 0;
  };
  // Which of them goes. Whose share gives way is decided without hints, which of that tenant's
  // blocks with them: so a hint takes nothing from another tenant. Equals go by age.
  static size_t least(std::span<const Candidate> all);

  // For people: of one line.
  struct Shown {
    std::string state = {};  // waiting, in use, idle, superseded, left behind, unknown
    std::string after = {};  // how its last turn ended: a tool's name, end, cut, gone
    double idle_s = 0, hint_s = 0;
    double p_minute = 0;  // that it is back within a minute
  };
  Shown shown(const Use& use) const;

  struct Counts {
    int64_t n_lines = 0, n_tools = 0;
    int64_t n_hits = 0, n_evicted = 0;  // lines that came back, by whether all was kept
    int64_t n_superseded = 0, n_expired = 0;
    Gaps tool_gaps = {};
  };
  Counts counts() const;

 private:
  struct Line {
    Hash128 session = {};
    bool is_named = false;
    uint64_t tenant = 0;
    uint32_t turn = 0;
    int n_busy = 0;  // requests that run or wait
    bool waits = false;
    double since_s = 0;  // when it arrived, or its turn ended
    double ttl_s = 0;
    size_t ended = 0;  // place in classes_
    int n_passed = 0;  // buckets of its gap that it has waited through
    bool is_expired = false;
    Hash128 end = {};                    // of its last prompt's whole pages
    int64_t n_prompt = 0, n_before = 0;  // tokens of its last prompt, and of the one before

    // Whether what it used in this turn is what it uses now. Who waits has used nothing yet: what
    // it will is what the turn before did.
    bool uses_still(uint32_t in_turn) const { return in_turn + (waits ? 1 : 0) >= turn; }
  };
  struct Session {
    uint64_t newest = 0;
    int n_superseded = 0, n_returned = 0;
  };
  struct Class {
    std::string name;
    bool is_tool = false;
    Gaps gaps = {};
  };

  uint64_t find(const Arrival& arrival, std::span<const Hash128> ends) const;
  void come_back(uint64_t id, Line& line);
  void supersede(uint64_t id, const Line& line);
  void wait_through(Line& line, int bucket);
  void pass_time();
  void prune();
  void forget(uint64_t id);
  size_t class_of(std::string_view tool);
  const Gaps::Hazards& hazards(size_t of) const;
  // Uses per second of what the line used in this turn, without hints and with them.
  struct Rates {
    double learned = 0, hinted = 0;
  };
  Rates rates_of(uint64_t id, const Line& line, uint32_t turn) const;
  double busy_rate(const Line& line) const;
  double share_of_older(const Session& session) const;

  const KvPolicy policy_;
  const Clock clock_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Line> lines_;
  std::unordered_map<Hash128, uint64_t> by_end_;
  std::unordered_map<Hash128, Session> sessions_;
  std::vector<Class> classes_;
  std::map<std::string, size_t, std::less<>> tools_;
  Gaps all_tools_;
  mutable std::vector<std::optional<Gaps::Hazards>> hazards_;  // by class, until one changes
  uint64_t last_line_ = 0;
  double passed_s_ = 0;
  double wait_s_ = 0;                          // from arriving to being let in, lately
  int64_t n_superseded_ = 0, n_returned_ = 0;  // older lines, and of them those that went on
  int64_t n_hits_ = 0, n_evicted_ = 0, n_expired_ = 0;
};

}  // namespace millrace
