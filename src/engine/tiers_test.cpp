// Contexts that move between memory and disk and outlive the engine: what a request says depends on
// itself alone, whatever was evicted, restored, damaged or restarted.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/philox.h"
#include "engine/disk/faulty_files_test.h"
#include "engine/disk/temporary_folder_test.h"
#include "engine/disk/twin_pages_test.h"
#include "engine/scheduler.h"
#include "engine/talk_test.h"

namespace millrace {
namespace {

using disk::FaultyFiles;
using disk::TemporaryFolder;

// Tokens and the bits of their log-probabilities.
struct Spoken {
  std::vector<std::pair<int32_t, uint32_t>> tokens;
  Generated result;
  Status why;
  bool ended = false;

  OnToken into() {
    return [this](const TokenEvent& event) {
      if (event.token == nullptr) return;
      uint32_t bits = 0;
      std::memcpy(&bits, &event.token->logprob, sizeof bits);
      tokens.emplace_back(event.token->token, bits);
    };
  }
  std::vector<int32_t> ids() const {
    std::vector<int32_t> out;
    for (const auto& [token, bits] : tokens) out.push_back(token);
    return out;
  }
};

Generation speech(uint64_t seed, int64_t n) {
  Generation out = how(seed, n);
  out.ignore_end = true;
  out.sampling.logprob = true;
  return out;
}

Ask ask_of(std::vector<int32_t> prompt, const Generation& generation, Spoken& spoken) {
  Ask out{.prompt = std::move(prompt), .how = generation};
  out.on_token = spoken.into();
  out.on_end = [&spoken](const Generated& result, const Status& why) {
    spoken.result = result;
    spoken.why = why;
    spoken.ended = true;
  };
  return out;
}

std::vector<int32_t> words(Rng& rng, int64_t n, int64_t n_vocab) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<int32_t>(10 + rng.below(static_cast<uint64_t>(n_vocab - 10))));
  return out;
}

