// A step allocates nothing, whether its number of rows is new or not, and whether it takes pages.
// Only where a remembered context fills a page, once in 64 tokens, the tree grows by a node.
#include <gtest/gtest.h>

#include "engine/fixture_test.h"
#include "machine/count_allocations_test.h"

namespace millrace {
namespace {

class Allocations : public testing::TestWithParam<std::string> {};

TEST_P(Allocations, a_step_makes_none) {
  const MadeFile file(GetParam(), "q4_0");
  auto loaded = load(file.path(), 2, {.n_ctx = 512, .max_seqs = 2, .max_rows = 200});
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> tokens(200, 7);
  const int a = engine.open().value(), b = engine.open().value();
  const auto step = [&](size_t n) {
    const Work batch[] = {{.seq = a, .tokens = std::span(tokens).first(n)},
                          {.seq = b, .tokens = std::span(tokens).first(1)}};
    const int64_t before = n_allocations();
    const bool ok = engine.step(batch).ok();
    const int64_t made = n_allocations() - before;
    EXPECT_TRUE(ok);
    EXPECT_EQ(made, 0) << n + 1 << " rows after " << engine.tokens(a).size() - n;
  };
  step(1);  // some of the C++ library may set itself up in the first
  for (int i = 0; i < 70; ++i) step(1);
  for (const size_t n : {2, 40, 1, 3, 199, 17, 1}) step(n);
}

TEST_P(Allocations, a_remembered_context_makes_some_only_where_a_page_is_full) {
  const MadeFile file(GetParam(), "q4_0");
  auto loaded = load(file.path(), 2, {.n_ctx = 512, .max_seqs = 1, .max_rows = 64});
  ASSERT_NE(loaded, nullptr);
  Engine& engine = *loaded->engine;
  const std::vector<int32_t> tokens(200, 7);
  const int seq = engine.open(tokens, "").value();
  ASSERT_TRUE(engine.step({.seq = seq, .tokens = std::span(tokens).first(3)}).ok());
  for (int i = 0; i < 150; ++i) {
    const Work batch[] = {{.seq = seq, .tokens = std::span(tokens).first(1)}};
    const int64_t before = n_allocations();
    const bool ok = engine.step(batch).ok();
    const int64_t made = n_allocations() - before;
    ASSERT_TRUE(ok);
    const bool fills_a_page = engine.tokens(seq).size() % kPageTokens == 0;
    EXPECT_LE(made, fills_a_page ? 8 : 0) << engine.tokens(seq).size();
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, Allocations,
                         testing::Values("tiny-llama", "tiny-qwen3moe", "tiny-gemma3"),
                         [](const auto& info) {
                           return info.param.substr(info.param.find('-') + 1);
                         });

// The workspace is made for some numbers of rows and must do for all of them.
TEST(Allocations, every_number_of_rows_has_its_workspace) {
  const MadeFile file("tiny-qwen3moe", "q4_k_m");
  auto loaded = load(file.path(), 2, {.n_ctx = 512, .max_rows = 300});
  ASSERT_NE(loaded, nullptr);
  StepProgram& program = loaded->engine->network().program();
  for (int64_t n = 1; n <= 300; ++n)
    for (const int64_t n_outputs : {int64_t{0}, int64_t{1}, std::min<int64_t>(n, 16)})
      EXPECT_TRUE(program.bound_for(n, n_outputs).ok()) << n << " rows, " << n_outputs;
}

}  // namespace
}  // namespace millrace
