// What exec/ makes of the steps of real architectures: how few barriers, whose memory, whose part.
#include "exec/lower.h"

#include <gtest/gtest.h>

#include <map>

#include "machine/find_host.h"
#include "model/architecture.h"
#include "model/network.h"

namespace millrace {
namespace {

Config config_of(std::string_view architecture) {
  Config c;
  c.architecture = architecture_named(architecture).value();
  c.n_layers = 4;
  c.n_embd = 256;
  c.n_heads = 8;
  c.n_kv_heads = 2;
  c.head_dim = c.rot_dim = 64;
  c.n_ff = 512;
  c.n_vocab = 1024;
  c.n_ctx = 512;
  if (c.architecture->has_experts) {
    c.n_experts = 8;
    c.n_experts_used = 2;
  }
  return c;
}

struct ModelStep {
  Machine machine = find_host();
  Profile profile;
  Force force;
  PickFrom from{machine, profile, force};
  Config config;
  StepSpec spec;
  std::vector<DType> types;
  Lowered lowered;

  ModelStep(std::string_view architecture, DType type) : config(config_of(architecture)) {
    spec = build_step(config, [](const std::string&) { return false; });
    for (const WeightRef& ref : spec.weights)
      types.push_back(
          ref.form == WeightForm::matrix || ref.form == WeightForm::experts ? type : DType::f32);
    LowerFor how{.from = from,
                 .weight_types = types,
                 .max_rows = 64,
                 .max_outputs = 8,
                 .kv = {.n_pages = 8,
                        .page_tokens = 64,
                        .page_stride = 64 * 2 * 64 * 2 * 4,
                        .n_seqs = 1,
                        .max_pages = 8,
                        .type = DType::f16}};
    auto result = lower(spec, how);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (result.ok()) lowered = std::move(result).value();
  }
};

TEST(Lower, a_dense_layer_takes_eight_barriers) {
  for (const std::string_view architecture : {"llama", "qwen2", "qwen3"})
    for (const DType type : {DType::q4_0, DType::q8_0, DType::q4_k}) {
      const ModelStep step(architecture, type);
      // Three more: before the wanted rows are gathered, after their norm, and at the end.
      EXPECT_LE(step.lowered.n_barriers(), 8 * 4 + 3u) << architecture << '\n'
                                                       << describe(step.lowered);
    }
}

TEST(Lower, experts_take_ten_barriers) {
  const ModelStep step("qwen3moe", DType::q4_0);
  EXPECT_LE(step.lowered.n_barriers(), 10 * 4 + 3u) << describe(step.lowered);
}

TEST(Lower, float_weights_need_no_conversion) {
  const ModelStep step("llama", DType::bf16);
  for (const LoweredCall& call : step.lowered.calls) EXPECT_NE(call.op->name, "quantize");
  EXPECT_LE(step.lowered.n_barriers(), 7 * 4 + 3u) << describe(step.lowered);
}

TEST(Lower, a_value_is_converted_once_for_all_that_read_it) {
  const ModelStep step("llama", DType::q8_0);
  std::map<int, int> conversions;
  for (const LoweredCall& call : step.lowered.calls)
    if (call.op->name == "quantize") {
      EXPECT_EQ(++conversions[call.in[0].value], 1);
    }
  EXPECT_EQ(conversions.size(),
            4 * 4 + 1u);  // two norms, the heads and the product of gates a layer
}

TEST(Lower, memory_is_shared_only_across_a_barrier) {
  const ModelStep step("qwen3", DType::q4_0);
  const auto bytes = [](const ArenaBuffer& b) {
    return b.row_bytes * static_cast<size_t>(b.count == Count::rows ? 64 : 8);
  };
  const auto& buffers = step.lowered.buffers;
  size_t apart = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    apart += bytes(buffers[i]);
    for (size_t j = 0; j < i; ++j) {
      const bool same_bytes = buffers[i].at < buffers[j].at + bytes(buffers[j]) &&
                              buffers[j].at < buffers[i].at + bytes(buffers[i]);
      const bool same_time = buffers[i].first_phase <= buffers[j].last_phase &&
                             buffers[j].first_phase <= buffers[i].last_phase;
      EXPECT_FALSE(same_bytes && same_time) << i << " and " << j;
    }
  }
  EXPECT_LT(step.lowered.arena_bytes, apart / 4);
}

TEST(Lower, q_k_and_v_are_shared_out_together_by_heads) {
  const ModelStep step("llama", DType::q8_0);
  std::vector<Split> products;
  for (const LoweredCall& call : step.lowered.calls)
    if (call.op->name == "matmul" && call.split.total > 0) products.push_back(call.split);
  ASSERT_EQ(products.size(), 3 * 4u);
  EXPECT_EQ(products[0].grain, 64);
  EXPECT_EQ(products[0].total, (8 + 2 + 2) * 64);
  EXPECT_EQ(products[1].offset, 8 * 64);
  EXPECT_EQ(products[2].offset, 10 * 64);
}

TEST(Lower, a_slow_type_is_said) {
  const ModelStep fast("llama", DType::q4_0), slow("llama", DType::q2_k);
  EXPECT_TRUE(slow_calls(fast.spec, fast.lowered, fast.types).empty());
  const auto warnings = slow_calls(slow.spec, slow.lowered, slow.types);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("q2_k"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("blk.0.attn_q.weight"), std::string::npos) << warnings[0];
}

TEST(Lower, describes_a_step_by_its_calls) {
  const ModelStep step("llama", DType::q8_0);
  const std::string text = describe(step.lowered);
  EXPECT_EQ(text.substr(0, text.find(' ')), "embedding");
  EXPECT_NE(text.find("attention"), std::string::npos);
}

}  // namespace
}  // namespace millrace