void append(std::vector<int32_t>& to, const std::vector<int32_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

struct Faults {
  uint64_t seed = 0;
  double share = 0;
};

// An engine whose contexts are kept in this folder; gives the injector too.
FaultyFiles* keep(Engine& engine, const TemporaryFolder& in, disk::TierOptions options = {},
                  const Faults& faults = {}, double patience_s = 0.5) {
  auto folder = disk::open_folder(in.path(), engine.root());
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  auto faulty = std::make_unique<FaultyFiles>(std::move(folder->files), faults.seed, faults.share);
  FaultyFiles* out = faulty.get();
  folder->files = std::move(faulty);
  const Status kept = engine.keep_on_disk(std::move(folder).value(), options,
                                          {.patience_s = patience_s, .ends_wait_s = 0});
  EXPECT_TRUE(kept.ok()) << kept.message();
  return out;
}

void run(Scheduler& scheduler) {
  for (int i = 0; i < 100000 && !scheduler.is_idle(); ++i) {
    scheduler.step();
    if (scheduler.waits_for_disk()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_TRUE(scheduler.is_idle());
}

Spoken ask(Talk& talk, const std::vector<int32_t>& prompt, const Generation& generation,
           bool persists = true) {
  Spoken out;
  Scheduler scheduler(*talk.model, {});
  Ask ask = ask_of(prompt, generation, out);
  ask.persists = persists;
  EXPECT_TRUE(scheduler.submit(std::move(ask)).ok());
  run(scheduler);
  EXPECT_TRUE(out.why.ok()) << out.why.message();
  return out;
}

Spoken alone(Talk& talk, const std::vector<int32_t>& prompt, const Generation& generation) {
  Spoken out;
  const std::atomic<bool> never = false;
  const int seq = talk.model->engine().open().value();
  const auto result = talk.model->generate(seq, prompt, generation, out.into(), never);
  EXPECT_TRUE(result.ok()) << result.status().message();
  talk.model->engine().close(seq);
  return out;
}

int64_t page_bytes(Talk& talk) {
  return kPageTokens * kv_bytes_per_token(talk.model->engine().config(), DType::f16);
}

TEST(Tiers, a_restarted_engine_computes_what_is_new) {
  const TemporaryFolder folder;
  Rng rng(1);
  std::vector<int32_t> prompt = words(rng, 300, 1000);
  Spoken before;
  {
    Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    keep(talk.model->engine(), folder);
    before = ask(talk, prompt, speech(1, 30));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  append(prompt, before.ids());
  append(prompt, words(rng, 20, 1000));
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2});
  keep(talk.model->engine(), folder);
  const Spoken after = ask(talk, prompt, speech(2, 30));
  EXPECT_EQ(after.result.n_cached, 329);  // all but the last drawn, which was never computed
  EXPECT_EQ(after.result.n_from_disk, 329);
  Talk fresh = Talk::with(1, {.n_ctx = 1024});
  EXPECT_EQ(after.tokens, alone(fresh, prompt, speech(2, 30)).tokens);
  // And again, now from memory.
  const Spoken again = ask(talk, prompt, speech(2, 30));
  EXPECT_EQ(again.result.n_from_disk, 0);
  EXPECT_EQ(again.tokens, after.tokens);
}

// Twice what fits in memory goes back and forth; nothing is computed twice.
TEST(Tiers, what_memory_gives_up_comes_back_from_disk) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const TemporaryFolder folder;
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2, .kv_bytes = 12 * page_bytes(probe)});
  Engine& engine = talk.model->engine();
  keep(engine, folder);
  Rng rng(2);
  std::vector<std::vector<int32_t>> prompts;
  for (int i = 0; i < 4; ++i) prompts.push_back(words(rng, 400, 1000));
  for (int turn = 0; turn < 3; ++turn)
    for (auto& prompt : prompts) {
      const Spoken spoken = ask(talk, prompt, speech(3, 10));
      if (turn > 0) {
        EXPECT_GE(spoken.result.n_cached, std::ssize(prompt) - 9);
        EXPECT_GT(spoken.result.n_from_disk, 0);
      }
      append(prompt, spoken.ids());
      append(prompt, words(rng, 8, 1000));
      ASSERT_TRUE(engine.tier()->flush(10));
    }
  EXPECT_EQ(engine.tier()->counts().n_regret, 0);
  Talk fresh = Talk::with(1, {.n_ctx = 1024});
  for (const auto& prompt : prompts)
    EXPECT_EQ(ask(talk, prompt, speech(4, 5)).tokens, alone(fresh, prompt, speech(4, 5)).tokens);
}

TEST(Tiers, windows_go_on_from_disk_too) {
  const MadeFile file("tiny-gemma3", "q8_0");
  const TemporaryFolder folder;
  Rng rng(3);
  std::vector<int32_t> prompt;
  for (int i = 0; i < 700; ++i) prompt.push_back(static_cast<int32_t>(rng.below(128)));
  const EngineOptions options{.n_ctx = 1024, .max_seqs = 2, .max_rows = 64};
  {
    auto loaded = load(file.path(), 1, options);
    ASSERT_NE(loaded, nullptr);
    keep(*loaded->engine, folder);
    const int seq = loaded->engine->open(std::span(prompt).first(600), "").value();
    ASSERT_TRUE(compute(*loaded->engine, seq, std::span(prompt).first(600)).ok());
    loaded->engine->remember(seq);
    loaded->engine->close(seq);
    ASSERT_TRUE(loaded->engine->tier()->flush(10));
  }
  auto loaded = load(file.path(), 1, options);
  Engine& engine = *loaded->engine;
  keep(engine, folder);
  const KvTier::Id id = engine.tier()->restore("", prompt);
  ASSERT_NE(id, 0u);
  while (!engine.tier()->is_over(id)) engine.tier()->pump();
  const int seq = engine.open(prompt, "").value();
  engine.tier()->forget(id);
  EXPECT_EQ(std::ssize(engine.tokens(seq)), 600);
  ASSERT_TRUE(compute(engine, seq, std::span(prompt).subspan(600)).ok());
  const auto got = engine.logits(0).value();
  const std::vector<float> logits(got.begin(), got.end());
  auto fresh = load(file.path(), 1, options);
  const int other = fresh->engine->open().value();
  ASSERT_TRUE(compute(*fresh->engine, other, prompt).ok());
  const auto expected = fresh->engine->logits(0).value();
  EXPECT_EQ(logits, std::vector<float>(expected.begin(), expected.end()));
}

