// A directory of safetensors written as GGUF in f32 (`millrace quantize`) is the same model.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "engine/fixture_test.h"
#include "model/architecture.h"
#include "model/config.h"
#include "model/quantize.h"

namespace millrace {
namespace {

class Convert : public testing::TestWithParam<std::string> {};

std::vector<float> logits_of(const std::string& path) {
  auto loaded = load(path, 1, {.n_ctx = 64, .max_rows = 64, .kv_type = DType::f32});
  if (loaded == nullptr) return {};
  Engine& engine = *loaded->engine;
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back((i * 37 + 5) % 128);
  const int seq = engine.open().value();
  EXPECT_TRUE(compute(engine, seq, prompt).ok());
  const auto logits = engine.logits(0).value();
  return {logits.begin(), logits.end()};
}

std::string converted(const std::string& name) {
  const std::string path = fmt::format("{}/{}_{}.gguf", testing::TempDir(), name, getpid());
  auto in = open_model_file(fixture(name));
  EXPECT_TRUE(in.ok()) << in.status().message();
  const auto report = quantize_model(*in, path, quant_type_named("f32").value(), {});
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report.value().has_tokenizer) << "the fixtures have none";
  return path;
}

TEST_P(Convert, to_gguf_keeps_the_logits) {
  const std::string path = converted(GetParam());
  const auto want = logits_of(fixture(GetParam())), got = logits_of(path);
  ASSERT_EQ(got.size(), want.size());
  auto file = open_model_file(path);
  std::filesystem::remove(path);
  if (!read_config(*file).value().architecture->pairs_neighbours) {
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0);
    return;
  }
  // GGUF's llama has the elements of q and k in another order, in which their products are added.
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(double{got[i]} - want[i], 2);
    norm += std::pow(double{want[i]}, 2);
  }
  EXPECT_LT(std::sqrt(difference / norm), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Engine, Convert, testing::ValuesIn(fixtures()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace millrace
