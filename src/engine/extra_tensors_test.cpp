// A llama file with something in it that the plain ones lack: it takes part in the logits, it is
// refused by name, or it is ignored and named; and inspect says what load does.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/fixture_test.h"
#include "files/gguf_write.h"
#include "model/architecture.h"
#include "model/inspect.h"
#include "model/make_model.h"

namespace millrace {
namespace {

struct Extra {
  std::string name;
  std::vector<int64_t> shape;
  float value = 0.5f;
};

class ExtraTensors : public testing::Test {
 protected:
  void SetUp() override {
    const auto shape = model_shape_named("tiny-llama").value();
    const auto made = make_model(shape, plain_, {quant_type_named("f32").value(), 0, {}});
    ASSERT_TRUE(made.ok()) << made.status().message();
  }
  void TearDown() override {
    std::filesystem::remove(plain_);
    std::filesystem::remove(path_);
  }

  // The plain model again, with more tensors and keys.
  void write(
      const std::vector<Extra>& extras,
      const std::function<void(GgufWriter&)>& keys = [](GgufWriter&) {}) {
    auto gguf = Gguf::open(plain_);
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    GgufWriter out;
    for (const GgufValue& value : gguf->values()) out.add(value);
    keys(out);
    auto file = open_model_file(plain_);
    for (const TensorView& t : file->tensors())
      out.add_tensor({std::string(t.name), t.type, t.shape});
    for (const Extra& extra : extras) out.add_tensor({extra.name, DType::f32, extra.shape});
    ASSERT_TRUE(out.begin(path_).ok());
    for (const TensorView& t : file->tensors())
      ASSERT_TRUE(out.write({static_cast<const std::byte*>(t.data), t.bytes}).ok());
    for (const Extra& extra : extras) {
      int64_t n = 1;
      for (const int64_t dim : extra.shape) n *= dim;
      const std::vector<float> values(static_cast<size_t>(n), extra.value);
      ASSERT_TRUE(out.write(std::as_bytes(std::span(values))).ok());
    }
    ASSERT_TRUE(out.finish().ok());
  }

  Inspection inspected() { return inspect(open_model_file(path_).value()); }
  Status load_status() {
    Loaded l;
    l.team = std::make_unique<Team>(1);
    l.device = cpu_device(*l.team);
    l.from = std::make_unique<PickFrom>(PickFrom{l.machine, l.profile, l.force});
    return Engine::load(open_model_file(path_).value(), *l.device, *l.team, *l.from,
                        {.n_ctx = 64, .max_rows = 64})
        .status();
  }
  // Refused by both, in the same words, which hold `name`.
  void expect_refused(const std::string& name) {
    const Inspection i = inspected();
    EXPECT_FALSE(i.runs) << name;
    EXPECT_NE(i.why_not.find(name), std::string::npos) << i.why_not;
    const Status status = load_status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), i.why_not);
  }
  std::vector<float> logits_of(const std::string& path) {
    auto loaded = load(path, 1, {.n_ctx = 64, .max_rows = 64});
    if (loaded == nullptr) return {};
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 40; ++i) prompt.push_back((i * 37 + 5) % 128);
    const int seq = loaded->engine->open().value();
    EXPECT_TRUE(compute(*loaded->engine, seq, prompt).ok());
    const auto logits = loaded->engine->logits(0).value();
    return {logits.begin(), logits.end()};
  }

  const std::string plain_ = fmt::format("{}/plain_{}.gguf", testing::TempDir(), getpid());
  const std::string path_ = fmt::format("{}/extra_{}.gguf", testing::TempDir(), getpid());
};

TEST_F(ExtraTensors, ThePlainModelRunsAsACopy) {
  write({});
  EXPECT_TRUE(inspected().runs) << inspected().why_not;
  EXPECT_EQ(logits_of(path_), logits_of(plain_));
}

TEST_F(ExtraTensors, ABiasThatACallAddsChangesTheLogits) {
  const auto plain = logits_of(plain_);
  for (const char* name : {"blk.0.attn_output.bias", "blk.0.ffn_down.bias", "blk.1.attn_q.bias"}) {
    write({{name, {256}}});
    EXPECT_TRUE(inspected().runs) << inspected().why_not;
    EXPECT_NE(logits_of(path_), plain) << name;
  }
}

TEST_F(ExtraTensors, WhatNoCallReadsIsRefusedByName) {
  for (const Extra& extra :
       {Extra{"blk.0.attn_q_norm.weight", {64}}, Extra{"blk.0.attn_sinks.weight", {4}},
        Extra{"blk.2.attn_norm.weight", {256}}}) {
    write({extra});
    expect_refused(extra.name);
    EXPECT_EQ(inspected().unused.unknown, std::vector<std::string>{extra.name});
  }
}