TEST(Tiers, in_memory_stays_off_the_disk_and_a_salt_is_another_root) {
  const TemporaryFolder folder;
  Rng rng(4);
  const auto secret = words(rng, 200, 1000), open = words(rng, 200, 1000);
  {
    Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    keep(talk.model->engine(), folder);
    ask(talk, secret, speech(1, 3), false);
    ask(talk, open, speech(1, 3));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
  keep(talk.model->engine(), folder);
  EXPECT_EQ(talk.model->engine().tier()->restore("", secret), 0u);
  EXPECT_EQ(talk.model->engine().tier()->restore("another", open), 0u);
  EXPECT_NE(talk.model->engine().tier()->restore("", open), 0u);
}

TEST(Tiers, what_follows_other_tokens_is_not_taken_even_if_somebody_chose_them) {
  const TemporaryFolder folder;
  Rng rng(14);
  const auto rest = words(rng, 150, 1000);
  std::vector<int32_t> theirs = disk::twin_page(true), mine = disk::twin_page(false);
  append(theirs, rest);
  append(mine, rest);
  {
    Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    keep(talk.model->engine(), folder);
    ask(talk, theirs, speech(1, 3));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
  keep(talk.model->engine(), folder);
  ask(talk, std::vector(mine.begin(), mine.begin() + kPageTokens + 1), speech(1, 1), false);
  const Spoken spoken = ask(talk, mine, speech(1, 10));
  EXPECT_EQ(spoken.result.n_from_disk, 0);
  Talk fresh = Talk::with(1, {.n_ctx = 512});
  EXPECT_EQ(spoken.tokens, alone(fresh, mine, speech(1, 10)).tokens);
}

// A full disk is said once and tried again later; a slow one makes nobody wait for long.
TEST(Tiers, trouble_with_the_disk_is_said_once_and_stops_nobody) {
  const TemporaryFolder folder;
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2});
  ASSERT_NE(talk.model, nullptr);
  std::vector<std::string> said;
  disk::TierOptions options;
  options.pause_s = 0.05;
  options.say = [&](const std::string& line) { said.push_back(line); };
  FaultyFiles* faults = keep(talk.model->engine(), folder, options);
  KvTier& tier = *talk.model->engine().tier();
  Rng rng(5);
  faults->next(disk::Fault::no_space);
  ask(talk, words(rng, 300, 1000), speech(1, 10));
  ASSERT_TRUE(tier.flush(10));
  EXPECT_EQ(tier.disk().counts().n_write_failures, 1u);
  EXPECT_GT(tier.disk().counts().n_lost, 0u);
  ask(talk, words(rng, 300, 1000), speech(1, 10));
  ASSERT_TRUE(tier.flush(10));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find("No space left"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("again"), std::string::npos);
  EXPECT_FALSE(tier.disk().counts().is_off);
}

// Else a page in the middle would be missing, and all after it out of reach.
TEST(Tiers, what_a_failed_write_lost_is_written_again_while_memory_has_it) {
  const TemporaryFolder folder;
  Rng rng(8);
  std::vector<int32_t> prompt = words(rng, 300, 1000);
  {
    Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    disk::TierOptions options;
    options.pause_s = 0.01;
    FaultyFiles* faults = keep(talk.model->engine(), folder, options);
    faults->next(disk::Fault::no_space);
    append(prompt, ask(talk, prompt, speech(1, 10)).ids());
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
    EXPECT_GT(talk.model->engine().tier()->disk().counts().n_lost, 0u);
  }
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 2});
  keep(talk.model->engine(), folder);
  EXPECT_EQ(ask(talk, prompt, speech(2, 3)).result.n_from_disk, 309);
}

