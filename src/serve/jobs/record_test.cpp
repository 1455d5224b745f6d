#include "serve/jobs/record.h"

#include <gtest/gtest.h>

namespace millrace::serve {
namespace {

TEST(JobRecord, TermsComeBackBitForBit) {
  JobTerms terms{.in_reasoning = true, .dictated = {1, 2}, .model = "m"};
  Sampling& s = terms.how.sampling;
  s.temperature = 0.1f;
  s.top_p = 0.9f + 1e-7f;
  s.seed = UINT64_MAX;
  s.biases = {{5, -1.5f}};
  terms.how.max_tokens = 30000;
  terms.how.stops = {"\n\n", "END"};
  auto read = read_terms(text_of(terms));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->how.sampling.temperature, s.temperature);
  EXPECT_EQ(read->how.sampling.top_p, s.top_p);
  EXPECT_EQ(read->how.sampling.seed, s.seed);
  EXPECT_EQ(read->how.sampling.biases[0].value, -1.5f);
  EXPECT_EQ(read->how.max_tokens, 30000);
  EXPECT_EQ(read->how.stops, terms.how.stops);
  EXPECT_TRUE(read->in_reasoning);
  EXPECT_EQ(read->dictated, terms.dictated);
  std::string real = text_of(terms);
  real.replace(real.find("30000"), 5, "1e300");  // which is no count of tokens
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), real, std::string(R"({"sampling":7})"),
        std::string(R"({"sampling":{"seed":"x"}})")})
    EXPECT_EQ(read_terms(bad).status().code(), Code::corrupt) << bad;
}

TEST(JobRecord, SaysWhatDiffers) {
  const std::string was = R"({"model":"a","model_hash":"1","numerics":"n","kv_root":"k",)"
                          R"("vocabulary":"v","context":100})";
  EXPECT_TRUE(differences(was, was).empty());
  const std::string longer = R"({"model":"b","model_hash":"1","numerics":"n","kv_root":"k",)"
                             R"("vocabulary":"v","context":200})";
  EXPECT_TRUE(differences(was, longer).empty());  // a name changes nothing
  EXPECT_EQ(differences(longer, was).size(), 1u);
  const std::string other = R"({"model":"b","model_hash":"2","numerics":"m","kv_root":"l",)"
                            R"("vocabulary":"w","context":100})";
  EXPECT_EQ(differences(was, other).size(), 2u);
  EXPECT_FALSE(same_vocabulary(was, other));
  EXPECT_TRUE(same_vocabulary(was, longer));
  EXPECT_FALSE(differences("garbage", was).empty());
  const std::string foreign = R"({"model":7,"model_hash":[],"numerics":{},"kv_root":null,)"
                              R"("vocabulary":1,"context":"x"})";
  EXPECT_FALSE(differences(foreign, was).empty());
  EXPECT_FALSE(differences(was, foreign).empty());
  EXPECT_FALSE(same_vocabulary(foreign, was));
  EXPECT_FALSE(same_vocabulary("garbage", "garbage"));
}

TEST(JobRecord, AnEndComesBack) {
  JobEnd end{.finish = Finish::stop_string, .stop_string = "END", .tokens_s = 1.5};
  const JobEnd read = read_end(text_of(end));
  EXPECT_EQ(read.finish, Finish::stop_string);
  EXPECT_EQ(read.stop_string, "END");
  EXPECT_TRUE(read.error.ok());
  end.error = {.kind = ApiError::Kind::context_length, .message = "too long"};
  EXPECT_EQ(read_end(text_of(end)).error.kind, ApiError::Kind::context_length);
  EXPECT_EQ(read_end("garbage").finish, Finish::cancelled);
}

TEST(JobRecord, KnowsThreeApis) {
  for (const char* api : {"chat_completions", "responses", "messages"})
    EXPECT_NE(job_dialect(api), nullptr) << api;
  EXPECT_EQ(job_dialect("completions"), nullptr);
  EXPECT_EQ(job_dialect(""), nullptr);
}

}  // namespace
}  // namespace millrace::serve
