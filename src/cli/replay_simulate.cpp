#include "cli/replay_simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <queue>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "base/philox.h"
#include "cli/temp_folder.h"
#include "engine/kv_tier.h"

namespace millrace::cli {
namespace {

// SmolLM2 on two cores (docs/0009): what a prompt's token, one of an answer, and one that is read
// take.
constexpr double kPromptS = 1.0 / 1700, kAnswerS = 0.01, kReadS = 23e3 / 2e9;
constexpr size_t kSlots = 22;            // of SmolLM2's pages in what the tier takes by default
constexpr int64_t kHeadDim = 256;        // of one layer: 1 KB a token, enough for a file's blocks
constexpr int64_t kNow = 1'700'000'000;  // when the trace begins, in unix time
constexpr int32_t kMark = 1, kEnd = 2, kFirstWord = 16, kWords = 30000;

void add_words(std::vector<int32_t>& to, const std::string& seed, int64_t n) {
  const uint64_t key = hash64(std::as_bytes(std::span(seed)));
  for (int64_t i = 0; i < n; ++i)
    to.push_back(kFirstWord +
                 static_cast<int32_t>(philox(key, static_cast<uint64_t>(i))[0] % kWords));
}

void add_message(std::vector<int32_t>& to, int32_t role, const std::string& seed, int64_t n) {
  to.insert(to.end(), {kMark, kFirstWord + role});
  add_words(to, seed, n);
  to.push_back(kEnd);
}

// The words of a session, as replay's driver puts them together.
struct Talk {
  const TraceSession* trace = nullptr;
  std::vector<int32_t> tokens = {};
  size_t turn = 0;
  int64_t n_history = 0;

  const TraceTurn& now() const { return trace->turns[turn]; }
  std::string seed(const char* which) const {
    return fmt::format("{} {} {}", trace->id, turn, which);
  }
  void ask() {
    if (turn == 0 && !trace->forks) system();
    if (now().n_compacted >= 0) {
      tokens.clear();
      system();
      add_message(tokens, 1, seed("summary"), now().n_compacted);
      n_history = 0;
    }
    add_message(tokens, now().role == "tool" ? 3 : 1, seed("says"), now().n_words);
    tokens.insert(tokens.end(), {kMark, kFirstWord + 2});
  }
  void answer() { add_words(tokens, seed("answer"), now().n_answer); }
  void end() {
    n_history = std::ssize(tokens);
    tokens.push_back(kEnd);
    ++turn;
  }
  bool is_done() const { return turn == trace->turns.size(); }

 private:
  void system() {
    if (trace->n_system_words > 0)
      add_message(tokens, 0, "system " + trace->system_seed, trace->n_system_words);
  }
};

std::vector<Talk> talks_of(const Trace& trace) {
  std::vector<Talk> out(trace.sessions.size());
  for (size_t i = 0; i < out.size(); ++i) out[i].trace = &trace.sessions[i];
  return out;
}

// The engine's memory and disk, with pages of nothing.
class Kept {
 public:
  Kept(KvPolicy policy, double* now_s)
      : now_s_(now_s), retention(policy, [now_s] { return *now_s; }) {}

  Status open(int64_t memory_tokens, int64_t disk_tokens) {
    Config config;
    config.n_layers = config.n_heads = config.n_kv_heads = 1;
    config.head_dim = kHeadDim;
    MILLRACE_ASSIGN(KvPages pool, KvPages::make(config, {.layers = {0}}, DType::f16,
                                                memory_tokens / kPageTokens, *device_));
    const size_t page_bytes = pool.page_bytes();
    pools.push_back(std::move(pool));
    tree = std::make_unique<PrefixTree>(pools, &retention);
    MILLRACE_ASSIGN(TempFolder folder, TempFolder::make("simulate"));
    folder_ = std::make_unique<TempFolder>(std::move(folder));
    MILLRACE_ASSIGN(disk::Folder on_disk, disk::open_folder(folder_->path(), "kv"));
    disk::TierOptions options;
    options.slot_bytes = page_bytes;
    options.write_bytes = options.read_bytes = kSlots * page_bytes;
    const auto n_pages = static_cast<uint64_t>(disk_tokens / kPageTokens);
    options.store.max_bytes = n_pages * (page_bytes + disk::kEntryBytes);
    options.store.segment_bytes = options.store.max_bytes / 32;
    if (retention.by_value()) options.store.retention = &retention;
    options.store.now_s = [now = now_s_] { return kNow + static_cast<int64_t>(*now); };
    MILLRACE_ASSIGN(auto below, disk::Tier::open(std::move(on_disk), options));
    tier = std::make_unique<KvTier>(std::move(below), options.store.root, *tree, pools, *device_,
                                    KvTierOptions{.patience_s = 60, .ends_wait_s = 0});
    return {};
  }

