#include "model/inspect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "files/gguf_bytes_test.h"
#include "model/architecture.h"

namespace millrace {
namespace {

class Inspect : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  Inspection of(const GgufBytes& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes.str();
    auto file = open_model_file(path_);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return inspect(file.value());
  }
  const std::string path_ = fmt::format("{}/inspect_{}.gguf", ::testing::TempDir(), getpid());
};

GgufBytes llama() {
  GgufBytes b;
  b.begin(2, 8).string("general.architecture", "llama").u32("llama.block_count", 2);
  b.u32("llama.embedding_length", 64).u32("llama.context_length", 128);
  b.u32("llama.feed_forward_length", 96).u32("llama.attention.head_count", 4);
  b.u32("llama.attention.head_count_kv", 2).f32("llama.attention.layer_norm_rms_epsilon", 1e-6f);
  return b.tensor("token_embd.weight", {64, 10}, 0, 0).tensor("w", {64}, 2, 2560).data(2596);
}

TEST_F(Inspect, CountsParametersAndTypes) {
  const Inspection i = of(llama());
  EXPECT_EQ(i.format, "GGUF 3, 1 file");
  EXPECT_EQ(i.architecture, "llama");
  EXPECT_EQ(i.n_parameters, 704);
  EXPECT_EQ(i.tensor_bytes, 2596u);
  ASSERT_EQ(i.types.size(), 2u);
  EXPECT_EQ(i.types[0].type, "f32");
  EXPECT_EQ(i.types[1].bytes, 36u);
}

// A configuration alone does not make it run.
TEST_F(Inspect, AFileWithoutItsTensorsDoesNotRun) {
  const Inspection i = of(llama());
  ASSERT_TRUE(i.config.has_value());
  EXPECT_EQ(i.config->n_ctx, 128);
  EXPECT_FALSE(i.runs);
  EXPECT_NE(i.why_not.find("blk.0.attn_norm.weight"), std::string::npos) << i.why_not;
  EXPECT_EQ(i.unused.unknown, std::vector<std::string>{"w"});
}

TEST_F(Inspect, SaysWhyNot) {
  GgufBytes b;
  b.begin(1, 1).string("general.architecture", "mamba\x1b").tensor("t", {3}, 99, 0).data(0);
  const Inspection i = of(b);
  EXPECT_FALSE(i.runs);
  EXPECT_NE(i.why_not.find("architecture 'mamba\\x1b'"), std::string::npos) << i.why_not;
  EXPECT_EQ(i.architecture, "mamba\\x1b");
  EXPECT_EQ(i.types[0].type, "unknown type 99");
  EXPECT_FALSE(i.config.has_value());
}

TEST_F(Inspect, AbbreviatesValues) {
  GgufBytes b;
  b.begin(0, 5).string("s", "a\nb").array("n", GgufType::i32, 9);
  for (int32_t v = 0; v < 9; ++v) b.put(v);
  b.array("t", GgufType::string, 2).text("x").text("\xff");
  b.key("u", GgufType::u64).put(~uint64_t{0}).key("b", GgufType::boolean).put<uint8_t>(1);
  auto gguf = Gguf::read(b.span(), "x");
  ASSERT_TRUE(gguf.ok());
  EXPECT_EQ(value_text(*gguf->find("s")), "a\\x0ab");
  EXPECT_EQ(value_text(*gguf->find("n")), "9 x i32: 0, 1, 2, 3, 4, 5, 6, 7, ...");
  EXPECT_EQ(value_text(*gguf->find("t")), "2 x string: 'x', '\\xff'");
  EXPECT_EQ(value_text(*gguf->find("u")), "1.8446744073709552e+19");
  EXPECT_EQ(value_text(*gguf->find("b")), "true");
  EXPECT_EQ(value_json(*gguf->find("n"))["count"], 9);
  EXPECT_EQ(value_json(*gguf->find("n"))["first"].size(), 8u);
  EXPECT_EQ(value_json(*gguf->find("s")), "a\nb");
}

}  // namespace
}  // namespace millrace
