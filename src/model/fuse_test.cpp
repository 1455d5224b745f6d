// What exec/fuse.h finds in the steps of real architectures, without a GPU: the calls are those
// that a GPU would make of the spec, in the classes that the fusions name.
#include "exec/fuse.h"

#include <gtest/gtest.h>

#include <utility>

#include "kernels/add/op.h"
#include "kernels/kv_store/op.h"
#include "kernels/matmul/op.h"
#include "kernels/matmul_add/op.h"
#include "model/architecture.h"
#include "model/network.h"

namespace millrace {
namespace {

constexpr int kLayers = 3;

StepSpec spec_of(std::string_view architecture) {
  Config c;
  c.architecture = architecture_named(architecture).value();
  c.n_layers = kLayers;
  c.n_embd = 256;
  c.n_heads = 8;
  c.n_kv_heads = 2;
  c.head_dim = c.rot_dim = 64;
  c.n_ff = 512;
  c.n_vocab = 1024;
  c.n_ctx = 512;
  return build_step(c, [](const std::string&) { return false; });
}

FusedCall fused_call_of(const Op* op) {
  for (const Fusion* fusion : fusions())
    for (const FusedCall& call : fusion->calls)
      if (call.op == op) return call;
  return {op, "none"};
}

// Keys and values are stored by one call, as choose() makes it for a GPU.
std::vector<LoweredCall> calls_of(const StepSpec& spec) {
  std::vector<LoweredCall> calls;
  for (const Node& node : spec.nodes) {
    const bool joins =
        node.op == &kv_store::kOp && !calls.empty() && calls.back().op == &kv_store::kOp;
    const FusedCall as = fused_call_of(node.op);
    if (!joins) calls.push_back({.op = node.op, .layout = as.layout, .numerics = as.numerics});
    for (const int value : node.in) calls.back().in.push_back({.value = value});
    for (const int value : node.out) calls.back().out.push_back({.value = value});
  }
  return calls;
}

std::vector<std::string_view> names_of(const std::vector<FusedGroup>& groups) {
  std::vector<std::string_view> names;
  for (const FusedGroup& group : groups) names.push_back(group.fusion->name);
  return names;
}

std::vector<std::string_view> every_layer(const std::vector<std::string_view>& names) {
  std::vector<std::string_view> all;
  for (int i = 0; i < kLayers; ++i) all.insert(all.end(), names.begin(), names.end());
  return all;
}

TEST(Fuse, ALayerIsFourGroupsAndAttention) {
  for (const std::string_view architecture : {"llama", "qwen3"}) {
    const StepSpec spec = spec_of(architecture);
    const auto calls = calls_of(spec);
    const auto groups = fuse(spec, calls, fusions(), {});
    EXPECT_EQ(names_of(groups),
              every_layer({"attention_input", "matmul_add", "gated_input", "matmul_add"}))
        << architecture;
    size_t n_left = calls.size();
    for (const FusedGroup& group : groups) n_left -= group.fusion->calls.size();
    // Beside attention: the embedding, and the head's gather, norm and product.
    EXPECT_EQ(n_left, kLayers + 4u) << architecture;
  }
}

TEST(Fuse, LeavesWhatIsReadElsewhere) {
  const StepSpec spec = spec_of("qwen3");
  auto calls = calls_of(spec);
  const auto groups = fuse(spec, calls, fusions(), {});
  // The last call also reads what the first matmul_add's product makes.
  const FusedGroup& group = groups.at(1);
  calls.back().in.push_back(calls[group.begin].out.at(0));
  const auto now = fuse(spec, calls, fusions(), {});
  EXPECT_EQ(now.size(), groups.size() - 1);
  for (const FusedGroup& g : now) EXPECT_NE(g.begin, group.begin);
}

TEST(Fuse, LeavesAnotherClassAndAnotherOrder) {
  const StepSpec spec = spec_of("llama");
  auto calls = calls_of(spec);
  const size_t all = fuse(spec, calls, fusions(), {}).size();
  for (LoweredCall& call : calls)
    if (call.op == &add::kOp) {
      call.numerics = "another";
      break;
    }
  EXPECT_EQ(fuse(spec, calls, fusions(), {}).size(), all - 1);
  calls = calls_of(spec);
  for (LoweredCall& call : calls)
    if (call.op == &add::kOp) {
      std::swap(call.in[0], call.in[1]);  // then the product is not the second operand
      break;
    }
  EXPECT_EQ(fuse(spec, calls, fusions(), {}).size(), all - 1);
}

TEST(Fuse, LeavesAnotherLayout) {
  const StepSpec spec = spec_of("llama");
  auto calls = calls_of(spec);
  const auto groups = fuse(spec, calls, fusions(), {});
  calls[groups.at(1).begin].layout = "mma16_decoded";  // a matmul_add's product
  EXPECT_EQ(fuse(spec, calls, fusions(), {}).size(), groups.size() - 1);
}

TEST(Fuse, LeavesAForcedOp) {
  const StepSpec spec = spec_of("llama");
  const auto calls = calls_of(spec);
  auto force = Force::parse("add:reference");
  ASSERT_TRUE(force.ok());
  EXPECT_EQ(names_of(fuse(spec, calls, fusions(), *force)),
            every_layer({"attention_input", "gated_input"}));
}

TEST(Fuse, JoinsNoSumThatOverwritesWhatOthersStillRead) {
  alignas(64) std::byte memory[4096] = {};
  matmul::Args product{};
  product.x = memory;
  product.n_rows = 1;
  product.n = product.k = 64;
  product.w_type = product.x_type = DType::bf16;
  product.y_type = DType::f32;
  add::Args sum{};
  sum.n_rows = 1;
  sum.n = 64;
  std::vector<ArgsBox> plain(2);
  ArgsBox joined;
  put_args(plain[0], product);
  for (const bool apart : {true, false}) {
    sum.a = sum.y = memory + (apart ? 1024 : 64);
    put_args(plain[1], sum);
    EXPECT_EQ(matmul_add::kFusion.join(plain, joined), apart);
  }
}

}  // namespace
}  // namespace millrace
