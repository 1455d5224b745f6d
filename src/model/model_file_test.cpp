#include "files/model_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "files/gguf.h"
#include "files/gguf_bytes_test.h"
#include "model/architecture.h"
#include "model/config.h"

namespace millrace {
namespace {

TEST(ModelFile, OffersAGgufFilesTensors) {
  const std::string path = fmt::format("{}/offers_{}.gguf", ::testing::TempDir(), getpid());
  GgufBytes b;
  b.begin(3, 1).string("tokenizer.chat_template", "{{ x }}");
  b.tensor("w", {64, 3}, 2, 0).tensor("strange", {4}, 99, 128).tensor("b", {4}, 0, 160).data(176);
  std::ofstream(path, std::ios::binary) << b.str();
  auto file = open_model_file(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelFile moved = std::move(file).value();
  EXPECT_EQ(moved.path(), path);
  EXPECT_EQ(moved.file_bytes(), b.str().size());
  EXPECT_EQ(moved.tensors().size(), 2u) << "those of a known type";
  EXPECT_EQ(moved.gguf()->tensors().size(), 3u);
  EXPECT_EQ(moved.chat_template(), "{{ x }}");
  const TensorView* w = moved.find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->type, DType::q4_0);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(w->bytes, 108u);
  moved.drop({w->data, w->bytes});
  EXPECT_EQ(w->data[0], std::byte{0x11});
  EXPECT_EQ(moved.find("x"), nullptr);
  EXPECT_FALSE(read_config(moved).ok());
  std::filesystem::remove(path);
}

TEST(ModelFile, SaysWhatItCannotOpen) {
  EXPECT_EQ(open_model_file(::testing::TempDir() + "/no-such.gguf").status().code(),
            Code::not_found);
  EXPECT_FALSE(open_model_file(::testing::TempDir()).ok());
}

// Outside data: the model that `millrace pull smollm2-135m` fetches.
TEST(ModelFile, ReadsSmolLm2) {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "MILLRACE_TEST_DATA is not set";
  const std::string path = std::string(data) + "/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no SmolLM2 in MILLRACE_TEST_DATA";
  auto file = open_model_file(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().size(), 272u);
  const auto config = read_config(*file);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().n_layers, 30);
  EXPECT_EQ(config.value().head_dim, 64);
  EXPECT_EQ(config.value().n_vocab, 49152);
  EXPECT_EQ(file->gguf()->find("tokenizer.ggml.tokens")->strings()[1], "<|im_start|>");
}

}  // namespace
}  // namespace millrace
