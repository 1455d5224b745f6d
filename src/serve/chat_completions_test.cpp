#include "serve/chat_completions.h"

#include "serve/dialect_test.h"
#include "serve/openai_shapes.h"

namespace millrace::serve {
namespace {

using chat_completions::parse;
using Kind = AnswerEvent::Kind;

std::string chat(std::string_view more) {
  return R"({"model":"m","messages":[{"role":"user","content":"Hi"}])" +
         (more.empty() ? std::string() : "," + std::string(more)) + "}";
}

std::string messages(std::string_view list) {
  return dumped(good(parse, R"({"messages":)" + std::string(list) + "}").chat.messages);
}

TEST(ChatCompletions, ReadsWhatTheSdkSends) {
  const auto r = good(parse, chat(R"("temperature":0.5,"top_p":0.9,"n":2,"seed":42,"stop":"END",
      "max_tokens":7,"max_completion_tokens":9,"presence_penalty":1,"frequency_penalty":-1,
      "logit_bias":{"50256":-100},"logprobs":true,"top_logprobs":3,"stream":true,
      "stream_options":{"include_usage":true},"parallel_tool_calls":false,"user":"u",
      "service_tier":"auto","store":false,"metadata":{"a":"b"},"verbosity":"low",
      "prediction":{"type":"content","content":"x"},"something_new":{"x":[1]})"));
  EXPECT_EQ(r.model, "m");
  EXPECT_FLOAT_EQ(*r.sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(*r.sampling.top_p, 0.9f);
  EXPECT_EQ(r.n, 2);
  EXPECT_EQ(*r.sampling.seed, 42u);
  EXPECT_EQ(r.stops, std::vector<std::string>{"END"});
  EXPECT_EQ(r.max_tokens, 9);
  EXPECT_FLOAT_EQ(*r.sampling.presence_penalty, 1);
  EXPECT_FLOAT_EQ(*r.sampling.frequency_penalty, -1);
  ASSERT_EQ(r.sampling.biases.size(), 1u);
  EXPECT_EQ(r.sampling.biases[0].token, 50256);
  EXPECT_TRUE(r.sampling.logprob);
  EXPECT_EQ(r.sampling.n_logprobs, 3);
  EXPECT_TRUE(r.stream && r.include_usage);
  EXPECT_FALSE(r.parallel_calls);
  EXPECT_EQ(r.session, "u");
  EXPECT_TRUE(r.warnings.empty());
}

TEST(ChatCompletions, LeavesOpenWhatWasNotSaid) {
  const auto r = good(parse, chat(R"("temperature":null,"stop":null,"tools":null,"n":null)"));
  EXPECT_FALSE(r.sampling.temperature || r.sampling.top_p || r.sampling.top_k || r.sampling.seed);
  EXPECT_EQ(r.max_tokens, -1);
  EXPECT_EQ(r.n, 1);
  EXPECT_TRUE(r.chat.tools.is_null());
  EXPECT_FALSE(r.reasoning.enabled.has_value());
}

TEST(ChatCompletions, ReadsWhatLocalServersAdded) {
  const auto r = good(parse, chat(R"("top_k":-1,"min_p":0.1,"repetition_penalty":1.1,
      "cache_salt":"s","session_id":"id","priority":-3,"ignore_eos":true,"return_progress":true,
      "chat_template_kwargs":{"enable_thinking":false,"x":1},"thinking_budget":100,
      "reasoning_effort":"low")"));
  EXPECT_EQ(*r.sampling.top_k, 0);
  EXPECT_FLOAT_EQ(*r.sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(*r.sampling.repeat_penalty, 1.1f);
  EXPECT_EQ(r.salt, "s");
  EXPECT_EQ(r.session, "id");
  EXPECT_EQ(r.priority, -3);
  EXPECT_TRUE(r.ignore_end && r.wants_progress);
  EXPECT_EQ(r.reasoning.enabled, false);
  EXPECT_EQ(r.reasoning.effort, "low");
  EXPECT_EQ(r.reasoning.budget_tokens, 100);
  EXPECT_EQ(dumped(r.chat.variables), R"({"enable_thinking":false,"x":1})");
}

TEST(ChatCompletions, ThinkingHasManyNames) {
  const auto thinks = [](std::string_view more) { return good(parse, chat(more)).reasoning; };
  EXPECT_EQ(thinks(R"("enable_thinking":true)").enabled, true);
  EXPECT_EQ(thinks(R"("thinking":{"type":"disabled"})").enabled, false);
  EXPECT_EQ(thinks(R"("thinking":{"type":"enabled","budget_tokens":64})").budget_tokens, 64);
  EXPECT_EQ(thinks(R"("reasoning_effort":"none")").enabled, false);
  EXPECT_EQ(thinks(R"("reasoning_effort":"xhigh")").effort, "high");
  EXPECT_EQ(thinks(R"("reasoning":{"effort":"medium"})").effort, "medium");
}

TEST(ChatCompletions, MessagesBecomeOneShape) {
  EXPECT_EQ(messages(R"([{"role":"developer","content":"A"},{"role":"user","content":
      [{"type":"text","text":"B"},{"type":"text","text":"C"}]},{"role":"system","content":"D"}])"),
            R"([{"role":"system","content":"A"},{"role":"user","content":"B\nC"},)"
            R"({"role":"system","content":"D"}])");
}

TEST(ChatCompletions, CallsAndResultsKeepTheirWords) {
  EXPECT_EQ(
      messages(R"([{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
      {"id":"a","type":"function","function":{"name":"f","arguments":"{\"b\": 1,  \"a\":2}"}},
      {"id":"a","type":"function","function":{"name":"g","arguments":"not json"}}]},
      {"role":"tool","tool_call_id":"nobody","content":[{"type":"text","text":"21"}]}])"),
      R"([{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[)"
      R"({"id":"a","type":"function","function":{"name":"f","arguments":"{\"b\": 1,  \"a\":2}"}},)"
      R"({"id":"a","type":"function","function":{"name":"g","arguments":"not json"}}]},)"
      R"({"role":"tool","content":"21","tool_call_id":"nobody"}])");
}