// Who stops a server does not wait for a disk that takes nothing.
TEST(Tiers, flushing_ends_where_nothing_will_be_taken) {
  Rng rng(9);
  for (const bool is_full : {true, false}) {
    const TemporaryFolder folder;
    Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    disk::TierOptions options;
    options.pause_s = 1000;
    if (!is_full) options.store.daily_bytes = 1;
    FaultyFiles* faults = keep(talk.model->engine(), folder, options);
    if (is_full) faults->next(disk::Fault::no_space);
    ask(talk, words(rng, 200, 1000), speech(1, 3));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(talk.model->engine().tier()->flush(100));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
  }
}

// Not each request, and not each several times.
TEST(Tiers, a_disk_that_stalls_is_waited_for_once) {
  const TemporaryFolder folder;
  Rng rng(10);
  const auto prompt = words(rng, 300, 1000);
  {
    Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    keep(talk.model->engine(), folder);
    ask(talk, prompt, speech(1, 3));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
  FaultyFiles* faults = keep(talk.model->engine(), folder);
  faults->stalls = true;
  const Spoken first = ask(talk, prompt, speech(1, 3));
  EXPECT_EQ(first.result.n_from_disk, 0);
  ask(talk, std::vector(prompt.begin(), prompt.begin() + 64), speech(1, 3));
  EXPECT_EQ(talk.model->engine().tier()->counts().n_restores, 1);
  faults->stalls = false;
  Talk fresh = Talk::with(1, {.n_ctx = 512});
  EXPECT_EQ(first.tokens, alone(fresh, prompt, speech(1, 3)).tokens);
}

// Agents have one system prompt and many histories.
TEST(Tiers, who_shares_only_what_is_in_memory_does_not_wait_for_a_restore) {
  const TemporaryFolder folder;
  Rng rng(13);
  const auto system = words(rng, 128, 1000);
  std::vector<int32_t> history = system, question = system;
  append(history, words(rng, 250, 1000));
  append(question, words(rng, 5, 1000));
  {
    Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    keep(talk.model->engine(), folder);
    ask(talk, history, speech(1, 3));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
  FaultyFiles* faults = keep(talk.model->engine(), folder, {}, {}, 60);
  ask(talk, question, speech(1, 3));
  faults->stalls = true;
  Scheduler scheduler(*talk.model, {});
  Spoken slow, quick;
  ASSERT_TRUE(scheduler.submit(ask_of(history, speech(1, 3), slow)).ok());
  scheduler.step();
  ASSERT_TRUE(scheduler.submit(ask_of(question, speech(1, 3), quick)).ok());
  for (int i = 0; i < 1000 && !quick.ended; ++i) scheduler.step();
  EXPECT_TRUE(quick.ended);
  EXPECT_TRUE(talk.model->engine().tier()->is_restoring());
  faults->stalls = false;
  run(scheduler);
  EXPECT_GT(slow.result.n_from_disk, 200);
}

TEST(Tiers, what_was_read_is_not_written_again) {
  const TemporaryFolder folder;
  Rng rng(11);
  const auto prompt = words(rng, 300, 1000);
  for (const bool is_first : {true, false}) {
    Talk talk = Talk::with(1, {.n_ctx = 512, .max_seqs = 2});
    ASSERT_NE(talk.model, nullptr);
    Engine& engine = talk.model->engine();
    keep(engine, folder);
    if (is_first) {
      ask(talk, prompt, speech(1, 3));
      ASSERT_TRUE(engine.tier()->flush(10));
      continue;
    }
    const KvTier::Id id = engine.tier()->restore("", prompt);
    ASSERT_NE(id, 0u);
    while (!engine.tier()->is_over(id)) engine.tier()->pump();
    EXPECT_EQ(engine.tree().count("", prompt), 300);
    EXPECT_EQ(engine.tree().counts().n_unsaved, 0);
    engine.tier()->forget(id);
  }
}

// Memory gives up what must stay off the disk too, and it goes nowhere: not as what follows a
// context that was read from there either.
TEST(Tiers, in_memory_contexts_are_not_moved_down) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const TemporaryFolder folder;
  Rng rng(21);
  const auto open = words(rng, 300, 1000);
  auto secret = open;
  append(secret, words(rng, 200, 1000));
  const EngineOptions options{.n_ctx = 1024, .max_seqs = 2, .kv_bytes = 12 * page_bytes(probe)};
  for (int life = 0; life < 2; ++life) {
    Talk talk = Talk::with(1, options);
    Engine& engine = talk.model->engine();
    keep(engine, folder);
    if (life == 0) {
      ask(talk, open, speech(1, 3));
    } else {
      EXPECT_EQ(ask(talk, secret, speech(1, 3), false).result.n_from_disk, 300);
    }
    for (int i = 0; i < 3; ++i) ask(talk, words(rng, 600, 1000), speech(1, 3));
    EXPECT_LT(engine.tree().count("", secret), 300);
    ASSERT_TRUE(engine.tier()->flush(10));
  }
  Talk talk = Talk::with(1, options);
  keep(talk.model->engine(), folder);
  EXPECT_EQ(ask(talk, secret, speech(1, 3), false).result.n_from_disk, 300);
}

// ---- random schedules

// The first in line finds no room while another's restore holds it, and nobody runs: that one goes
// first.
TEST(Tiers, a_restore_that_is_over_is_let_in_before_who_waits_for_its_pages) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const TemporaryFolder folder;
  const EngineOptions options{.n_ctx = 1024, .max_seqs = 4, .kv_bytes = 12 * page_bytes(probe)};
  Rng rng(6);
  const auto known = words(rng, 600, 1000), other = words(rng, 600, 1000);
  {
    Talk talk = Talk::with(1, options);
    keep(talk.model->engine(), folder);
    ask(talk, known, speech(1, 2));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  Talk talk = Talk::with(1, options);
  keep(talk.model->engine(), folder);
  Scheduler scheduler(*talk.model, {});
  Spoken restored, urgent;
  ASSERT_TRUE(scheduler.submit(ask_of(known, speech(1, 2), restored)).ok());
  scheduler.step();
  Ask first = ask_of(other, speech(1, 2), urgent);
  first.priority = -1;
  ASSERT_TRUE(scheduler.submit(std::move(first)).ok());
  run(scheduler);
  EXPECT_GT(restored.result.n_from_disk, 500);
  EXPECT_EQ(urgent.result.n_tokens, 2);
}

TEST(Tiers, restores_that_do_not_fit_together_go_one_after_the_other) {
  Talk probe = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(probe.model, nullptr);
  const TemporaryFolder folder;
  Rng rng(12);
  const std::vector<int32_t> prompts[] = {words(rng, 420, 1000), words(rng, 420, 1000)};
  {
    Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 4});
    keep(talk.model->engine(), folder);
    for (const auto& prompt : prompts) ask(talk, prompt, speech(1, 2));
    ASSERT_TRUE(talk.model->engine().tier()->flush(10));
  }
  Talk talk = Talk::with(1, {.n_ctx = 1024, .max_seqs = 4, .kv_bytes = 12 * page_bytes(probe)});
  keep(talk.model->engine(), folder);
  Scheduler scheduler(*talk.model, {});
  Spoken spoken[2];
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(scheduler.submit(ask_of(prompts[i], speech(1, 2), spoken[i])).ok());
  run(scheduler);
  for (const Spoken& one : spoken) EXPECT_EQ(one.result.n_from_disk, 419);
  EXPECT_EQ(talk.model->engine().tier()->counts().n_failed, 0);
}

