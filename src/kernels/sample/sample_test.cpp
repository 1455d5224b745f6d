// What conformance cannot see: that the draws follow the distribution, that each rule keeps what
// its name says, and which rows are refused. And one thing it sees only in part: lanes that share
// rows, in every number of both.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "kernels/sample/op.h"
#include "machine/team.h"
#include "memory/host.h"

namespace millrace::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr long long kTop = 5;

struct Row {
  std::vector<float> logits;
  float temperature = 1.0f;
  int top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  unsigned long long seed = 42, position = 0;
  unsigned choice = 0;
  float repeat = 1, presence = 0, frequency = 0;
  std::vector<std::pair<int, int>> said{};
  std::vector<std::pair<int, float>> biases{};
  std::vector<unsigned> mask{};
  int n_top = -1;
};

struct Out {
  std::vector<int> token;
  std::vector<float> logprob;
  std::vector<int> top_token;
  std::vector<float> top_logprob;

  // Row r's bytes.
  std::vector<unsigned char> bytes(size_t r) const {
    std::vector<unsigned char> out(8 + 8 * kTop);
    std::memcpy(out.data(), &token[r], 4);
    std::memcpy(out.data() + 4, &logprob[r], 4);
    std::memcpy(out.data() + 8, &top_token[r * kTop], 4 * kTop);
    std::memcpy(out.data() + 8 + 4 * kTop, &top_logprob[r * kTop], 4 * kTop);
    return out;
  }
};

// Rows of equal width as the arrays that Args points to.
class Batch {
 public:
  explicit Batch(const std::vector<Row>& rows)
      : n_rows_(static_cast<long long>(rows.size())),
        n_(static_cast<long long>(rows.front().logits.size())) {
    for (const Row& row : rows) add(row);
  }

  Out run(const Variant& variant, int n_lanes) const {
    Out out;
    out.token.resize(temperature_.size());
    out.logprob.resize(temperature_.size());
    out.top_token.resize(temperature_.size() * kTop);
    out.top_logprob.resize(temperature_.size() * kTop);
    const Args args = args_of(out);
    EXPECT_TRUE(validate(args).ok());
    const HostBuffer workspace = HostBuffer::make(variant.workspace_bytes(&args, n_lanes)).value();
    Team team(n_lanes);
    team.run([&](Lane& lane) {
      Exec exec{.lane = lane.index,
                .n_lanes = lane.count,
                .barrier = lane.count > 1 ? lane.barrier : nullptr,
                .workspace = workspace.data(),
                .workspace_bytes = workspace.bytes()};
      EXPECT_TRUE(variant.run(&args, exec).ok());
    });
    return out;
  }

 private:
  void add(const Row& row) {
    logits_.insert(logits_.end(), row.logits.begin(), row.logits.end());
    temperature_.push_back(row.temperature);
    top_k_.push_back(row.top_k);
    top_p_.push_back(row.top_p);
    min_p_.push_back(row.min_p);
    seed_.push_back(row.seed);
    position_.push_back(row.position);
    choice_.push_back(row.choice);
    repeat_.push_back(row.repeat);
    presence_.push_back(row.presence);
    frequency_.push_back(row.frequency);
    n_top_.push_back(row.n_top);
    for (const auto& [token, count] : row.said) {
      said_token_.push_back(token);
      said_count_.push_back(count);
    }
    said_begin_.push_back(static_cast<int>(said_token_.size()));
    for (const auto& [token, value] : row.biases) {
      bias_token_.push_back(token);
      bias_value_.push_back(value);
    }
    bias_begin_.push_back(static_cast<int>(bias_token_.size()));
    const size_t at = mask_.size();
    mask_row_.push_back(row.mask.empty() ? -1 : static_cast<int>(at / words()));
    mask_.insert(mask_.end(), row.mask.begin(), row.mask.end());
    if (!row.mask.empty()) mask_.resize(at + words());
  }

  size_t words() const { return static_cast<size_t>(n_ + 31) / 32; }