TEST(ChatCompletions, OldFunctionMessagesAreCalls) {
  EXPECT_EQ(
      messages(R"([{"role":"assistant","content":null,"function_call":
      {"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"}])"),
      R"([{"role":"assistant","content":null,"tool_calls":[{"id":"","type":"function",)"
      R"("function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"1","name":"f"}])");
}

TEST(ChatCompletions, AnImageIsAPlaceholderAndAWarning) {
  const auto r = good(parse, R"({"messages":[{"role":"user","content":[{"type":"text","text":"See"},
      {"type":"image_url","image_url":{"url":"data:image/png;base64,!!"}}]}]})");
  EXPECT_EQ(r.chat.messages[0]["content"], "See\n[image omitted]");
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_EQ(r.warnings[0],
            "messages[0].content[1] is of type image_url, which the model cannot read; the prompt "
            "says [image omitted]");
}

TEST(ChatCompletions, ToolsKeepTheirOrder) {
  const auto r = good(parse, chat(R"("tools":[{"type":"function","function":{"strict":true,
      "name":"z","parameters":{"type":"object","properties":{"b":{},"a":{}}}}},
      {"type":"web_search"},{"type":"function","function":{"name":"a"}}],
      "tool_choice":{"type":"function","function":{"name":"a"}})"));
  EXPECT_EQ(dumped(r.chat.tools),
            R"([{"type":"function","function":{"strict":true,"name":"z","parameters":)"
            R"({"type":"object","properties":{"b":{},"a":{}}}}},{"type":"function","function":)"
            R"({"name":"a","parameters":{"type":"object","properties":{}}}}])");
  EXPECT_EQ(r.tool_choice.kind, ToolChoice::Kind::named);
  EXPECT_EQ(r.tool_choice.name, "a");
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_EQ(r.warnings[0], "tools[1] is of type web_search and was left out");
}

TEST(ChatCompletions, ReadsTheFormatOfTheAnswer) {
  const auto r = good(parse, chat(R"("response_format":{"type":"json_schema","json_schema":
      {"name":"x","strict":true,"schema":{"type":"object"}}})"));
  EXPECT_EQ(r.format.kind, ResponseFormat::Kind::json_schema);
  EXPECT_TRUE(r.format.strict);
  EXPECT_EQ(dumped(r.format.schema), R"({"type":"object"})");
  EXPECT_EQ(good(parse, chat(R"("response_format":{"type":"json_object"})")).format.kind,
            ResponseFormat::Kind::json_object);
}

TEST(ChatCompletions, ContinuesTheLastMessageWhenAsked) {
  const auto body = R"({"continue_final_message":true,"messages":[{"role":"user","content":"Hi"},
      {"role":"assistant","content":"{"}]})";
  const auto r = good(parse, body);
  EXPECT_EQ(r.prefill, "{");
  EXPECT_EQ(r.chat.messages.size(), 1u);
}

