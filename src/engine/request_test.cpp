// Requests driven from outside: what each gives depends on itself alone, however they are mixed.
#include "engine/request.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/philox.h"
#include "engine/fixture_test.h"
#include "engine/language_model.h"

namespace millrace {
namespace {

struct Talk {
  std::unique_ptr<Loaded> loaded;
  std::unique_ptr<LanguageModel> model;

  static Talk with(int n_lanes, const EngineOptions& options) {
    Talk out;
    out.loaded = load(tiny_model(), n_lanes, options);
    if (out.loaded == nullptr) return out;
    auto model =
        LanguageModel::make(*out.loaded->engine, *out.loaded->team, out.loaded->pick_from());
    EXPECT_TRUE(model.ok()) << model.status().message();
    out.model = std::make_unique<LanguageModel>(std::move(model).value());
    return out;
  }
};

struct Said {
  std::string text;
  std::vector<int32_t> tokens;
  bool operator==(const Said&) const = default;
};

OnToken into(Said& said) {
  return [&said](const TokenEvent& event) {
    said.text += event.text;
    if (event.token != nullptr) said.tokens.push_back(event.token->token);
  };
}

std::vector<int32_t> tokens_of(const LanguageModel& model, const std::string& text) {
  return model.tokenizer().encode(text, true).value();
}

Generation how(uint64_t seed, int64_t n) {
  Generation out;
  out.sampling.seed = seed;
  out.sampling.repeat_penalty = seed % 2 == 0 ? 1.1f : 1.0f;
  out.max_tokens = n;
  return out;
}

Said alone(Talk& talk, const std::string& prompt, uint64_t seed) {
  Said said;
  const std::atomic<bool> never = false;
  const int seq = talk.model->engine().open().value();
  const auto result =
      talk.model->generate(seq, tokens_of(*talk.model, prompt), how(seed, 20), into(said), never);
  EXPECT_TRUE(result.ok()) << result.status().message();
  talk.model->engine().close(seq);
  return said;
}

const std::vector<std::string> kPrompts = {"Once upon a time there was a little fox",
                                           "Tell me a story about the sea.", "The", "One day"};

TEST(RequestThreads, each_depends_on_itself_alone) {
  Talk one = Talk::with(1, {.n_ctx = 128});
  ASSERT_NE(one.model, nullptr);
  std::vector<Said> expected;
  for (size_t i = 0; i < kPrompts.size(); ++i) expected.push_back(alone(one, kPrompts[i], i));
  Talk many = Talk::with(2, {.n_ctx = 128, .max_seqs = 4, .max_rows = 8});
  std::vector<Said> said(kPrompts.size());
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<Request*> all;
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    const int seq = many.model->engine().open().value();
    auto request =
        many.model->request(seq, tokens_of(*many.model, kPrompts[i]), how(i, 20), into(said[i]));
    ASSERT_TRUE(request.ok()) << request.status().message();
    requests.push_back(std::move(request).value());
    all.push_back(requests.back().get());
    // Each joins while those before it are under way.
    ASSERT_TRUE(many.model->advance(all, [](Request&, const Status&) { FAIL(); }).ok());
  }
  const auto is_running = [](const Request* r) { return !r->is_finished(); };
  while (std::any_of(all.begin(), all.end(), is_running))
    ASSERT_TRUE(many.model->advance(all, [](Request&, const Status&) { FAIL(); }).ok());
  EXPECT_EQ(said, expected);
}

TEST(Request, ends_for_the_reason_it_says) {
  Talk talk = Talk::with(1, {.n_ctx = 64, .max_seqs = 2});
  ASSERT_NE(talk.model, nullptr);
  const std::atomic<bool> never = false, at_once = true;
  const std::vector<int32_t> prompt = tokens_of(*talk.model, "Once upon a time");
  const int seq = talk.model->engine().open().value();
  const auto run = [&](const Generation& g, const std::atomic<bool>& cancel) {
    Said said;
    return talk.model->generate(seq, prompt, g, into(said), cancel).value();
  };
  Generation endless = how(1, -1);
  endless.ignore_end = true;
  const Generated full = run(endless, never);
  EXPECT_EQ(full.finish, Finish::length);
  EXPECT_EQ(full.n_prompt + full.n_tokens, 64);
  EXPECT_EQ(run(how(1, 3), never).n_tokens, 3);
  EXPECT_EQ(run(how(1, 3), at_once).finish, Finish::cancelled);
  Generation stopped = endless;
  stopped.stops = {" "};
  EXPECT_EQ(run(stopped, never).finish, Finish::stop_string);
}

TEST(Request, keeps_what_the_sequence_shares_with_the_prompt) {
  Talk talk = Talk::with(1, {.n_ctx = 64});
  ASSERT_NE(talk.model, nullptr);
  const std::atomic<bool> never = false;
  const int seq = talk.model->engine().open().value();
  Said said;
  const std::vector<int32_t> prompt = tokens_of(*talk.model, "Once upon a time there was");
  const auto first = talk.model->generate(seq, prompt, how(1, 4), into(said), never).value();
  EXPECT_EQ(first.n_cached, 0);
  std::vector<int32_t> longer = prompt;
  longer.insert(longer.end(), said.tokens.begin(), said.tokens.end());
  const auto second = talk.model->generate(seq, longer, how(1, 4), into(said), never).value();
  EXPECT_EQ(second.n_cached, std::ssize(longer) - 1);
}

TEST(Request, refuses_a_prompt_that_does_not_fit) {
  Talk talk = Talk::with(1, {.n_ctx = 8});
  ASSERT_NE(talk.model, nullptr);
  const int seq = talk.model->engine().open().value();
  const auto ignore = [](const TokenEvent&) {};
  EXPECT_FALSE(talk.model->request(seq, {}, how(1, 1), ignore).ok());
  EXPECT_FALSE(talk.model->request(seq, std::vector<int32_t>(9, 5), how(1, 1), ignore).ok());
  EXPECT_FALSE(talk.model->request(seq, {-1}, how(1, 1), ignore).ok());
  Generation bad = how(1, 1);
  bad.sampling.top_p = -1;
  EXPECT_FALSE(talk.model->request(seq, {5}, bad, ignore).ok());
}

}  // namespace
}  // namespace millrace
