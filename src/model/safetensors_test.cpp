#include "files/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "files/hf_names.h"
#include "files/model_file.h"
#include "model/architecture.h"
#include "model/config.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// A file with this header, padded as the format's own writer does, and n bytes of data.
std::string safetensors(std::string header, size_t n) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + std::string(n, '\x11');
}

std::string entry(std::string_view name, std::string_view type, std::string_view shape,
                  size_t begin, size_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, type,
                     shape, begin, end);
}

Result<std::vector<SafetensorsEntry>> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "x.safetensors");
}

void expect_refused(const std::string& bytes, std::string_view part) {
  const auto entries = parse(bytes);
  const std::string message(entries.status().message());
  EXPECT_NE(message.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << message;
  EXPECT_TRUE(message.starts_with("x.safetensors: ")) << message;
}

TEST(Safetensors, ReadsAHeader) {
  const auto entries = parse(safetensors(
      "{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "BF16", "[2,3]", 8, 20) + "," +
          entry("a", "F32", "[2]", 0, 8) + "," + entry("c", "F8_E4M3", "[4]", 20, 24) + "}",
      24));
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  ASSERT_EQ(entries.value().size(), 3u);
  EXPECT_EQ(entries.value()[0].name, "a");
  EXPECT_EQ(entries.value()[1].type, DType::bf16);
  EXPECT_EQ(entries.value()[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(entries.value()[1].bytes, 12u);
  EXPECT_EQ(entries.value()[2].type, std::nullopt);
  EXPECT_TRUE(parse(safetensors("{}", 0)).ok());
}

TEST(Safetensors, RefusesBadHeaders) {
  expect_refused("", "too short");
  expect_refused(std::string(8, '\0'), "a header of 0 bytes");
  expect_refused(std::string(64, '\xff'), "a header of 18446744073709551615 bytes");
  expect_refused(safetensors("[]", 0), "does not start with '{'");
  expect_refused(safetensors("{\"a\":", 0), "not valid JSON");
  expect_refused(safetensors("{\"\xff\":{}}", 0), "not valid JSON");
  expect_refused(safetensors("{\"a\":{}}", 0), "is missing");
  expect_refused(safetensors("{\"a\":[[[[", 0), "an array is not allowed here");
  expect_refused(safetensors("{\"a\":{\"shape\":[{}]}}", 0), "an object is not allowed here");
  expect_refused(safetensors("{\"a\":{\"color\":1}}", 0), "unknown field 'color'");
  expect_refused(safetensors("{\"a\":{\"shape\":[1],\"shape\":[1]}}", 0), "'shape' twice");
  expect_refused(safetensors("{\"a\":{\"shape\":[-1]}}", 0), "'shape' holds -1");
  expect_refused(safetensors("{\"a\":{\"shape\":[1.5]}}", 0), "a fraction");
  expect_refused(safetensors("{\"a\":{\"shape\":[18446744073709551615]}}", 0), "too large");
  expect_refused(safetensors("{\"a\":{\"data_offsets\":[5,2]}}", 0), "is not a range");
  expect_refused(safetensors("{\"\":{}}", 0), "without a name");
}

TEST(Safetensors, RefusesTensorsThatDoNotAddUp) {
  const auto one = [](std::string_view type, std::string_view shape, size_t begin, size_t end,
                      size_t n) {
    return safetensors("{" + entry("a", type, shape, begin, end) + "}", n);
  };
  EXPECT_TRUE(parse(one("F32", "[]", 0, 4, 4)).ok());
  EXPECT_TRUE(parse(one("F32", "[0,7]", 0, 0, 0)).ok());
  EXPECT_TRUE(parse(one("X9", "[3]", 0, 5, 5)).ok()) << "of a type nobody knows";
  expect_refused(one("F32", "[2]", 0, 4, 4), "its shape needs 8 bytes, data_offsets give 4");
  expect_refused(one("F32", "[4294967296,4294967296]", 0, 4, 4), "overflows");
  expect_refused(one("F32", "[1]", 0, 4, 3), "past the end of the file");
  expect_refused(one("F32", "[1]", 0, 4, 8), "the tensors end at byte");
  expect_refused(one("F32", "[1]", 4, 8, 8), "its data starts at byte");
  expect_refused(one("F32", "[1]", 9223372036854775800u, 9223372036854775804u, 8),
                 "past the end of the file");
  expect_refused(
      safetensors("{" + entry("a", "U8", "[1]", 0, 1) + "," + entry("b", "F32", "[1]", 1, 5) + "}",
                  5),
      "not a multiple of 4");
  expect_refused(
      safetensors("{" + entry("a", "U8", "[2]", 0, 2) + "," + entry("b", "U8", "[2]", 1, 3) + "}",
                  3),
      "its data starts at byte");
  expect_refused(
      safetensors("{" + entry("a", "U8", "[2]", 0, 2) + "," + entry("a", "U8", "[1]", 2, 3) + "}",
                  3),
      "occurs twice");
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string whole = safetensors("{" + entry("a", "F32", "[2]", 0, 8) + "}", 8);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(parse(whole.substr(0, n)).ok()) << n;
}

TEST(HfNames, AreTranslated) {
  const auto name = [](std::string_view hf) { return gguf_name_of(hf, {}).value_or("none"); };
  EXPECT_EQ(name("model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(name("lm_head.weight"), "output.weight");
  EXPECT_EQ(name("model.layers.12.self_attn.q_proj.bias"), "blk.12.attn_q.bias");
  EXPECT_EQ(name("model.layers.0.mlp.gate.weight"), "blk.0.ffn_gate_inp.weight");
  EXPECT_EQ(name("model.layers.0.mlp.experts.127.down_proj.weight"),
            "blk.0.ffn_down_exps.127.weight");
  for (const char* other :
       {"", "model.layers.", "model.layers.x.input_layernorm.weight", "model.layers.1",
        "model.layers.01.input_layernorm.weight", "model.layers.1.input_layernorm",
        "model.layers.-1.input_layernorm.weight", "model.layers.0.mlp.experts.1.gate.weight",
        "model.layers.99999999999999999999.input_layernorm.weight",
        "model.layers.0.self_attn.rotary_emb.inv_freq"})
    EXPECT_EQ(name(other), "none") << other;
  EXPECT_TRUE(fused_experts("model.layers.3.mlp.experts.gate_up_proj")->gate_up);
  EXPECT_FALSE(fused_experts("model.layers.3.mlp.experts.down_proj")->gate_up);
}

class SafetensorsFolder : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_config(std::string_view more = "") const {
    write("config.json",
          fmt::format(R"({{"model_type":"llama","num_hidden_layers":1,"hidden_size":32,
            "num_attention_heads":2,"intermediate_size":32,"vocab_size":1,
            "max_position_embeddings":64{}}})",
                      more));
  }
  std::string refusal() const {
    const auto dir = open_model_file(folder_);
    return std::string(dir.status().message());
  }

  static inline const std::string kEmbedding = "model.embed_tokens.weight";
  const fs::path folder_ = fs::path(::testing::TempDir()) / fmt::format("safetensors_{}", getpid());
};

// Another process cuts the weights while they are mapped.
TEST_F(SafetensorsFolder, SaysThatItWasCutShort) {
  write_config();
  constexpr size_t kBytes = size_t{64} << 14;
  write("model.safetensors",
        safetensors("{" + entry(kEmbedding, "F16", "[16384,32]", 0, kBytes) + "}", kBytes));
  auto file = open_model_file(folder_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const TensorView* embedding = file->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_TRUE(file->check().ok());
  fs::resize_file(folder_ / "model.safetensors", 5000);
  EXPECT_EQ(embedding->data[embedding->bytes - 1], std::byte{0});
  EXPECT_TRUE(file->is_damaged());
  EXPECT_EQ(file->check().code(), Code::io_error);
  EXPECT_NE(file->check().message().find("model.safetensors was truncated"),
            std::string_view::npos);
}

TEST_F(SafetensorsFolder, IsAModel) {
  write_config();
  write("blob", safetensors("{" + entry(kEmbedding, "F16", "[1,32]", 0, 64) + "," +
                                entry("odd.name", "F32", "[1]", 64, 68) + "}",
                            68));
  fs::create_symlink(folder_ / "blob", folder_ / "model.safetensors");
  write("tokenizer_config.json", R"({"chat_template":"{{ y }}"})");
  auto file = open_model_file(folder_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const TensorView* embedding = file->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->type, DType::f16);
  EXPECT_EQ(embedding->data[0], std::byte{0x11});
  EXPECT_NE(file->find("odd.name"), nullptr);
  file->drop({embedding->data, embedding->bytes});
  EXPECT_EQ(embedding->data[63], std::byte{0x11});
  EXPECT_EQ(file->chat_template(), "{{ y }}");
  const auto config = read_config(*file);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().n_vocab, 1);
  EXPECT_EQ(config.value().name, folder_.filename());
  write("chat_template.jinja", "{{ z }}");
  EXPECT_EQ(file->chat_template(), "{{ z }}");
}

TEST_F(SafetensorsFolder, KeepsToWhatItSaysOfTheOutput) {
  write("model.safetensors",
        safetensors("{" + entry(kEmbedding, "F16", "[1,32]", 0, 64) + "," +
                        entry("lm_head.weight", "F16", "[1,32]", 64, 128) + "}",
                    128));
  write_config(R"(,"tie_word_embeddings":true)");
  EXPECT_EQ(open_model_file(folder_)->find("output.weight"), nullptr);
  write_config(R"(,"tie_word_embeddings":false)");
  EXPECT_NE(open_model_file(folder_)->find("output.weight"), nullptr);
  write("model.safetensors",
        safetensors("{" + entry(kEmbedding, "F16", "[1,32]", 0, 64) + "}", 64));
  EXPECT_NE(
      read_config(*open_model_file(folder_)).status().message().find("'lm_head.weight' is missing"),
      std::string_view::npos);
}

TEST_F(SafetensorsFolder, MayBeSharded) {
  write_config();
  write("a.safetensors", safetensors("{" + entry(kEmbedding, "F16", "[1,32]", 0, 64) + "}", 64));
  write("b.safetensors",
        safetensors("{" + entry("model.norm.weight", "F16", "[32]", 0, 64) + "}", 64));
  const auto index = [&](std::string_view norm_file) {
    write("model.safetensors.index.json",
          fmt::format(R"({{"weight_map":{{"{}":"a.safetensors","model.norm.weight":"{}"}}}})",
                      kEmbedding, norm_file));
  };
  index("b.safetensors");
  auto file = open_model_file(folder_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_NE(file->find("output_norm.weight"), nullptr);
  EXPECT_EQ(file->safetensors()->n_files(), 2u);
  for (const char* bad : {"../b.safetensors", "/etc/passwd", "x/b.safetensors", "b.bin", ""}) {
    index(bad);
    EXPECT_NE(refusal().find("'model.norm.weight' is not in a .safetensors file"),
              std::string::npos)
        << bad;
  }
  index("a.safetensors");
  EXPECT_NE(refusal().find("'model.norm.weight' is not in a.safetensors"), std::string::npos);
  index("c.safetensors");
  EXPECT_NE(refusal().find("c.safetensors"), std::string::npos) << "is not there";
}

TEST_F(SafetensorsFolder, MayHoldExpertsInOneTensor) {
  write_config();
  write("model.safetensors",
        safetensors(
            "{" + entry("model.layers.2.mlp.experts.gate_up_proj", "BF16", "[3,4,2]", 0, 48) + "," +
                entry("model.layers.2.mlp.experts.down_proj", "BF16", "[3,2,2]", 48, 72) + "}",
            72));
  auto file = open_model_file(folder_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().size(), 9u);
  const TensorView* gate = file->find("blk.2.ffn_gate_exps.1.weight");
  const TensorView* up = file->find("blk.2.ffn_up_exps.1.weight");
  ASSERT_TRUE(gate != nullptr && up != nullptr);
  EXPECT_EQ(gate->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(gate->bytes, 8u);
  EXPECT_EQ(up->data - gate->data, 8);
  EXPECT_EQ(file->find("blk.2.ffn_down_exps.2.weight")->bytes, 8u);
}

TEST_F(SafetensorsFolder, SaysWhatIsMissingOrStrange) {
  EXPECT_NE(refusal().find("config.json is missing"), std::string::npos);
  write_config();
  EXPECT_NE(refusal().find("neither model.safetensors nor"), std::string::npos);
  write("model.safetensors", safetensors("{" + entry("w", "F8_E4M3", "[1]", 0, 1) + "}", 1));
  EXPECT_NE(read_config(*open_model_file(folder_)).status().message().find("tensor 'w' is F8_E4M3"),
            std::string_view::npos);
}

}  // namespace
}  // namespace millrace