  Args args_of(Out& out) const {
    return {.logits = logits_.data(),
            .logits_row = nullptr,
            .temperature = temperature_.data(),
            .top_k = top_k_.data(),
            .top_p = top_p_.data(),
            .min_p = min_p_.data(),
            .seed = seed_.data(),
            .position = position_.data(),
            .choice = choice_.data(),
            .said_begin = said_begin_.data(),
            .said_token = said_token_.data(),
            .said_count = said_count_.data(),
            .repeat_penalty = repeat_.data(),
            .presence_penalty = presence_.data(),
            .frequency_penalty = frequency_.data(),
            .bias_begin = bias_begin_.data(),
            .bias_token = bias_token_.data(),
            .bias_value = bias_value_.data(),
            .mask = mask_.data(),
            .mask_row = mask_row_.data(),
            .mask_words = static_cast<long long>(words()),
            .token = out.token.data(),
            .logprob = out.logprob.data(),
            .n_top = n_top_.data(),
            .top_token = out.top_token.data(),
            .top_logprob = out.top_logprob.data(),
            .max_top = kTop,
            .n_rows = n_rows_,
            .n = n_};
  }

  const long long n_rows_, n_;
  std::vector<float> logits_, temperature_, top_p_, min_p_, repeat_, presence_, frequency_;
  std::vector<int> top_k_, n_top_, said_token_, said_count_, bias_token_, mask_row_;
  std::vector<int> said_begin_ = {0}, bias_begin_ = {0};
  std::vector<float> bias_value_;
  std::vector<unsigned> mask_, choice_;
  std::vector<unsigned long long> seed_, position_;
};

const Variant& reference_variant() {
  return variants().back();
}

int draw(const Row& row) {
  return Batch({row}).run(reference_variant(), 1).token[0];
}

// How often each token comes of positions 0 to n_draws - 1.
std::vector<int> counts(Row row, int n_draws) {
  std::vector<Row> rows;
  for (int i = 0; i < n_draws; ++i, ++row.position) rows.push_back(row);
  std::vector<int> out(row.logits.size());
  for (int id : Batch(rows).run(reference_variant(), 1).token) ++out.at(static_cast<size_t>(id));
  return out;
}

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.05f),
                                    std::log(0.25f)};

TEST(Sample, FollowsTheDistribution) {
  constexpr int kDraws = 20000;
  const std::vector<int> n = counts({kLogits}, kDraws);
  const double expected[] = {0.1, 0.4, 0.2, 0.05, 0.25};
  for (size_t i = 0; i < n.size(); ++i) {
    const double sigma = std::sqrt(kDraws * expected[i] * (1 - expected[i]));
    EXPECT_NEAR(n[i], kDraws * expected[i], 4 * sigma) << "token " << i;
  }
}

TEST(Sample, TopKKeepsTheFirst) {
  const std::vector<int> n = counts({.logits = kLogits, .top_k = 2}, 500);
  EXPECT_EQ(n[1] + n[4], 500);
  EXPECT_GT(n[4], 0);
}

TEST(Sample, TopPKeepsTheFewestThatReachIt) {
  // 0.4 + 0.25 reach 0.6; the next is not needed.
  const std::vector<int> n = counts({.logits = kLogits, .top_p = 0.6f}, 500);
  EXPECT_EQ(n[1] + n[4], 500);
  EXPECT_GT(n[4], 0);
}

TEST(Sample, MinPIsAShareOfTheFirst) {
  // 0.2 / 0.4 is above 0.4, 0.1 / 0.4 is not.
  const std::vector<int> n = counts({.logits = kLogits, .min_p = 0.4f}, 500);
  EXPECT_EQ(n[0] + n[3], 0);
  EXPECT_GT(n[2], 0);
}

TEST(Sample, GreedyAndColdTakeTheArgmax) {
  EXPECT_EQ((counts({.logits = kLogits, .temperature = 0.0f}, 50)[1]), 50);
  EXPECT_EQ((counts({.logits = kLogits, .temperature = 0.01f}, 50)[1]), 50);
}

TEST(Sample, NeverDrawsWhatIsExcluded) {
  const std::vector<float> logits = {-kInf, 3.0f, 1.0f, 2.0f, 1.0f};
  const std::vector<int> n = counts(
      {.logits = logits, .temperature = 5.0f, .biases = {{3, -kInf}}, .mask = {0b11101}}, 500);
  EXPECT_EQ(n[2] + n[4], 500);
}

