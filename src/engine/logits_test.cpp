// Every architecture against the logits that Hugging Face transformers gives for the same weights
// (tests/fixtures/models/make.py), and the small trained model against those of the PyTorch model
// that was trained (training/export.py).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/fixture_test.h"
#include "model/architecture.h"
#include "model/quantize.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {
namespace {

struct Expected {
  std::vector<int32_t> tokens;
  std::vector<int64_t> rows;
  std::vector<std::vector<double>> logits;
};

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

Expected read_expected(const nlohmann::json& json) {
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

void expect_logits(Engine& engine, const Expected& expected, double tolerance) {
  const int seq = engine.open().value();
  size_t at = 0;
  const Status status =
      compute_all(engine, seq, expected.tokens, [&](size_t row, std::span<const float> logits) {
        if (at == expected.rows.size() || expected.rows[at] != static_cast<int64_t>(row)) return;
        EXPECT_LT(relative_error(logits, expected.logits[at]), tolerance) << "row " << row;
        ++at;
      });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(at, expected.rows.size());
  engine.close(seq);
}

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, gives_the_logits_of_transformers) {
  const Expected expected = read_expected(read_json(fixture(GetParam()) + "/expected.json"));
  const auto n = static_cast<int64_t>(expected.tokens.size());
  auto loaded = load(fixture(GetParam()), 1,
                     {.n_ctx = n, .max_rows = 64, .max_outputs = 64, .kv_type = DType::f32});
  ASSERT_NE(loaded, nullptr);
  expect_logits(*loaded->engine, expected, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Logits, Fixture, testing::ValuesIn(fixtures()),
                         [](const auto& info) { return info.param; });

// The file's own weights in f32, so that activations are not rounded either.
std::string tiny_in_f32() {
  const std::string path = fmt::format("{}/tiny_{}.gguf", testing::TempDir(), getpid());
  const auto in = open_model_file(tiny_model());
  EXPECT_TRUE(in.ok()) << in.status().message();
  EXPECT_TRUE(quantize_model(in.value(), path, quant_type_named("f32").value(), {}).ok());
  return path;
}

TEST(TinyModel, gives_the_tokens_and_logits_it_was_trained_with) {
  const std::string expected = std::string(MILLRACE_FIXTURES) + "/tiny/expected.json";
  const std::string path = tiny_in_f32();
  auto loaded =
      load(path, 1, {.n_ctx = 512, .max_rows = 64, .max_outputs = 64, .kv_type = DType::f32});
  std::filesystem::remove(path);
  ASSERT_NE(loaded, nullptr);
  const auto tokenizer = load_tokenizer(loaded->engine->file());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  for (const nlohmann::json& one : read_json(expected)) {
    const auto text = one.at("text").get<std::string>();
    const TextPart part{text, true};
    EXPECT_EQ(tokenizer.value().encode({&part, 1}).value(), read_expected(one).tokens) << text;
    expect_logits(*loaded->engine, read_expected(one), 1e-3);
  }
}

}  // namespace
}  // namespace millrace
