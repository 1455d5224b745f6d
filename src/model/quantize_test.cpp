#include "model/quantize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "files/gguf.h"
#include "files/random_weights.h"
#include "model/architecture.h"
#include "model/config.h"
#include "model/make_model.h"
#include "model/make_vocab.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

QuantType type_named(std::string_view name) {
  return quant_type_named(name).value();
}

std::string bytes_of_file(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ / name; }
  std::string made(const std::string& shape, const std::string& type, int n_threads = 2,
                   uint64_t seed = 1) const {
    const std::string path = at(fmt::format("{}.{}.{}.{}.gguf", shape, type, n_threads, seed));
    MakeModelOptions options{type_named(type), seed, {}};
    options.stream.n_threads = n_threads;
    const auto result = make_model(model_shape_named(shape).value(), path, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return path;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / fmt::format("quantize_{}", getpid());
};

using MakeModel = Files;
using Quantize = Files;
using GgufWrite = Files;

TEST(QuantTypeTest, FollowsTheUsualMixes) {
  const auto chosen = [](std::string_view type, std::string_view tensor, int64_t k = 2048,
                         bool has_output = false) {
    return quantised_type(type_named(type), {16, has_output, 4}, tensor, {64, k});
  };
  EXPECT_EQ(chosen("q4_0", "blk.3.attn_q.weight"), DType::q4_0);
  EXPECT_EQ(chosen("q4_0", "token_embd.weight"), DType::q6_k);
  EXPECT_EQ(chosen("q4_0", "token_embd.weight", 576), DType::q8_0);
  EXPECT_EQ(chosen("q4_0", "token_embd.weight", 2048, true), DType::q4_0);
  EXPECT_EQ(chosen("q8_0", "output.weight", 2048, true), DType::q8_0);
  EXPECT_EQ(chosen("f16", "token_embd.weight"), DType::f16);
  EXPECT_EQ(chosen("q4_k_m", "blk.0.attn_v.weight"), DType::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.2.attn_v.weight"), DType::q4_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.4.ffn_down.weight"), DType::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.15.ffn_down_exps.weight"), DType::q6_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.5.ffn_down.weight"), DType::q4_k);
  EXPECT_EQ(chosen("q4_k_s", "blk.1.ffn_down.weight"), DType::q5_k);
  EXPECT_EQ(chosen("q4_k_s", "blk.4.attn_v.weight"), DType::q4_k);
  EXPECT_EQ(chosen("q4_k_m", "blk.3.attn_q.weight", 576), DType::q5_0);
  EXPECT_EQ(chosen("q5_k_m", "blk.3.attn_q.weight", 576), DType::q5_1);
  EXPECT_EQ(chosen("q6_k", "blk.3.attn_q.weight", 576), DType::q8_0);
  EXPECT_EQ(chosen("q4_0", "blk.3.attn_q.weight", 40), DType::f16);
  EXPECT_FALSE(is_quantised("blk.0.attn_norm.weight", {1, 64}));
  EXPECT_FALSE(is_quantised("blk.0.attn_q.bias", {64}));
  EXPECT_FALSE(is_quantised("blk.0.ffn_gate_inp.weight", {8, 64}));
  EXPECT_TRUE(is_quantised("blk.0.ffn_up_exps.weight", {8, 64, 64}));
  EXPECT_FALSE(quant_type_named("q9").ok());
  EXPECT_EQ(quant_type_named("Q4_K_M").value().file_type, 15u);
}

TEST(RandomWeights, HaveTheWantedDeviationInEveryType) {
  constexpr int64_t kElems = 1 << 14;
  for (int t = 0; t < static_cast<int>(DType::q8_row); ++t) {
    const auto type = static_cast<DType>(t);
    if (type == DType::i32 || type == DType::i8 || type == DType::u8) continue;
    std::vector<std::byte> bytes(bytes_of(type, kElems));
    std::vector<float> values(kElems);
    fill_random(type, {1, 2, 3, 0.05f}, bytes.data(), kElems);
    decode(type, bytes.data(), values.data(), kElems);
    double sum = 0, squares = 0;
    for (const float v : values) {
      sum += v;
      squares += double{v} * v;
    }
    EXPECT_NEAR(std::sqrt(squares / kElems), 0.05, 0.004) << name_of(type);
    // IQ4's table has a mean of its own: -9 % of its deviation.
    EXPECT_NEAR(sum / kElems, 0, 0.006) << name_of(type);
  }
}

TEST(MakeVocab, HasTheSizeAndItsTokensOnce) {
  const MadeVocab vocab = make_vocab(5000, {{"<a>", "<b>"}, false, 10});
  EXPECT_EQ(vocab.tokens.size(), 5000u);
  EXPECT_EQ(vocab.types.size(), 5000u);
  EXPECT_EQ(vocab.merges.size(), 5000u - 256 - 12);
  EXPECT_EQ(vocab.id_of("<a>"), 4988);
  EXPECT_EQ(vocab.merges[0], "Ġ a");
  std::vector<std::string> sorted = vocab.tokens;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  EXPECT_EQ(make_vocab(300, {{"<a>"}, true, 0}).id_of("<a>"), 0);
}