TEST(Sample, AMaskWinsOverEdits) {
  const Row row{.logits = {0, 1, 2},
                .repeat = 0.001f,
                .presence = -50,
                .said = {{2, 1}},
                .biases = {{2, 3e38f}, {2, 3e38f}},
                .mask = {0b011}};
  EXPECT_EQ(counts(row, 200)[2], 0);
}

TEST(Sample, PenaltiesAreThoseOfWhatWasSaid) {
  const std::vector<float> logits = {0, 3, 2.9f, -1};
  EXPECT_EQ(draw({.logits = logits, .temperature = 0, .repeat = 1.2f, .said = {{1, 1}}}), 2);
  EXPECT_EQ(draw({.logits = logits, .temperature = 0, .presence = 0.2f, .said = {{1, 1}}}), 2);
  EXPECT_EQ(draw({.logits = logits, .temperature = 0, .frequency = 0.06f, .said = {{1, 1}}}), 1);
  EXPECT_EQ(draw({.logits = logits, .temperature = 0, .frequency = 0.06f, .said = {{1, 2}}}), 2);
}

TEST(Sample, BiasesAreAddedAfterPenalties) {
  Row row{.logits = {0, 3, 2.9f, -1}, .temperature = 0, .biases = {{3, 2.5f}, {3, 2.0f}}};
  EXPECT_EQ(draw(row), 3);  // -1 + 4.5
  row.repeat = 2;           // -2 + 4.5
  row.said = {{3, 1}};
  EXPECT_EQ(draw(row), 1);
}

TEST(Sample, ChoicesDrawTheirOwnAndChoice0AsBefore) {
  const std::vector<float> logits(100, 0.0f);
  std::vector<Row> rows;
  for (unsigned choice = 0; choice < 20; ++choice)
    rows.push_back({.logits = logits, .position = 3, .choice = choice});
  const std::vector<int> token = Batch(rows).run(reference_variant(), 1).token;
  // All weights are 1, so the draw is in index order.
  EXPECT_EQ(token[0], static_cast<int>(philox_uniform(42, 3) * 100));
  EXPECT_LT(std::count(token.begin(), token.end(), token[0]), 5);
}

TEST(Sample, SaysWhereNothingMayBeDrawn) {
  EXPECT_EQ(draw({.logits = kLogits, .mask = {0}}), kNoneAllowed);
  EXPECT_EQ(draw({.logits = kLogits, .temperature = 0, .mask = {0}}), kNoneAllowed);
  EXPECT_EQ(draw({.logits = {1, -kInf}, .mask = {0b10}}), kNoneAllowed);
  EXPECT_EQ(draw({.logits = {1, 2}, .biases = {{0, -kInf}, {1, -kInf}}}), kNoneAllowed);
}

TEST(Sample, SaysWhereLogitsAreNotFinite) {
  for (const Variant& variant : variants()) {
    if (!find_machine().has(variant.isa)) continue;
    for (const size_t at : {0, 5, 1023, 1024, 2999}) {
      std::vector<float> logits(3000, 1.0f);
      for (const float value : {NAN, kInf}) {
        logits[at] = value;
        const Out out = Batch({{.logits = logits, .mask = {1}, .n_top = 2}}).run(variant, 2);
        EXPECT_EQ(out.token[0], kNotFinite) << variant.name << ", " << value << " at " << at;
        EXPECT_TRUE(std::isnan(out.logprob[0]));
        EXPECT_EQ(out.top_token[0], -1);
      }
    }
    const std::vector<float> none(3000, -kInf);
    EXPECT_EQ(Batch({{.logits = none}}).run(variant, 1).token[0], kNotFinite);
  }
}

