// Promise 1 past one chunk of attention: contexts of 600 tokens and more in quantised weights and
// f16 KV, prefilled in steps of 1 to 300 tokens beside each other, begun as forks of each other and
// taken back in between, on 1 to 5 lanes, give the logits of one alone, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/philox.h"
#include "engine/fixture_test.h"

namespace millrace {
namespace {

const EngineOptions kOptions{.n_ctx = 1024, .max_seqs = 4, .max_rows = 400};
constexpr size_t kGenerated = 4;
constexpr size_t kChunks[] = {1, 7, 64, 300};

using Bits = std::vector<uint32_t>;

struct Request {
  std::vector<int32_t> prompt;
  int parent = -1;  // shares its first n_shared tokens with this one
  int64_t n_shared = 0;
};

std::vector<int32_t> random_tokens(Rng& rng, size_t n, int64_t n_vocab) {
  std::vector<int32_t> out(n);
  for (int32_t& token : out)
    token = static_cast<int32_t>(rng.below(static_cast<uint64_t>(n_vocab)));
  return out;
}

// Forks in the middle of a page and between two.
std::vector<Request> requests(Rng& rng, int64_t n_vocab) {
  std::vector<Request> out = {{random_tokens(rng, 700, n_vocab)},
                              {random_tokens(rng, 620, n_vocab), 0, 333},
                              {random_tokens(rng, 640, n_vocab), 0, 512},
                              {random_tokens(rng, 601, n_vocab), 1, 410}};
  for (Request& r : out)
    if (r.parent >= 0) {
      const auto& parent = out[static_cast<size_t>(r.parent)].prompt;
      std::copy_n(parent.begin(), r.n_shared, r.prompt.begin());
    }
  return out;
}

struct Running {
  int seq = -1;
  size_t chunk = 1;
  int n_taken_back = 0;
  std::vector<int32_t> pending = {};
  std::vector<Bits> logits = {};  // after the prompt and after each generated token

  bool is_done() const { return logits.size() == kGenerated; }
  // Single tokens are for the end of a prompt, across the second border of chunks: a step each.
  size_t chunk_at(size_t n_tokens) const { return chunk == 1 && n_tokens < 450 ? 64 : chunk; }
  // The next token is the likeliest.
  void take(std::span<const float> row) {
    Bits& bits = logits.emplace_back();
    for (const float logit : row) bits.push_back(std::bit_cast<uint32_t>(logit));
    pending = {static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin())};
  }
};

std::vector<Bits> alone(Engine& engine, const std::vector<int32_t>& prompt) {
  Running r{.seq = engine.open().value(), .pending = prompt};
  while (!r.is_done()) {
    EXPECT_TRUE(compute(engine, r.seq, r.pending).ok());
    r.take(engine.logits(0).value());
  }
  engine.close(r.seq);
  return r.logits;
}

class Schedule {
 public:
  // `chunk`: where in kChunks the first request begins.
  Schedule(Engine& engine, const std::vector<Request>& requests, Rng& rng, size_t chunk)
      : engine_(engine), requests_(requests), rng_(rng), all_(requests.size()) {
    for (Running& r : all_) r.chunk = kChunks[chunk++ % std::size(kChunks)];
  }

  std::vector<Running> run() {
    while (!std::all_of(all_.begin(), all_.end(), [](auto& r) { return r.is_done(); })) {
      for (size_t i = 0; i < all_.size(); ++i) {
        if (all_[i].seq < 0 && !all_[i].is_done()) start(i);
        if (can_take_back(all_[i]) && rng_.below(10) == 0) take_back(i);
      }
      step();
      if (testing::Test::HasFailure()) break;
    }
    return std::move(all_);
  }
  int n_forks() const { return n_forks_; }

 private:
  void start(size_t i) {
    const Request& r = requests_[i];
    const Running* parent = r.parent < 0 ? nullptr : &all_[static_cast<size_t>(r.parent)];
    if (parent != nullptr && !parent->is_done()) {
      if (parent->seq < 0 || std::ssize(engine_.tokens(parent->seq)) < r.n_shared) return;
      if (const auto seq = engine_.fork(parent->seq, r.n_shared); seq.ok()) {
        ++n_forks_;
        return begin(i, seq.value());
      }
    }
    if (const auto seq = engine_.open(); seq.ok()) begin(i, seq.value());
  }
  void begin(size_t i, int seq) {
    all_[i].seq = seq;
    wait_for_rest(i);
  }
  void wait_for_rest(size_t i) {
    const auto n = std::ssize(engine_.tokens(all_[i].seq));
    all_[i].pending.assign(requests_[i].prompt.begin() + n, requests_[i].prompt.end());
  }
  static bool can_take_back(const Running& r) {
    return r.seq >= 0 && r.logits.empty() && r.n_taken_back < 2;
  }
  void take_back(size_t i) {
    ++all_[i].n_taken_back;
    const auto n = engine_.tokens(all_[i].seq).size();
    engine_.keep(all_[i].seq, static_cast<int64_t>(n - std::min<size_t>(n, rng_.below(90))));
    wait_for_rest(i);
  }