// One request of a schedule.
struct Asked {
  std::vector<int32_t> prompt;
  Generation how;
  Spoken spoken;
  Scheduler::Id id = 0;
};

class Schedule {
 public:
  Schedule(uint64_t seed, Talk& reference, const std::string& path, int64_t n_vocab)
      : rng_(seed),
        hints_(seed, 1),
        seed_(seed),
        reference_(reference),
        path_(path),
        n_vocab_(n_vocab) {}

  void run_all() {
    const int n_lives = 1 + static_cast<int>(rng_.below(3));
    for (int life = 0; life < n_lives; ++life) live();
    check();
  }
  int64_t n_from_disk = 0, n_faults = 0, n_requests = 0;

 private:
  std::vector<int32_t> next_prompt() {
    std::vector<int32_t> out;
    if (!asked_.empty() && rng_.below(5) != 0) {  // a later turn, or a branch of an older one
      const Asked& last = *asked_[rng_.below(asked_.size())];
      out = last.prompt;
      append(out, last.spoken.ids());
      if (rng_.below(3) == 0) out.resize(1 + rng_.below(out.size()));
    }
    append(out,
           words(rng_, 1 + static_cast<int64_t>(rng_.below(out.empty() ? 260 : 60)), n_vocab_));
    out.resize(std::min<size_t>(out.size(), 420));
    return out;
  }