TEST(Sample, ReportsTheModelsOwnProbabilities) {
  const Row row{.logits = {1, 2, 0},
                .temperature = 0,
                .repeat = 9,
                .said = {{1, 1}},
                .mask = {0b111},
                .n_top = 2};
  const Out out = Batch({row}).run(reference_variant(), 1);
  const double total = std::log(std::exp(1.0) + std::exp(2.0) + 1);
  EXPECT_EQ(out.token[0], 0);
  EXPECT_NEAR(out.logprob[0], 1 - total, 1e-6);
  EXPECT_EQ(out.top_token, (std::vector<int>{1, 0, -1, -1, -1}));
  EXPECT_NEAR(out.top_logprob[0], 2 - total, 1e-6);
  EXPECT_TRUE(std::isnan(out.top_logprob[2]));
}

TEST(Sample, ARowThatWantsNoLogprobHasNone) {
  const Out out = Batch({{.logits = kLogits, .n_top = -1}, {.logits = kLogits, .n_top = 0}})
                      .run(reference_variant(), 1);
  EXPECT_TRUE(std::isnan(out.logprob[0]));
  EXPECT_LT(out.logprob[1], 0);
}

TEST(Sample, RefusesShapesThatCannotBe) {
  Args args{.n_rows = 1, .n = 100};
  EXPECT_TRUE(validate(args).ok());
  const unsigned word = 0;
  const int row = 0;
  float logprob = 0;
  args.mask = &word;
  args.mask_row = &row;
  args.mask_words = 3;
  EXPECT_FALSE(validate(args).ok());
  args.mask_words = 4;
  EXPECT_TRUE(validate(args).ok());
  args.max_top = 1;
  EXPECT_FALSE(validate(args).ok());
  args.logprob = &logprob;
  EXPECT_TRUE(validate(args).ok());
  args.max_top = kMaxTop + 1;
  EXPECT_FALSE(validate(args).ok());
}

Row any_row(long long n, Rng& rng) {
  Row row;
  const float spread = rng.below(4) == 0 ? 0.01f : 4.0f;
  for (long long i = 0; i < n; ++i) row.logits.push_back(spread * rng.normal());
  const auto any_token = [&] { return static_cast<int>(rng.below(static_cast<uint64_t>(n))); };
  if (rng.below(8) == 0) row.logits[static_cast<size_t>(any_token())] = NAN;
  row.temperature = rng.below(4) == 0 ? 0.0f : rng.uniform(0.5f, 1.5f);
  if (rng.below(3) == 0) row.top_k = static_cast<int>(rng.below(600));
  if (rng.below(3) == 0) row.top_p = rng.uniform();
  if (rng.below(3) == 0) row.min_p = rng.uniform(0.0f, 0.1f);
  row.position = rng.below(1000);
  row.choice = static_cast<unsigned>(rng.below(3));
  row.repeat = 1.2f;
  for (uint64_t i = rng.below(3) * 4; i > 0; --i) row.said.emplace_back(any_token(), 2);
  for (uint64_t i = rng.below(3); i > 0; --i) row.biases.emplace_back(any_token(), 4.0f);
  if (rng.below(3) == 0)
    for (long long i = 0; i < n; i += 32) row.mask.push_back(rng.next_u32() & rng.next_u32());
  row.n_top = static_cast<int>(rng.below(kTop + 2)) - 1;
  return row;
}

// Of every variant, rows 1 to 6 on lanes 1 to 5: the bytes of each row alone on one lane.
TEST(SampleThreads, LanesThatShareRowsDoNotShow) {
  Rng rng(5);
  for (const long long n : {300, 1024, 6000}) {
    std::vector<Row> rows;
    for (int i = 0; i < 6; ++i) rows.push_back(any_row(n, rng));
    for (const Variant& variant : variants()) {
      if (!find_machine().has(variant.isa)) continue;
      for (size_t n_rows = 1; n_rows <= rows.size(); ++n_rows)
        for (int n_lanes = 1; n_lanes <= 5; ++n_lanes) {
          const std::vector<Row> some(rows.end() - static_cast<ptrdiff_t>(n_rows), rows.end());
          const Out out = Batch(some).run(variant, n_lanes);
          for (size_t r = 0; r < n_rows; ++r)
            EXPECT_EQ(out.bytes(r), Batch({some[r]}).run(reference_variant(), 1).bytes(0))
                << variant.name << ": row " << r << " of " << n_rows << " of " << n << " on "
                << n_lanes << " lanes";
        }
    }
  }
}

}  // namespace
}  // namespace millrace::sample
