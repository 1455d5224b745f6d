#include "model/config_hf.h"
#include "model/architecture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace millrace {
namespace {

// A config.json of these; `more` begins with a comma.
std::string json(std::string_view type, std::string_view more = "") {
  return fmt::format(R"({{"model_type":"{}","architectures":["XForCausalLM"],"num_hidden_layers":2,
    "hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,
    "vocab_size":100,"max_position_embeddings":512,"rms_norm_eps":1e-05{}}})",
                     type, more);
}

Config config_of(const std::string& text) {
  const auto config = config_from_json(text, "config.json");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? config.value() : Config{};
}

TEST(ConfigHf, ReadsALlama) {
  const Config c = config_of(json("llama", R"(,"rope_theta":500000.0,"head_dim":null)"));
  EXPECT_EQ(c.architecture->name, "llama");
  EXPECT_EQ(c.n_layers, 2);
  EXPECT_EQ(c.n_embd, 64);
  EXPECT_EQ(c.n_heads, 4);
  EXPECT_EQ(c.n_kv_heads, 2);
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.rot_dim, 16);
  EXPECT_EQ(c.n_ff, 96);
  EXPECT_EQ(c.n_vocab, 100);
  EXPECT_EQ(c.n_ctx, 512);
  EXPECT_FLOAT_EQ(c.rms_eps, 1e-5f);
  EXPECT_EQ(c.rope_order, rope::PairOrder::neox);
  EXPECT_EQ(c.rope.freq_base, 500000);
  EXPECT_EQ(c.llama3.original_context, 0);
}

TEST(ConfigHf, ReadsRopeOfBothSpellings) {
  const Config old =
      config_of(json("llama", R"(,"rope_theta":5e5,"rope_scaling":{"rope_type":"llama3",
    "factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192})"));
  const Config now =
      config_of(json("llama", R"(,"rope_parameters":{"rope_theta":5e5,"rope_type":"llama3",
    "factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192})"));
  for (const Config& c : {old, now}) {
    EXPECT_EQ(c.rope.freq_base, 5e5);
    EXPECT_EQ(c.llama3.factor, 32);
    EXPECT_EQ(c.llama3.high_freq_factor, 4);
    EXPECT_EQ(c.llama3.original_context, 8192);
    EXPECT_EQ(c.rope.freq_scale, 1);
  }
  const Config linear = config_of(json("qwen2", R"(,"rope_scaling":{"type":"linear","factor":4})"));
  EXPECT_EQ(linear.rope.freq_scale, 0.25);
}

TEST(ConfigHf, ReadsYarn) {
  const auto yarn = [](std::string_view more) {
    return config_of(
               json("qwen3", fmt::format(R"(,"head_dim":32,"rope_scaling":{{"rope_type":"yarn",
      "factor":4.0,"original_max_position_embeddings":128{}}})",
                                         more)))
        .rope;
  };
  const rope::Scaling plain = yarn("");
  EXPECT_EQ(plain.freq_scale, 0.25);
  EXPECT_EQ(plain.ext_factor, 1);
  EXPECT_EQ(plain.orig_ctx, 128);
  EXPECT_NEAR(plain.attn_factor, 1, 1e-12) << "the usual magnitude is rope's own";
  const rope::Scaling set = yarn(R"(,"attention_factor":1.0,"beta_fast":16)");
  EXPECT_NEAR(set.attn_factor * (1 + 0.1 * std::log(4.0)), 1, 1e-12);
  EXPECT_EQ(set.beta_fast, 16);
}

