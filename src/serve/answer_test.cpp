#include "serve/answer.h"

#include <gtest/gtest.h>

namespace millrace::serve {
namespace {

using Kind = AnswerEvent::Kind;

TEST(Answer, CollectsEveryChoice) {
  Answer answer;
  answer.add({.kind = Kind::accepted, .seed = 7, .usage = {.n_prompt = 5, .n_cached = 2}});
  answer.add({.kind = Kind::reasoning, .text = "hm"});
  answer.add({.kind = Kind::text, .choice = 1, .text = "b"});
  answer.add({.kind = Kind::text, .text = "a"});
  answer.add({.kind = Kind::call_begin, .text = "look", .call_id = "call_1"});
  answer.add({.kind = Kind::call_arguments, .text = "{\"x\":"});
  answer.add({.kind = Kind::call_arguments, .text = "1}"});
  answer.add({.kind = Kind::finished, .finish = FinishReason::tool_calls});
  answer.add({.kind = Kind::done, .usage = {.n_prompt = 5, .n_cached = 2, .n_completion = 9}});
  ASSERT_EQ(answer.choices.size(), 2u);
  EXPECT_EQ(answer.choices[0].reasoning, "hm");
  EXPECT_EQ(answer.choices[0].text, "a");
  EXPECT_EQ(answer.choices[1].text, "b");
  ASSERT_EQ(answer.choices[0].calls.size(), 1u);
  EXPECT_EQ(answer.choices[0].calls[0].arguments, "{\"x\":1}");
  EXPECT_EQ(answer.choices[0].finish, FinishReason::tool_calls);
  EXPECT_EQ(answer.usage.n_completion, 9);
  EXPECT_EQ(answer.seed, 7u);
}

TEST(ApiError, WhatWouldComeAgainIsTheClientsDoing) {
  EXPECT_EQ(http_status(api_error(error(Code::invalid_argument, "x")).kind), 400);
  EXPECT_EQ(http_status(api_error(error(Code::unavailable, "x")).kind), 503);
  EXPECT_EQ(http_status(api_error(error(Code::device_lost, "x")).kind), 500);
}

}  // namespace
}  // namespace millrace::serve