  // The disk keeps up with computing: all that waits is written before the clock goes on.
  Status settle() {
    if (tier->flush(60)) return {};
    return error(Code::unavailable, "the disk does not keep up");
  }

 private:
  double* const now_s_;
  Team team_{1};
  std::unique_ptr<Device> device_ = cpu_device(team_);
  std::unique_ptr<TempFolder> folder_;

 public:
  Retention retention;
  std::vector<KvPages> pools;
  std::unique_ptr<PrefixTree> tree;
  std::unique_ptr<KvTier> tier;
};

class Simulation {
 public:
  Simulation(const Trace& trace, const SimulateOptions& options)
      : trace_(trace), options_(options), talks_(talks_of(trace)), kept_(options.policy, &now_s_) {}

  Result<Simulated> run() {
    const int64_t all = context_tokens(trace_);
    out_.context_tokens = all;
    out_.memory_tokens = options_.memory_tokens > 0 ? options_.memory_tokens : all / 16;
    out_.disk_tokens = options_.disk_tokens > 0 ? options_.disk_tokens : all * 3 / 16;
    MILLRACE_TRY(kept_.open(out_.memory_tokens, out_.disk_tokens));
    running_.resize(talks_.size());
    for (size_t i = 0; i < talks_.size(); ++i)
      if (talks_[i].trace->after < 0) at(talks_[i].trace->start_s, Event::Kind::arrives, i);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_s_ = std::max(now_s_, event.at_s);
      MILLRACE_TRY(handle(event));
    }
    if (!queue_.empty())
      return error(Code::unavailable, "{} tokens of memory do not hold a prompt of {}",
                   out_.memory_tokens, talks_[queue_.front()].tokens.size());
    return std::move(out_);
  }

 private:
  struct Event {
    enum class Kind : unsigned char { arrives, is_computed, ends };
    double at_s = 0;
    uint64_t number = 0;
    Kind kind = Kind::arrives;
    size_t session = 0;
    bool operator<(const Event& other) const {  // the first is the greatest
      return std::tuple(other.at_s, other.number) < std::tuple(at_s, number);
    }
  };
  struct Running {
    Use use;
    double arrived_s = 0;
    std::vector<std::vector<int32_t>> pages = {{}};
  };

  void at(double seconds, Event::Kind kind, size_t session) {
    events_.push({seconds, ++n_events_, kind, session});
  }

  Status handle(const Event& event) {
    if (event.kind == Event::Kind::arrives) arrive(event.session);
    if (event.kind == Event::Kind::is_computed) is_busy_ = false;
    if (event.kind == Event::Kind::ends) MILLRACE_TRY(end(event.session));
    while (!is_busy_ && !queue_.empty() && has_room(queue_.front())) {
      const size_t next = queue_.front();
      queue_.pop_front();
      MILLRACE_TRY(begin(next));
    }
    return {};
  }

  void arrive(size_t i) {
    Talk& talk = talks_[i];
    talk.ask();
    running_[i].arrived_s = now_s_;
    running_[i].use = kept_.retention.arrived(
        {.session = options_.is_silent ? std::string_view() : talk.trace->id,
         .prompt = talk.tokens});
    queue_.push_back(i);
  }

  // Of memory for all of it, whatever is remembered.
  bool has_room(size_t i) const {
    const int64_t n = std::ssize(talks_[i].tokens) + talks_[i].now().n_answer;
    return n / kPageTokens + 2 <= kept_.pools[0].n_free() + kept_.tree->n_reclaimable(0);
  }

  std::span<const int32_t> known(size_t i) const {
    const auto& tokens = talks_[i].tokens;
    return std::span(tokens).first(tokens.size() - 1);
  }

  // As the scheduler lets a request in and the engine opens a sequence for it.
  Status begin(size_t i) {
    Running& mine = running_[i];
    const int64_t n_memory = kept_.tree->count("", known(i));
    const KvTier::Id restore = kept_.tier->restore("", known(i), false, mine.use);
    while (restore != 0 && !kept_.tier->is_over(restore)) {
      kept_.tier->pump();
      kept_.tier->wait(0.001);
    }
    const auto found = kept_.tree->find("", known(i), mine.use);
    const int64_t n_whole = found.n / kPageTokens;
    for (int64_t page = 0; page < n_whole; ++page) {
      mine.pages[0].push_back(found.pages[0][static_cast<size_t>(page)]);
      kept_.pools[0].retain(mine.pages[0].back());
    }
    if (restore != 0) kept_.tier->forget(restore);
    kept_.retention.let_in(mine.use, found.n);
    MILLRACE_TRY(compute(i, std::ssize(talks_[i].tokens)));
    note(i, found.n, std::max<int64_t>(found.n - n_memory, 0));
    is_busy_ = true;
    return {};
  }