  EngineOptions engine_options() {
    const int64_t bytes = page_bytes(reference_);
    return {.n_ctx = 512,
            .max_seqs = 1 + static_cast<int64_t>(rng_.below(5)),
            .max_rows = 8 + static_cast<int64_t>(rng_.below(90)),
            .kv_bytes = (11 + static_cast<int64_t>(rng_.below(30))) * bytes,
            .kv_policy = hints_.below(4) == 0 ? KvPolicy::lru : KvPolicy::value};
  }

  // From the start of an engine until it is dropped, with whatever still runs.
  void live() {
    Talk talk = Talk::with(rng_.below(4) == 0 ? 2 : 1, engine_options(), path_);
    ASSERT_NE(talk.model, nullptr);
    disk::TierOptions options;
    const auto record = static_cast<uint64_t>(page_bytes(reference_)) + disk::kEntryBytes;
    options.store.max_bytes = record * (4 + rng_.below(80));
    options.store.segment_bytes = record * (1 + rng_.below(8));
    options.store.daily_bytes = rng_.below(4) == 0 ? record * 20 : UINT64_MAX;
    options.write_bytes = options.read_bytes = record * (1 + rng_.below(6));
    options.pause_s = 0.01;
    constexpr double kShares[] = {0, 0, 0.02, 0.1};
    FaultyFiles* faults = keep(talk.model->engine(), folder_, options,
                               {.seed = seed_, .share = kShares[rng_.below(4)]});
    {
      Scheduler scheduler(*talk.model, {.chunk_tokens = 4 + static_cast<int64_t>(rng_.below(60))});
      arrive(scheduler, talk.model->engine());
      if (rng_.below(3) != 0) run(scheduler);  // or it ends in the middle of everything
    }
    if (rng_.below(2) == 0) talk.model->engine().tier()->flush(0.2);
    for (int fault = 1; fault < disk::kFaults; ++fault)
      n_faults += faults->n_injected(static_cast<disk::Fault>(fault));
    talk = {};
    if (rng_.below(3) == 0) tear();
  }

  void arrive(Scheduler& scheduler, Engine& engine) {
    for (uint64_t n = 3 + rng_.below(8); n > 0; --n) {
      auto one = std::make_unique<Asked>();
      one->prompt = next_prompt();
      one->how = speech(rng_.next_u64() >> 12, 1 + static_cast<int64_t>(rng_.below(40)));
      Ask ask = ask_of(one->prompt, one->how, one->spoken);
      ask.priority = static_cast<int>(rng_.below(3));
      ask.session = fmt::format("{}", rng_.below(4));
      ask.persists = rng_.below(6) != 0;
      if (rng_.below(8) == 0) ask.salt = "other";
      hint(ask);
      one->id = scheduler.submit(std::move(ask)).value();
      asked_.push_back(std::move(one));
      for (uint64_t steps = rng_.below(30); steps > 0; --steps) scheduler.step();
      if (rng_.below(8) == 0) scheduler.cancel(asked_[rng_.below(asked_.size())]->id);
      if (rng_.below(4) == 0) engine.tier()->flush(0.05);
    }
  }