  void step() {
    std::vector<Work> batch;
    std::vector<size_t> of;
    auto room = static_cast<size_t>(engine_.options().max_rows);
    for (size_t i = 0; i < all_.size() && room > 0; ++i) {
      const Running& r = all_[i];
      if (r.seq < 0 || rng_.below(3) == 0) continue;
      const size_t n = std::min({room, r.pending.size(), r.chunk_at(engine_.tokens(r.seq).size())});
      batch.push_back({r.seq, std::span(r.pending).first(n),
                       n == r.pending.size() ? Work::Logits::last : Work::Logits::none});
      of.push_back(i);
      room -= n;
    }
    const Status status = engine_.step(batch);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t w = 0; w < batch.size(); ++w) advance(all_[of[w]], w, batch[w]);
  }
  void advance(Running& r, size_t w, const Work& work) {
    if (work.wants == Work::Logits::none) {
      r.pending.erase(r.pending.begin(), r.pending.begin() + std::ssize(work.tokens));
      return;
    }
    r.take(engine_.logits(w).value());
    if (!r.is_done()) return;
    engine_.close(r.seq);
    r.seq = -1;
  }

  Engine& engine_;
  const std::vector<Request>& requests_;
  Rng& rng_;
  std::vector<Running> all_;
  int n_forks_ = 0;
};

struct Model {
  std::string_view shape, type;
  int64_t window = 0;
};

void expect_same(const Model& model, std::span<const int> lane_counts) {
  const MadeFile file(model.shape, model.type, model.window);
  Rng rng(20261116);
  std::vector<Request> wanted;
  std::vector<std::vector<Bits>> expected;
  {
    auto one = load(file.path(), 1, kOptions);
    ASSERT_NE(one, nullptr);
    wanted = requests(rng, one->engine->config().n_vocab);
    for (const Request& r : wanted) expected.push_back(alone(*one->engine, r.prompt));
  }
  int n_forks = 0;
  for (const int n_lanes : lane_counts) {
    auto loaded = load(file.path(), n_lanes, kOptions);
    ASSERT_NE(loaded, nullptr);
    Engine& engine = *loaded->engine;
    const int64_t n_free = engine.n_free_pages();
    Schedule schedule(engine, wanted, rng, static_cast<size_t>(n_lanes));
    const std::vector<Running> all = schedule.run();
    n_forks += schedule.n_forks();
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(all[i].logits == expected[i]) << "request " << i << ", " << n_lanes << " lanes";
    EXPECT_EQ(engine.n_free_pages(), n_free);
  }
  EXPECT_GT(n_forks, 0);
}

constexpr int kTwoLanes[] = {2}, kOneToFive[] = {1, 2, 3, 4, 5};

TEST(LongContext, same_request_same_bits) {
  expect_same({"tiny-gemma3", "q8_0"}, kTwoLanes);
}

class LongContextFull : public testing::TestWithParam<Model> {};

TEST_P(LongContextFull, same_request_same_bits) {
  expect_same(GetParam(), kOneToFive);
}

INSTANTIATE_TEST_SUITE_P(
    Engine, LongContextFull,
    testing::Values(Model{"tiny-llama", "q4_0"}, Model{"tiny-llama", "q4_k_m"},
                    Model{"tiny-qwen3", "q8_0"}, Model{"tiny-qwen3moe", "q4_k_m"},
                    Model{"tiny-gemma3", "q4_0"}, Model{"tiny-llama", "q8_0", 100}),
    [](const auto& info) {
      std::string name = fmt::format("{}_{}", info.param.shape, info.param.type);
      std::replace(name.begin(), name.end(), '-', '_');
      return info.param.window > 0 ? name + "_window" : name;
    });

}  // namespace
}  // namespace millrace