TEST(ChatCompletions, HeadersNameTheSession) {
  const auto named = [](const Headers& headers) {
    return good(parse, chat(R"("user":"u","prompt_cache_key":"k")"), headers).session;
  };
  EXPECT_EQ(named({}), "k");
  EXPECT_EQ(named({{"x-session-id", "opencode"}}), "opencode");
  EXPECT_EQ(named({{"thread-id", "codex"}, {"x-session-id", "other"}}), "codex");
  EXPECT_EQ(named({{"x-claude-code-session-id", "claude"}}), "claude");
  EXPECT_EQ(good(parse, chat(""), {{"x-override-priority", "-5"}}).priority, -5);
}

TEST(ChatCompletions, SaysForHowLongItsContextIsWorthKeeping) {
  const auto ttl = [](const std::string& fields) { return good(parse, chat(fields)).ttl_s; };
  EXPECT_EQ(ttl(""), 0);
  EXPECT_EQ(ttl(R"("prompt_cache_options":{"mode":"explicit","ttl":"30m"})"), 1800);
  EXPECT_EQ(ttl(R"("prompt_cache_retention":"24h")"), 86400);
  EXPECT_EQ(ttl(R"("prompt_cache_retention":"in-memory")"), 0);
  EXPECT_EQ(ttl(R"("prompt_cache_options":{"ttl":"999999999999d"})"), 7 * 86400);
  for (const char* nonsense : {R"("soon")", R"("-5m")", R"("5")", R"("m")", R"("5m ")",
                               R"("99999999999999999999h")", "7", "1e300", "null", "[]", R"("")"})
    EXPECT_EQ(ttl(fmt::format(R"("prompt_cache_options":{{"ttl":{}}})", nonsense)), 0) << nonsense;
  EXPECT_EQ(ttl(R"("prompt_cache_options":"x")"), 0);
}

TEST(ChatCompletions, AUserIsNoConversation) {
  const auto said = [](const std::string& fields, const Headers& headers = {}) {
    return good(parse, chat(fields), headers).conversation;
  };
  EXPECT_EQ(said(R"("user":"u","safety_identifier":"s")"), "");
  EXPECT_EQ(said(R"("user":"u","prompt_cache_key":"k")"), "k");
  EXPECT_EQ(said("", {{"x-claude-code-session-id", "c"}}), "c");
  EXPECT_EQ(said("", {{"x-claude-code-session-id", "c"}, {"x-claude-code-agent-id", "a"}}), "c/a");
}

struct Bad {
  std::string body, problem;
};

TEST(ChatCompletions, SaysWhichFieldIsWrong) {
  const std::string many_stops = [] {
    std::string out = "\"stop\":[";
    for (int i = 0; i < 65; ++i) out += "\"a\",";
    return out + "\"b\"]";
  }();
  const std::vector<Bad> bad = {
      {R"({})", "messages: messages is missing"},
      {R"({"messages":[]})", "messages: messages is empty"},
      {R"({"messages":"x"})", "messages: messages is a string; it must be an array"},
      {R"({"messages":["x"]})", "messages[0]: messages[0] is a string; it must be an object"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role: messages[0].role is missing"},
      {R"({"messages":[{"role":"robot","content":"x"}]})",
       "messages[0].role: messages[0].role is 'robot'; it must be one of system, developer, user, "
       "assistant, tool, function"},
      {R"({"messages":[{"role":"user","content":7}]})",
       "messages[0].content: messages[0].content is a number; it must be a string or an array of "
       "parts"},
      {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})",
       "messages[0].content[0].type: messages[0].content[0].type is missing"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})",
       "messages[0].tool_calls[0].function: messages[0].tool_calls[0].function is missing"},
      {chat(R"("n":0)"), "n: n must be from 1 to 128"},
      {chat(R"("n":1000000000)"), "n: n must be from 1 to 128"},
      {chat(R"("n":1.5)"), "n: n is a number; it must be an integer"},
      {chat(R"("max_tokens":-1)"), "max_tokens: max_tokens must be at least 1"},
      {chat(R"("temperature":"hot")"), "temperature: temperature is a string; it must be a number"},
      {chat(R"("temperature":1e308)"), "temperature: temperature must be from 0 to 100"},
      {chat(R"("top_p":1.5)"), "top_p: top_p must be from 0 to 1"},
      {chat(R"("stream":"yes")"), "stream: stream is a string; it must be true or false"},
      {chat(many_stops), "stop: stop has 66 strings; at most 64 are taken"},
      {chat("\"stop\":\"" + std::string(1025, 'a') + "\""),
       "stop: stop has 1025 bytes; at most 1024 are taken"},
      {chat(R"("logit_bias":{"-1":1})"),
       "logit_bias: logit_bias has the key '-1', which is no token id"},
      {chat(R"("logit_bias":{"99999999999":1})"),
       "logit_bias: logit_bias has the key '99999999999', which is no token id"},
      {chat(R"("logit_bias":{"1":1000})"), "logit_bias.1: logit_bias.1 must be from -100 to 100"},
      {chat(R"("top_logprobs":2)"), "top_logprobs: top_logprobs needs logprobs to be true"},
      {chat(R"("tool_choice":"required")"),
       "tool_choice: tool_choice asks for a tool call, and there are no tools to call"},
      {chat(R"("tools":[{"type":"function","function":{"name":"a"}}],
              "tool_choice":{"type":"function","function":{"name":"b"}})"),
       "tool_choice: tool_choice names 'b', which is not among the tools"},
      {chat(R"("tools":[{"type":"function","function":{"parameters":{}}}])"),
       "tools[0].function.name: tools[0].function.name is missing"},
      {chat(R"("modalities":["text","audio"])"),
       "modalities[1]: modalities[1] is not supported by this server"},
      {chat(R"("functions":[])"),
       "functions: functions is not supported by this server; use tools"},
      {chat(R"("response_format":{"type":"json_schema"})"),
       "response_format.json_schema.schema: response_format.json_schema.schema is missing"},
      {chat(R"("reasoning_effort":"huge")"),
       "reasoning_effort: reasoning_effort is 'huge'; it must be one of none, minimal, low, "
       "medium, high, xhigh, max"},
  };
  for (const Bad& one : bad) EXPECT_EQ(problem(parse, one.body), one.problem) << one.body;
}