TEST_F(MakeModel, MakesEveryTinyShape) {
  for (const char* shape : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3moe"})
    for (const char* name : {"f32", "bf16", "q4_0", "q4_k_m", "iq4_xs"}) {
      const QuantType type = type_named(name);
      const std::string path = made(shape, name);
      auto file = open_model_file(path);
      ASSERT_TRUE(file.ok()) << file.status().message();
      const auto config = read_config(*file);
      ASSERT_TRUE(config.ok()) << config.status().message();
      EXPECT_EQ(config.value().n_vocab, 512);
      EXPECT_EQ(file->find("blk.1.attn_q.weight")->type, type.base);
      EXPECT_EQ(file->find("blk.1.attn_norm.weight")->type, DType::f32);
      fs::remove(path);
    }
}

TEST_F(MakeModel, GivesTheSameBytesWithAnyNumberOfThreads) {
  const std::string one = bytes_of_file(made("tiny-llama", "q4_k_m", 1));
  EXPECT_EQ(one, bytes_of_file(made("tiny-llama", "q4_k_m", 3)));
  EXPECT_NE(one, bytes_of_file(made("tiny-llama", "q4_k_m", 1, 2)));
}

TEST_F(MakeModel, BringsLlama3sRopeFactors) {
  auto file = open_model_file(made("tiny-llama", "f16"));
  const TensorView* factors = file->find("rope_freqs.weight");
  ASSERT_NE(factors, nullptr);
  ASSERT_EQ(factors->shape, std::vector<int64_t>{32});
  const auto* values = reinterpret_cast<const float*>(factors->data);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[31], 32.0f);
}

TEST_F(Quantize, ConvertsAndCarriesEverythingElse) {
  auto in = open_model_file(made("tiny-qwen3", "f32"));
  ASSERT_TRUE(in.ok());
  for (const char* name : {"f16", "bf16", "q8_0", "q4_1", "q5_0", "q2_k", "q4_k_m", "iq4_nl"}) {
    const QuantType type = type_named(name);
    const std::string path = at("out.gguf");
    const auto report = quantize_model(in.value(), path, type, {2, {}, nullptr});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report.value().n_requantised, 0);
    auto out = open_model_file(path);
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(out->tensors().size(), in->tensors().size());
    EXPECT_EQ(out->gguf()->values().size(), in->gguf()->values().size());
    EXPECT_EQ(out->gguf()->integer("general.file_type").value(), type.file_type);
    EXPECT_EQ(out->gguf()->find("tokenizer.ggml.tokens")->strings(),
              in->gguf()->find("tokenizer.ggml.tokens")->strings());
    const TensorView* w = out->find("blk.0.ffn_up.weight");
    EXPECT_EQ(w->type, type.base);
    std::vector<float> got(256);
    decode(w->type, w->data, got.data(), 256);
    const auto* want = reinterpret_cast<const float*>(in->find(w->name)->data);
    double miss = 0, all = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      miss += std::pow(double{got[i]} - want[i], 2);
      all += std::pow(double{want[i]}, 2);
    }
    EXPECT_LT(std::sqrt(miss / all), type.base == DType::q2_k ? 0.3 : 0.1) << type.name;
  }
}

TEST_F(Quantize, SaysWhatWasQuantisedBefore) {
  auto in = open_model_file(made("tiny-llama", "q8_0"));
  const auto report =
      quantize_model(in.value(), at("out.gguf"), type_named("q4_0"), {1, {}, nullptr});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().n_requantised, 16);
  EXPECT_EQ(report.value().n_tensors.at(DType::q4_0), 15);
}

TEST_F(Quantize, LeavesNothingWhenItIsStoppedOrCannotWrite) {
  auto in = open_model_file(made("tiny-llama", "q8_0"));
  const std::atomic<bool> stop{true};
  const auto stopped =
      quantize_model(in.value(), at("stopped.gguf"), type_named("q4_0"), {1, {}, &stop});
  EXPECT_EQ(stopped.status().code(), Code::cancelled);
  const auto nowhere =
      quantize_model(in.value(), at("no/such/folder.gguf"), type_named("q4_0"), {1, {}, nullptr});
  EXPECT_EQ(nowhere.status().code(), Code::io_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "the input alone";
}

TEST_F(GgufWrite, IsReadBackAsItWas) {
  const std::string path = at("written.gguf");
  GgufWriter writer;
  writer.add_u32("a", 7);
  writer.add_f32("b", 0.5f);
  writer.add_bool("c", true);
  writer.add_string("d", "text");
  writer.add_strings("e", std::vector<std::string>{"x", ""});
  writer.add_i32s("f", std::vector<int32_t>{-1, 2});
  writer.add_tensor({"w", DType::q4_0, {3, 32}});
  writer.add_tensor({"b", DType::f32, {2}});
  ASSERT_TRUE(writer.begin(path).ok());
  const std::vector<std::byte> data(54, std::byte{5});
  ASSERT_TRUE(writer.write(std::span(data).first(20)).ok());
  ASSERT_TRUE(writer.write(std::span(data).subspan(20)).ok());
  EXPECT_FALSE(fs::exists(path)) << "not before it is whole";
  ASSERT_TRUE(writer.write(std::span(data).first(8)).ok());
  ASSERT_TRUE(writer.finish().ok());
  auto gguf = Gguf::open(path);
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  EXPECT_EQ(gguf->integer("a").value(), 7);
  EXPECT_EQ(gguf->real("b").value(), 0.5);
  EXPECT_TRUE(gguf->boolean("c").value());
  EXPECT_EQ(gguf->string("d").value(), "text");
  EXPECT_EQ(gguf->find("e")->strings().size(), 2u);
  EXPECT_EQ(gguf->find("f")->integer(0), -1);
  EXPECT_EQ(gguf->find_tensor("w")->shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(gguf->find_tensor("b")->data[7], std::byte{5});
}

}  // namespace
}  // namespace millrace