  // Takes pages for the first n tokens and puts them into the tree.
  Status compute(size_t i, int64_t n) {
    Running& mine = running_[i];
    while (std::ssize(mine.pages[0]) * kPageTokens < n) {
      MILLRACE_TRY(kept_.settle());
      MILLRACE_ASSIGN(const int32_t id, kept_.tree->take_page(0));
      mine.pages[0].push_back(id);
    }
    const auto first = std::span(talks_[i].tokens).first(static_cast<size_t>(n));
    kept_.tree->insert("", first, mine.pages, true, true, mine.use);
    return kept_.settle();
  }

  void note(size_t i, int64_t n_cached, int64_t n_disk) {
    const Talk& talk = talks_[i];
    const int64_t n_prompt = std::ssize(talk.tokens);
    const double computed_s = now_s_ + kPromptS * static_cast<double>(n_prompt - n_cached) +
                              kReadS * static_cast<double>(n_disk);
    const double ended_s = computed_s + kAnswerS * static_cast<double>(talk.now().n_answer);
    out_.costs.push_back({.session = i,
                          .turn = talk.turn,
                          .is_later = talk.n_history > 0,
                          .first_s = computed_s - running_[i].arrived_s,
                          .all_s = ended_s - running_[i].arrived_s,
                          .n_prompt = n_prompt,
                          .n_cached = n_cached,
                          .n_disk = n_disk,
                          .n_history = std::min(talk.n_history, n_prompt),
                          .n_answer = talk.now().n_answer});
    if (options_.on_turn) options_.on_turn(out_.costs.size());
    at(computed_s, Event::Kind::is_computed, i);
    at(ended_s, Event::Kind::ends, i);
  }

  // The last token of an answer is drawn and not computed.
  Status end(size_t i) {
    Talk& talk = talks_[i];
    talk.answer();
    MILLRACE_TRY(compute(i, std::ssize(talk.tokens) - 1));
    for (const int32_t id : running_[i].pages[0]) kept_.pools[0].release(id);
    running_[i].pages[0].clear();
    const size_t turn = talk.turn;
    talk.end();
    const bool calls = !talk.is_done() && talk.now().role == "tool" && !options_.is_silent;
    kept_.retention.ended(running_[i].use, TurnEnd::end, calls ? talk.now().tool : "");
    start_followers(i, turn);
    if (!talk.is_done()) at(now_s_ + talk.now().gap_s, Event::Kind::arrives, i);
    return {};
  }

  void start_followers(size_t leader, size_t turn) {
    for (size_t i = 0; i < talks_.size(); ++i) {
      const TraceSession& one = *talks_[i].trace;
      if (one.after != static_cast<int>(leader) || one.after_turn != turn) continue;
      at(now_s_ + one.start_s, Event::Kind::arrives, i);
      if (!one.forks) continue;
      talks_[i].tokens = talks_[leader].tokens;
      talks_[i].n_history = talks_[leader].n_history;
    }
  }

  const Trace& trace_;
  const SimulateOptions& options_;
  double now_s_ = 0;
  std::vector<Talk> talks_;
  std::vector<Running> running_;
  std::deque<size_t> queue_;
  std::priority_queue<Event> events_;
  uint64_t n_events_ = 0;
  bool is_busy_ = false;
  Simulated out_;
  Kept kept_;
};

}  // namespace

int64_t context_tokens(const Trace& trace) {
  std::vector<Talk> talks = talks_of(trace);
  std::set<std::string> systems;
  int64_t out = 0;
  std::vector<std::vector<std::vector<int32_t>>> states(talks.size());  // after each turn
  for (size_t i = 0; i < talks.size(); ++i) {
    Talk& talk = talks[i];
    const TraceSession& one = *talk.trace;
    int64_t n_shared = one.n_system_words;
    if (one.forks) {
      talk.tokens = states[static_cast<size_t>(one.after)][one.after_turn];
      n_shared = std::ssize(talk.tokens);
    } else if (systems.insert(one.system_seed).second) {
      n_shared = 0;
    }
    int64_t longest = 0;
    while (!talk.is_done()) {
      talk.ask();
      talk.answer();
      talk.end();
      longest = std::max(longest, std::ssize(talk.tokens));
      states[i].push_back(talk.tokens);
    }
    out += std::max<int64_t>(longest - n_shared, 0);
  }
  return out;
}

Result<Simulated> simulate(const Trace& trace, const SimulateOptions& options) {
  return Simulation(trace, options).run();
}

}  // namespace millrace::cli