std::string repeated(std::string_view what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += (i == 0 ? "" : ",") + std::string(what);
  return "[" + out + "]";
}

TEST(ChatCompletions, BoundsWhatThereMayBeManyOf) {
  const std::string tool = R"({"type":"function","function":{"name":"f"}})";
  EXPECT_EQ(problem(parse, chat("\"tools\":" + repeated(tool, 10'000))),
            "tools: tools has 10000 tools; at most 4096 are taken");
  EXPECT_EQ(problem(parse, chat("\"stop\":" + repeated("\"a\"", 50'000))),
            "stop: stop has 50000 strings; at most 64 are taken");
  EXPECT_EQ(problem(parse, R"({"messages":)" + repeated("10", 100'000) + "}"),
            "messages[0]: messages[0] is a number; it must be an object");
  const auto part = R"({"type":"image_url"})";
  const auto r =
      good(parse, R"({"messages":[{"role":"user","content":)" + repeated(part, 100) + "}]}");
  EXPECT_EQ(r.warnings.size(), 16u);
}

TEST(ChatCompletions, TakesOddButHarmlessValues) {
  EXPECT_EQ(*good(parse, chat(R"("temperature":-0.0)")).sampling.temperature, 0);
  EXPECT_EQ(good(parse, chat(R"("max_tokens":1e3)")).max_tokens, 1000);
  EXPECT_EQ(good(parse, chat(R"("max_tokens":18446744073709551615)")).max_tokens, INT64_MAX);
  EXPECT_EQ(*good(parse, chat(R"("seed":9007199254740993)")).sampling.seed, 9007199254740993u);
  EXPECT_EQ(good(parse, chat(R"("stop":["",null])")).stops.size(), 0u);
  const auto nul = good(parse, R"({"messages":[{"role":"user","content":"a\u0000b"}]})");
  EXPECT_EQ(nul.chat.messages[0]["content"].get<std::string>(), std::string("a\0b", 3));
}

std::string written(const ApiRequest& request, const std::vector<AnswerEvent>& events) {
  const auto writer = chat_completions::stream(request, test_head());
  return lines_of(streamed(*writer, events),
                  {"id", "object", "created", "model", "system_fingerprint", "timings", "seed"});
}

TEST(ChatCompletions, StreamsDeltas) {
  EXPECT_EQ(
      written({.include_usage = true}, busy_answer()),
      R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"reasoning_content":"m"},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"content":"I "},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"content":"look"},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"x\"}"}}]},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"ls","arguments":""}}]},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":3}}}
[DONE]
)");
}

