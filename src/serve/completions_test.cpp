#include "serve/completions.h"

#include "serve/dialect_test.h"

namespace millrace::serve {
namespace {

using completions::parse;
using Kind = AnswerEvent::Kind;
using Tokens = std::vector<int32_t>;

TEST(Completions, ReadsPromptsOfEveryKind) {
  const auto prompts = [](std::string_view prompt) {
    return good(parse, R"({"prompt":)" + std::string(prompt) + "}").prompts;
  };
  EXPECT_EQ(prompts(R"("Hi")"), std::vector<Prompt>{std::string("Hi")});
  EXPECT_EQ(prompts("[1,2]"), (std::vector<Prompt>{Tokens{1, 2}}));
  EXPECT_EQ(prompts(R"(["a","b"])"), (std::vector<Prompt>{std::string("a"), std::string("b")}));
  EXPECT_EQ(prompts("[[1],[2,3]]"), (std::vector<Prompt>{Tokens{1}, Tokens{2, 3}}));
}

TEST(Completions, ReadsTheRest) {
  const auto r =
      good(parse, R"({"model":"m","prompt":"x","n":2,"best_of":2,"echo":true,"stop":["a"],
      "max_tokens":5,"suffix":null,"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_EQ(r.n, 2);
  EXPECT_EQ(r.max_tokens, 5);
  EXPECT_TRUE(r.echo && r.stream && r.include_usage);
  EXPECT_FALSE(r.sampling.logprob);
  EXPECT_EQ(good(parse, R"({"prompt":"x"})").max_tokens, 16);
  EXPECT_TRUE(good(parse, R"({"prompt":"x","logprobs":0})").sampling.logprob);
}

TEST(Completions, SaysWhichFieldIsWrong) {
  std::string many = R"({"n":2,"prompt":[)";
  for (int i = 0; i < 64; ++i) many += "\"x\",";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({})", "prompt: prompt is missing"},
      {R"({"prompt":[]})", "prompt: prompt is empty"},
      {R"({"prompt":{}})", "prompt: prompt is an object; it must be a string"},
      {R"({"prompt":[1,-2]})", "prompt[1]: prompt[1] must be from 0 to 2147483647"},
      {R"({"prompt":[1,"a"]})", "prompt[1]: prompt[1] is a string; it must be an integer"},
      {many + R"("x"]})",
       "prompt: prompt has 65 texts with 2 choices each; at most 128 choices are taken"},
      {R"({"prompt":"x","suffix":"y"})", "suffix: suffix is not supported by this server"},
      {R"({"prompt":"x","best_of":3})", "best_of: best_of is not supported by this server; use n"},
      {R"({"prompt":"x","echo":true,"logprobs":1})",
       "logprobs: logprobs is not supported by this server; with echo, which would need those of "
       "the prompt"},
  };
  for (const auto& [body, wanted] : bad) EXPECT_EQ(problem(parse, body), wanted) << body;
}

std::string written(const ApiRequest& request, const std::vector<AnswerEvent>& events) {
  const auto writer = completions::stream(request, test_head());
  return lines_of(streamed(*writer, events), {"id", "object", "created", "model", "timings"});
}

TEST(Completions, StreamsText) {
  EXPECT_EQ(
      written({.include_usage = true}, short_answer("Hi", FinishReason::length)),
      R"({"system_fingerprint":"fp","choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":null}]}
{"system_fingerprint":"fp","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"seed":7}
{"system_fingerprint":"fp","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}
[DONE]
)");
}

TEST(Completions, LogprobsCountCharacters) {
  const TokenShown first = {.text = "é", .logprob = -1, .most_likely = {{.text = "e"}}};
  const TokenShown second = {.text = "x", .logprob = -2};
  const std::vector<AnswerEvent> events = {{.kind = Kind::tokens, .tokens = {first}},
                                           {.kind = Kind::text, .text = "é"},
                                           {.kind = Kind::tokens, .tokens = {second}},
                                           {.kind = Kind::text, .text = "x"}};
  const ApiRequest request = {.sampling = {.logprob = true}};
  EXPECT_EQ(
      written(request, events),
      R"({"system_fingerprint":"fp","choices":[{"index":0,"text":"é","logprobs":{"tokens":["é"],"token_logprobs":[-1.0],"top_logprobs":[{"e":0.0}],"text_offset":[0]},"finish_reason":null}]}
{"system_fingerprint":"fp","choices":[{"index":0,"text":"x","logprobs":{"tokens":["x"],"token_logprobs":[-2.0],"top_logprobs":[{}],"text_offset":[1]},"finish_reason":null}]}
)");
  Json out = completions::whole(request, test_head(), collected(events));
  EXPECT_EQ(dumped(out["choices"][0]["logprobs"]["text_offset"]), "[0,1]");
}

TEST(Completions, WritesAWholeAnswer) {
  Json out = completions::whole({}, test_head(), collected(short_answer()));
  out.erase("timings");
  EXPECT_EQ(dumped(out),
            R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"tiny",)"
            R"("system_fingerprint":"fp","choices":[{"index":0,"text":"Hi","logprobs":null,)"
            R"("finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,)"
            R"("total_tokens":7,"prompt_tokens_details":{"cached_tokens":0},)"
            R"("completion_tokens_details":{"reasoning_tokens":0}},"seed":7})");
}

}  // namespace
}  // namespace millrace::serve