TEST(ConfigHf, ReadsExperts) {
  const Config c = config_of(json("qwen3_moe", R"(,"num_experts":8,"num_experts_per_tok":2,
    "moe_intermediate_size":48,"norm_topk_prob":true,"mlp_only_layers":[],"decoder_sparse_step":1)"));
  EXPECT_EQ(c.architecture->name, "qwen3moe");
  EXPECT_EQ(c.n_experts, 8);
  EXPECT_EQ(c.n_experts_used, 2);
  EXPECT_EQ(c.n_ff, 48);
  EXPECT_TRUE(c.norm_expert_weights);
}

TEST(ConfigHf, ReadsAWindowWhereTheArchitectureHasOne) {
  const Config mistral = config_of(json("mistral", R"(,"sliding_window":256)"));
  EXPECT_EQ(mistral.n_ctx, 512);
  EXPECT_EQ(mistral.window_of(0), 256);
  EXPECT_EQ(config_of(json("mistral", R"(,"sliding_window":null)")).window, 0);
  EXPECT_EQ(config_of(json("qwen2", R"(,"sliding_window":256,"use_sliding_window":false)")).window,
            0);
  const auto refused =
      config_from_json(json("qwen2", R"(,"sliding_window":256,"use_sliding_window":true)"), "c");
  EXPECT_NE(refused.status().message().find("use_sliding_window"), std::string::npos);
}

TEST(ConfigHf, ReadsGemma3sTwoKindsOfLayers) {
  const Config c = config_of(json("gemma3_text", R"(,"hidden_act":"gelu_pytorch_tanh",
      "sliding_window":48,"query_pre_attn_scalar":64,"layer_types":["sliding_attention",
      "full_attention","sliding_attention","full_attention"],"rope_parameters":{
      "full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1e6},
      "sliding_attention":{"rope_type":"default","rope_theta":10000.0}})"));
  EXPECT_EQ(c.window_of(0), 48);
  EXPECT_EQ(c.window_of(1), 0);
  EXPECT_EQ(rope_of(c, 0).scaling.freq_base, 10000);
  EXPECT_EQ(rope_of(c, 0).scaling.freq_scale, 1);
  EXPECT_EQ(rope_of(c, 1).scaling.freq_base, 1e6);
  EXPECT_EQ(rope_of(c, 1).scaling.freq_scale, 0.125);
  EXPECT_EQ(c.attention_scale(), 0.125f);
  EXPECT_EQ(c.norm_plus, 1);
}

void expect_refused(const std::string& text, std::string_view part) {
  const auto config = config_from_json(text, "config.json");
  ASSERT_FALSE(config.ok()) << part;
  EXPECT_NE(config.status().message().find(part), std::string_view::npos)
      << "wanted: " << part << "\ngot: " << config.status().message();
}

TEST(ConfigHf, SaysWhyAModelCannotRun) {
  expect_refused("", "config.json: not valid JSON at byte");
  expect_refused("[]", "'model_type' is ''");
  expect_refused(std::string(100000, '['), "JSON");
  expect_refused(json("gemma9"), "'model_type' is 'gemma9'");
  expect_refused(R"({"model_type":"llama"})", "'num_hidden_layers' is missing");
  expect_refused(R"({"model_type":"llama","architectures":["LlamaForSequenceClassification"]})",
                 "does not predict tokens");
  expect_refused(json("qwen2", R"(,"is_causal":false)"), "'is_causal' is false");
  expect_refused(json("llama", R"(,"quantization_config":{})"), "'quantization_config' is present");
  expect_refused(json("llama", R"(,"hidden_act":"gelu")"), "'hidden_act' is 'gelu'");
  expect_refused(json("llama", R"(,"head_dim":"x")"), "'head_dim' is not an integer");
  expect_refused(json("llama", R"(,"head_dim":0)"), "the head width is 0");
  expect_refused(json("llama", R"(,"rope_scaling":{"rope_type":"longrope","factor":2})"),
                 "'longrope'");
  expect_refused(json("llama", R"(,"rope_scaling":{"rope_type":"linear","factor":0})"), "'factor'");
  expect_refused(json("llama", R"(,"rope_parameters":{"full_attention":{}})"), "kinds of layers");
  expect_refused(json("qwen3_moe"), "'num_local_experts' is missing");
}

}  // namespace
}  // namespace millrace