TEST(ChatCompletions, ItsWireIsExact) {
  const auto writer = chat_completions::stream({}, test_head());
  (void)writer->write({.kind = Kind::accepted});
  EXPECT_EQ(
      writer->write({.kind = Kind::text, .text = "a\n\"\xff"}),
      "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
      "\"model\":\"tiny\",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"delta\":"
      "{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
      "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
      "\"model\":\"tiny\",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"delta\":"
      "{\"content\":\"a\\n\\\"\xEF\xBF\xBD\"},\"finish_reason\":null}]}\n\n");
}

TEST(ChatCompletions, ChoicesDoNotMix) {
  std::vector<AnswerEvent> events = {{.kind = Kind::accepted},
                                     {.kind = Kind::text, .choice = 1, .text = "b"},
                                     {.kind = Kind::call_begin, .text = "f", .call_id = "c"},
                                     {.kind = Kind::text, .choice = 1, .text = "B"},
                                     {.kind = Kind::finished, .choice = 1},
                                     {.kind = Kind::finished, .finish = FinishReason::tool_calls},
                                     {.kind = Kind::done}};
  EXPECT_EQ(
      written({.n = 2}, events),
      R"({"choices":[{"index":1,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}
{"choices":[{"index":1,"delta":{"content":"B"},"finish_reason":null}]}
{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}
{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
[DONE]
)");
}

TEST(ChatCompletions, LogprobsRideOnTheNextChunk) {
  const TokenShown token = {.token = 5,
                            .text = "\xc3",
                            .logprob = -0.5f,
                            .most_likely = {{.token = 5, .text = "\xc3", .logprob = -0.5f}}};
  const std::vector<AnswerEvent> events = {{.kind = Kind::accepted},
                                           {.kind = Kind::tokens, .tokens = {token}},
                                           {.kind = Kind::text, .text = "x"},
                                           {.kind = Kind::finished}};
  EXPECT_EQ(
      written({.sampling = {.logprob = true}}, events),
      R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null,"logprobs":null}]}
{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null,"logprobs":{"content":[{"token":"�","logprob":-0.5,"bytes":[195],"top_logprobs":[{"token":"�","logprob":-0.5,"bytes":[195]}]}],"refusal":null}}]}
{"choices":[{"index":0,"delta":{},"finish_reason":"stop","logprobs":null}]}
)");
}

TEST(ChatCompletions, ProgressComesOnRequest) {
  const AnswerEvent event = {.kind = Kind::progress, .n_done = 4, .usage = {.n_prompt = 8}};
  EXPECT_EQ(written({}, {event}), "");
  EXPECT_EQ(
      written({.wants_progress = true}, {event}),
      R"({"choices":[{"index":0,"delta":{},"finish_reason":null}],"prompt_progress":{"total":8,"cache":0,"processed":4,"time_ms":0.0}})"
      "\n");
}

TEST(ChatCompletions, AFailureEndsTheStream) {
  const ApiError error = {.kind = ApiError::Kind::internal, .message = "the device was lost"};
  EXPECT_EQ(
      written({}, {{.kind = Kind::failed, .error = error}}),
      R"({"error":{"message":"the device was lost","type":"server_error","param":null,"code":"server_error"}})"
      "\n[DONE]\n");
}

TEST(ChatCompletions, WritesAWholeAnswer) {
  ApiRequest request;
  request.warnings = {"w"};
  Json out = chat_completions::whole(request, test_head(), collected(busy_answer()));
  out.erase("timings");
  EXPECT_EQ(
      dumped(out),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"tiny",)"
      R"("system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"I look","refusal":null,"reasoning_content":"hmm","tool_calls":[)"
      R"({"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"path\":\"x\"}"}},)"
      R"({"id":"call_b","type":"function","function":{"name":"ls","arguments":"{}"}}]},)"
      R"("logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,)"
      R"("completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":16},)"
      R"("completion_tokens_details":{"reasoning_tokens":3}},"seed":7,"warnings":["w"]})");
}

TEST(ChatCompletions, ErrorsHaveTheShapeOfOpenAi) {
  EXPECT_EQ(dumped(openai_error({.kind = ApiError::Kind::context_length, .message = "too long"})),
            R"({"error":{"message":"too long","type":"invalid_request_error","param":null,)"
            R"("code":"context_length_exceeded"}})");
  EXPECT_EQ(
      dumped(openai_error({.kind = ApiError::Kind::invalid_request, .message = "m", .param = "n"})),
      R"({"error":{"message":"m","type":"invalid_request_error","param":"n","code":null}})");
}

}  // namespace
}  // namespace millrace::serve
