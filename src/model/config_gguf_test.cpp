#include "model/config_gguf.h"

#include <gtest/gtest.h>

#include <functional>

#include "files/gguf_bytes_test.h"
#include "model/architecture.h"

namespace millrace {
namespace {

// A small model's header. `more` adds `n_more` keys of its own.
GgufBytes model(const std::string& arch, uint64_t n_more = 0,
                const std::function<void(GgufBytes&)>& more = {}, uint32_t embd_type = 0) {
  GgufBytes b;
  b.begin(1, 9 + n_more).string("general.architecture", arch).string("general.name", "Tiny");
  const auto key = [&](const char* name) { return arch + "." + name; };
  b.u32(key("block_count"), 2).u32(key("embedding_length"), 64).u32(key("context_length"), 128);
  b.u32(key("feed_forward_length"), 96).u32(key("attention.head_count"), 4);
  b.u32(key("attention.head_count_kv"), 2).f32(key("attention.layer_norm_rms_epsilon"), 1e-6f);
  if (more) more(b);
  return b.tensor("token_embd.weight", {64, 10}, embd_type, 0).data(64 * 10 * 4);
}

Result<Config> config_of(const GgufBytes& bytes) {
  auto gguf = Gguf::read(bytes.span(), "m.gguf");
  if (!gguf.ok()) return gguf.status();
  return read_config(gguf.value());
}

TEST(ConfigGguf, ReadsALlama) {
  const auto result = config_of(model("llama"));
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Config& c = result.value();
  EXPECT_EQ(c.architecture->name, "llama");
  EXPECT_EQ(c.name, "Tiny");
  EXPECT_EQ(c.n_layers, 2);
  EXPECT_EQ(c.n_embd, 64);
  EXPECT_EQ(c.n_heads, 4);
  EXPECT_EQ(c.n_kv_heads, 2);
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.rot_dim, 16);
  EXPECT_EQ(c.n_ff, 96);
  EXPECT_EQ(c.n_vocab, 10);
  EXPECT_EQ(c.n_ctx, 128);
  EXPECT_EQ(c.n_experts, 0);
  EXPECT_FLOAT_EQ(c.rms_eps, 1e-6f);
  EXPECT_EQ(c.rope_order, rope::PairOrder::normal);
  EXPECT_EQ(c.rope.freq_base, 10000);
  EXPECT_EQ(c.rope.freq_scale, 1);
  EXPECT_EQ(c.rope.ext_factor, 0);
}

TEST(ConfigGguf, ReadsHeadsAndRopeOfAQwen3) {
  const auto result = config_of(model("qwen3", 4, [](GgufBytes& b) {
    b.u32("qwen3.attention.key_length", 32).u32("qwen3.attention.value_length", 32);
    b.f32("qwen3.rope.freq_base", 1e6f).u32("qwen3.rope.dimension_count", 32);
  }));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().head_dim, 32);
  EXPECT_EQ(result.value().rot_dim, 32);
  EXPECT_EQ(result.value().rope.freq_base, 1e6);
  EXPECT_EQ(result.value().rope_order, rope::PairOrder::neox);
}

TEST(ConfigGguf, ReadsYarn) {
  const auto result = config_of(model("qwen2", 6, [](GgufBytes& b) {
    b.string("qwen2.rope.scaling.type", "yarn").f32("qwen2.rope.scaling.factor", 4);
    b.u32("qwen2.rope.scaling.original_context_length", 32);
    b.f32("qwen2.rope.scaling.attn_factor", 0.5f).f32("qwen2.rope.scaling.yarn_beta_fast", 16);
    b.f32("qwen2.rope.scaling.yarn_beta_slow", 2);
  }));
  ASSERT_TRUE(result.ok()) << result.status().message();
  const rope::Scaling& rope = result.value().rope;
  EXPECT_EQ(rope.freq_scale, 0.25);
  EXPECT_EQ(rope.ext_factor, 1);
  EXPECT_EQ(rope.attn_factor, 0.5);
  EXPECT_EQ(rope.beta_fast, 16);
  EXPECT_EQ(rope.beta_slow, 2);
  EXPECT_EQ(rope.orig_ctx, 32);
}