  // What clients say about coming back, true or not.
  void hint(Ask& ask) {
    constexpr double kTimes[] = {0, 1e-9, 0.01, 300, 604800};
    ask.tenant = fmt::format("{}", hints_.below(3));
    if (hints_.below(3) != 0) ask.conversation = fmt::format("{}", hints_.below(4));
    ask.ttl_s = kTimes[hints_.below(5)];
    const uint64_t tool = hints_.below(6);
    ask.called = [tool] { return tool < 2 ? std::string() : fmt::format("tool {}", tool); };
    ask.is_ahead = hints_.below(8) == 0;
  }

  // A power cut: the newest files end somewhere.
  void tear() {
    namespace fs = std::filesystem;
    for (const auto& file : fs::recursive_directory_iterator(folder_.path()))
      if (file.is_regular_file() && file.file_size() > 0 && rng_.below(6) == 0)
        fs::resize_file(file.path(), rng_.below(file.file_size()));
  }

  void check() {
    for (const auto& one : asked_) {
      ++n_requests;
      n_from_disk += one->spoken.result.n_from_disk;
      ASSERT_TRUE(one->spoken.why.ok()) << one->spoken.why.message();
      auto expected = alone(reference_, one->prompt, one->how).tokens;
      if (one->spoken.result.finish == Finish::cancelled)
        expected.resize(std::min(expected.size(), one->spoken.tokens.size()));
      ASSERT_EQ(one->spoken.tokens, expected) << "seed " << seed_;
    }
  }

  Rng rng_, hints_;
  const uint64_t seed_;
  Talk& reference_;
  const std::string path_;
  const int64_t n_vocab_;
  const TemporaryFolder folder_;
  std::vector<std::unique_ptr<Asked>> asked_;
};

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// By hand, for hours: MILLRACE_SCHEDULES=10000 MILLRACE_FIRST_SEED=1
// build/dev/src/millrace_engine_test
// --gtest_filter='TiersThreads.*'
void run_schedules(const std::string& path, int64_t n_vocab, uint64_t n_default) {
  Talk reference = Talk::with(1, {.n_ctx = 512}, path);
  ASSERT_NE(reference.model, nullptr);
  const uint64_t first = number("MILLRACE_FIRST_SEED", 1);
  const uint64_t n = number("MILLRACE_SCHEDULES", n_default);
  int64_t n_from_disk = 0, n_faults = 0, n_requests = 0;
  for (uint64_t seed = first; seed < first + n && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Schedule schedule(seed, reference, path, n_vocab);
    schedule.run_all();
    n_from_disk += schedule.n_from_disk;
    n_faults += schedule.n_faults;
    n_requests += schedule.n_requests;
    if ((seed - first) % 100 == 99)
      fmt::print(stderr, "{} schedules from seed {}: {} requests, {} tokens from disk, {} faults\n",
                 seed - first + 1, first, n_requests, n_from_disk, n_faults);
  }
  fmt::print(stderr, "seeds {} to {}: {} requests, {} tokens from disk, {} faults\n", first,
             first + n - 1, n_requests, n_from_disk, n_faults);
  if (n < 8) return;
  EXPECT_GT(n_from_disk, 0);
  EXPECT_GT(n_faults, 0);
}

TEST(TiersThreads, each_request_depends_on_itself_alone) {
  run_schedules(tiny_model(), 1000, 5);
}

TEST(TiersThreads, so_does_each_of_a_model_with_windows) {
  const MadeFile file("tiny-gemma3", "q8_0");
  run_schedules(file.path(), 128, 4);
}

}  // namespace
}  // namespace millrace