// A directory with one tensor more, which has the bytes of `like`.
void copy_with(const std::string& from, const std::string& to, const std::string& name,
               const std::string& like) {
  using Options = std::filesystem::copy_options;
  std::filesystem::copy(from, to, Options::overwrite_existing | Options::recursive);
  std::ifstream in(from + "/model.safetensors", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  uint64_t n = 0;
  std::memcpy(&n, bytes.data(), sizeof(n));
  auto header = nlohmann::json::parse(bytes.substr(8, n));
  std::string data = bytes.substr(8 + n);
  auto entry = header.at(like);
  const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  entry["data_offsets"] = {data.size(), data.size() + end - begin};
  header[name] = entry;
  data += data.substr(begin, end - begin);
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  n = text.size();
  std::ofstream out(to + "/model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&n), sizeof(n)) << text << data;
}

// The step names a stack of experts, a directory each of them: one more than the stack has is as
// unknown as any other tensor.
TEST_F(ExtraTensors, AnExpertThatNoStackHasIsRefusedByName) {
  const std::string to = fmt::format("{}/experts_{}", testing::TempDir(), getpid());
  std::filesystem::create_directories(to);
  const std::string like = "model.layers.0.mlp.experts.0.gate_proj.weight";
  for (const auto& [name, ours] :
       {std::pair{"model.layers.0.mlp.experts.77.gate_proj.weight", "ffn_gate_exps.77.weight"},
        std::pair{"blk.0.ffn_gate_exps.bias", "ffn_gate_exps.bias"},
        std::pair{"blk.0.ffn_gate_exps.00.weight", "ffn_gate_exps.00.weight"}}) {
    copy_with(fixture("qwen3_moe"), to, name, like);
    const Inspection i = inspect(open_model_file(to).value());
    EXPECT_FALSE(i.runs) << name;
    EXPECT_NE(i.why_not.find(ours), std::string::npos) << i.why_not;
  }
  EXPECT_TRUE(inspect(open_model_file(fixture("qwen3_moe")).value()).runs);
  std::filesystem::remove_all(to);
}

TEST_F(ExtraTensors, AWrongShapeIsRefusedByName) {
  write({{"blk.0.attn_output.bias", {255}}});
  expect_refused("blk.0.attn_output.bias");
}

TEST_F(ExtraTensors, AVisionTowerIsIgnoredAndNamed) {
  write({{"v.patch_embd.weight", {16, 32}}});
  const Inspection i = inspected();
  EXPECT_TRUE(i.runs) << i.why_not;
  EXPECT_EQ(i.unused.ignored, std::vector<std::string>{"v.patch_embd.weight"});
  EXPECT_EQ(logits_of(path_), logits_of(plain_));
}

TEST_F(ExtraTensors, AModelThatSeesWhatFollowsIsRefused) {
  write({}, [](GgufWriter& w) { w.add_bool("llama.attention.causal", false); });
  expect_refused("attention.causal");
}

// 40 tokens: a window of 40 holds them all, one of 16 does not.
TEST_F(ExtraTensors, AWindowIsObeyed) {
  const auto window = [](uint32_t n) {
    return [n](GgufWriter& w) { w.add_u32("llama.attention.sliding_window", n); };
  };
  const auto plain = logits_of(plain_);
  write({}, window(40));
  EXPECT_EQ(logits_of(path_), plain);
  write({}, window(16));
  EXPECT_TRUE(inspected().runs) << inspected().why_not;
  EXPECT_NE(logits_of(path_), plain);
  const Config config = *inspected().config;
  EXPECT_EQ(kv_bytes_of_context(config, 512, DType::f16),
            kv_bytes_of_context(config, 16, DType::f16));
  const size_t of_16 = 16 * static_cast<size_t>(kv_bytes_per_token(config, DType::f16));
  EXPECT_EQ(context_within(config, of_16, DType::f16), config.n_ctx);
  EXPECT_EQ(context_within(config, of_16 - 1, DType::f16), 15);
}

TEST_F(ExtraTensors, LogitsThatAreNotFiniteNameTheirPosition) {
  write({{"blk.0.ffn_down.bias", {256}, std::numeric_limits<float>::quiet_NaN()}});
  auto loaded = load(path_, 1, {.n_ctx = 64, .max_rows = 64});
  ASSERT_NE(loaded, nullptr);
  const int seq = loaded->engine->open().value();
  const std::vector<int32_t> first = {1, 2, 3}, next = {4, 5};
  ASSERT_TRUE(compute(*loaded->engine, seq, first).ok());
  int n_rows = 0;
  const Status status =
      compute_all(*loaded->engine, seq, next, [&](size_t, std::span<const float>) { ++n_rows; });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("not finite at position 3"), std::string::npos)
      << status.message();
  EXPECT_EQ(n_rows, 0);
  const float fine[] = {1, 2}, bad[] = {1, -std::numeric_limits<float>::infinity()};
  EXPECT_TRUE(check_finite(fine, 7).ok());
  EXPECT_FALSE(check_finite(bad, 7).ok());
}

}  // namespace
}  // namespace millrace
