// What compiling and masking cost, printed; run by hand on a quiet machine, with
// MILLRACE_TEST_DATA:
//   millrace_text_test --gtest_also_run_disabled_tests --gtest_filter='GrammarBench.*'
// The vocabulary is GPT-2's 50,000 tokens and, up to 151,000, pairs of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/philox.h"
#include "files/gguf.h"
#include "text/grammar/matcher.h"
#include "text/grammar/tool_schemas_test.h"
#include "text/template/json.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace::grammar {
namespace {

// This thread's own time: other work on the machine does not count.
int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

double us_since(int64_t start) {
  return static_cast<double>(now_ns() - start) * 1e-3;
}

std::vector<std::string> large_vocabulary(const Tokenizer& tokenizer, size_t n) {
  std::vector<std::string> pieces;
  std::set<std::string> known;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    pieces.emplace_back(tokenizer.is_control(id) || tokenizer.is_eog(id) ? ""
                                                                         : tokenizer.piece(id));
    known.insert(pieces.back());
  }
  Rng rng(1);
  const size_t n_real = pieces.size();
  while (pieces.size() < n) {
    std::string pair = pieces[rng.below(n_real)] + pieces[rng.below(n_real)];
    if (pair.size() <= 16 && known.insert(pair).second) pieces.push_back(std::move(pair));
  }
  pieces.emplace_back();
  return pieces;
}

struct Times {
  std::vector<double> us;
  void print(std::string_view what) {
    std::sort(us.begin(), us.end());
    const auto at = [&](double share) { return us[static_cast<size_t>(share * (us.size() - 1))]; };
    fmt::print("{:24} n {:6}  median {:8.1f} us  p99 {:8.1f} us  worst {:8.1f} us\n", what,
               us.size(), at(0.5), at(0.99), us.back());
  }
};

// Random walks through the masks; text is made longer than a random walk would make it.
void walk(const TokenGrammar& grammar, const TokenTrie& trie, Times& times, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint32_t> bits((static_cast<size_t>(trie.n_tokens()) + 31) / 32);
  Matcher matcher(grammar);
  for (int i = 0; i < 300 && !matcher.ended(); ++i) {
    const int64_t start = now_ns();
    matcher.mask(bits);
    times.us.push_back(us_since(start));
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < trie.n_tokens(); ++id)
      if ((bits[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
    ASSERT_FALSE(allowed.empty());
    ASSERT_TRUE(matcher.accept(allowed[rng.below(allowed.size())]).ok());
  }
}

Grammar tools_grammar() {
  Builder b;
  std::vector<Piece> calls;
  for (const auto& [name, schema] : test::tool_schemas()) {
    auto arguments = b.schema_text(schema);
    EXPECT_TRUE(arguments.ok()) << name << arguments.status().message();
    for (const auto& warning : b.warnings()) fmt::print("{}: {}\n", name, warning);
    calls.push_back(
        b.sequence({b.marker("<tool_call>"),
                    b.literal(fmt::format("\n{{\"name\": \"{}\", \"arguments\": ", name)),
                    *arguments, b.literal("}\n</tool_call>")}));
  }
  auto grammar = b.finish(b.alternatives(calls));
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  return std::move(*grammar);
}

TEST(GrammarBench, DISABLED_Masks) {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "MILLRACE_TEST_DATA is not set: no outside vocabularies";
  const auto file = Gguf::open(std::string(data) + "/tokenizers/ggml-vocab-gpt-2.gguf");
  ASSERT_TRUE(file.ok());
  auto vocab = vocab_from_gguf(file.value());
  ASSERT_TRUE(vocab.ok());
  const auto tokenizer = Tokenizer::make(std::move(*vocab));
  const auto pieces = large_vocabulary(tokenizer.value(), 151'000);
  int64_t start = now_ns();
  const Vocabulary vocabulary(TokenTrie(pieces, {static_cast<int32_t>(pieces.size()) - 1}, {}));
  fmt::print("vocabulary of {} tokens, {} nodes: {:.1f} ms\n", pieces.size(),
             vocabulary.trie.n_nodes(), us_since(start) * 1e-3);
  start = now_ns();
  Grammar tools = tools_grammar();
  fmt::print("{} tools compiled: {:.1f} ms\n", test::tool_schemas().size(), us_since(start) * 1e-3);

  const TokenGrammar grammar(std::move(tools), vocabulary);
  Times cold, warm;
  for (uint64_t seed = 0; seed < 40; ++seed) walk(grammar, vocabulary.trie, cold, seed);
  for (uint64_t seed = 0; seed < 40; ++seed) walk(grammar, vocabulary.trie, warm, seed);
  cold.print("tools, first time");
  warm.print("tools, again");

  Builder b;
  const std::vector<std::string> stops = {"<tool_call>"};
  auto text = b.text_without(stops);
  auto free =
      b.finish(b.sequence({*text, b.optional(b.sequence({b.marker("<tool_call>"), b.json()}))}));
  const TokenGrammar free_grammar(std::move(*free), vocabulary);
  Times free_cold, free_warm;
  walk(free_grammar, vocabulary.trie, free_cold, 1);
  for (uint64_t seed = 0; seed < 10; ++seed) walk(free_grammar, vocabulary.trie, free_warm, seed);
  free_cold.print("free text, first time");
  free_warm.print("free text, again");
}

TEST(GrammarBench, DISABLED_Hostile) {
  for (const auto& [name, schema] : test::hostile_schemas()) {
    int64_t start = now_ns();
    const auto json = jinja::parse_ordered_json(schema);
    const double parsed_us = us_since(start);
    if (!json) continue;
    start = now_ns();
    Builder b;
    auto piece = b.schema(*json);
    const Status status = piece.ok() ? b.finish(*piece).status() : piece.status();
    fmt::print("{:28} JSON {:6.1f} ms, schema {:6.1f} ms  {} {}\n", name, parsed_us * 1e-3,
               us_since(start) * 1e-3, status.message().substr(0, 90),
               b.warnings().empty() ? "" : b.warnings()[0]);
  }
}

}  // namespace
}  // namespace millrace::grammar