TEST(ConfigGguf, ReadsLinearScalingOfBothSpellings) {
  const auto now = config_of(model("llama", 2, [](GgufBytes& b) {
    b.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 8);
  }));
  EXPECT_EQ(now.value().rope.freq_scale, 0.125);
  EXPECT_EQ(now.value().rope.ext_factor, 0);
  const auto old =
      config_of(model("llama", 1, [](GgufBytes& b) { b.f32("llama.rope.scale_linear", 2); }));
  EXPECT_EQ(old.value().rope.freq_scale, 0.5);
}

// llama.cpp obeys both keys where the file has no type: so would answers change without them.
TEST(ConfigGguf, ReadsRopeFactorsThatHaveNoType) {
  const auto factor =
      config_of(model("llama", 1, [](GgufBytes& b) { b.f32("llama.rope.scaling.factor", 8); }));
  EXPECT_EQ(factor.value().rope.freq_scale, 0.125);
  const auto magnitude = config_of(
      model("llama", 1, [](GgufBytes& b) { b.f32("llama.rope.scaling.attn_factor", 0.5f); }));
  EXPECT_EQ(magnitude.value().rope.attn_factor, 0.5);
  EXPECT_EQ(magnitude.value().rope.freq_scale, 1);
  const auto off = config_of(model("llama", 3, [](GgufBytes& b) {
    b.string("llama.rope.scaling.type", "none").f32("llama.rope.scaling.factor", 8);
    b.f32("llama.rope.scaling.attn_factor", 0.5f);
  }));
  EXPECT_EQ(off.value().rope.freq_scale, 1);
  EXPECT_EQ(off.value().rope.attn_factor, 0.5);
}

TEST(ConfigGguf, ReadsExperts) {
  const auto result = config_of(model("qwen3moe", 3, [](GgufBytes& b) {
    b.u32("qwen3moe.expert_count", 8).u32("qwen3moe.expert_used_count", 2);
    b.u32("qwen3moe.expert_feed_forward_length", 48);
  }));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().n_experts, 8);
  EXPECT_EQ(result.value().n_experts_used, 2);
  EXPECT_EQ(result.value().n_ff, 48);
  EXPECT_TRUE(result.value().norm_expert_weights);
}

TEST(ConfigGguf, TakesACountPerLayerWhenAllAreEqual) {
  const auto with = [](uint32_t second) {
    return config_of(model("qwen3", 1, [&](GgufBytes& b) {
      b.array("qwen3.attention.key_length", GgufType::u32, 2).put<uint32_t>(16).put(second);
    }));
  };
  EXPECT_TRUE(with(16).ok());
  EXPECT_EQ(with(8).status().code(), Code::unsupported);
}

void expect_refused(const GgufBytes& bytes, std::string_view part) {
  const auto config = config_of(bytes);
  ASSERT_FALSE(config.ok()) << part;
  EXPECT_NE(config.status().message().find(part), std::string_view::npos)
      << "wanted: " << part << "\ngot: " << config.status().message();
}

TEST(ConfigGguf, SaysWhyAModelCannotRun) {
  expect_refused(model("gemma9"), "architecture 'gemma9' is not supported; these are: llama");
  expect_refused(GgufBytes().begin(0, 0), "key 'general.architecture' is missing");
  expect_refused(GgufBytes().begin(0, 1).string("general.architecture", "llama"),
                 "key 'llama.block_count' is missing");
  const auto with = [](const char* name, uint32_t value) {
    return model("llama", 1, [=](GgufBytes& b) { b.u32(name, value); });
  };
  expect_refused(with("llama.attention.key_length", 512), "the head width is 512");
  expect_refused(with("llama.attention.value_length", 8), "differs from the keys' length");
  expect_refused(with("llama.rope.dimension_count", 15), "odd");
  expect_refused(with("llama.rope.dimension_count", 32), "the rotated part of a head is 32");
  expect_refused(with("llama.expert_count", 8), "'llama.expert_count' is set");
  expect_refused(with("llama.attention.clamp_kqv", 8), "is set, which is not supported");
  expect_refused(model("qwen3moe"), "'qwen3moe.expert_count'");
  expect_refused(
      model("llama", 1, [](GgufBytes& b) { b.string("llama.rope.scaling.type", "longrope"); }),
      "is 'longrope'");
  expect_refused(model("llama", 0, {}, 99), "'token_embd.weight' is unknown type 99");
}

}  // namespace
}  // namespace millrace
