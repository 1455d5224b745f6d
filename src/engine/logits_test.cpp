// Every architecture against the logits that Hugging Face transformers gives for the same weights
// (tests/fixtures/models/make.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/fixture_test.h"

namespace millrace {
namespace {

struct Expected {
  std::vector<int32_t> tokens;
  std::vector<int64_t> rows;
  std::vector<std::vector<double>> logits;
};

Expected read_expected(const std::string& folder) {
  std::ifstream in(folder + "/expected.json");
  const auto json = nlohmann::json::parse(in);
  return {json.at("tokens"), json.at("rows"), json.at("logits")};
}

// Norm of the difference over the norm.
double relative_error(std::span<const float> got, const std::vector<double>& want) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / norm);
}

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, gives_the_logits_of_transformers) {
  const Expected expected = read_expected(fixture(GetParam()));
  const auto n = static_cast<int64_t>(expected.tokens.size());
  auto loaded = load(fixture(GetParam()), 1,
                     {.n_ctx = n, .max_rows = 64, .max_outputs = 64, .kv_type = DType::f32});
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const int seq = engine.open().value();
  ASSERT_TRUE(engine.set_tokens(seq, expected.tokens).ok());
  size_t at = 0;
  for (int64_t first = 0; engine.pending(seq) > 0;) {
    auto count = engine.step_all(seq);
    ASSERT_TRUE(count.ok()) << count.status().message();
    for (; at < expected.rows.size() && expected.rows[at] < first + count.value(); ++at)
      EXPECT_LT(relative_error(engine.logits_row(expected.rows[at] - first), expected.logits[at]),
                1e-4)
          << "row " << expected.rows[at];
    first += count.value();
  }
  EXPECT_EQ(at, expected.rows.size());
}

INSTANTIATE_TEST_SUITE_P(Logits, Fixture, testing::ValuesIn(fixtures()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace millrace
