#include "serve/messages.h"

#include "serve/dialect_test.h"

namespace millrace::serve {
namespace {

using messages::parse;
using Kind = AnswerEvent::Kind;

std::string request(std::string_view more) {
  return R"({"model":"m","max_tokens":10,"messages":[{"role":"user","content":"Hi"}],)" +
         std::string(more) + "}";
}

ApiRequest conversation(std::string_view list) {
  return good(parse, R"({"max_tokens":10,"messages":)" + std::string(list) + "}");
}

std::string rendered(std::string_view list) {
  return dumped(conversation(list).chat.messages);
}

TEST(Messages, ReadsWhatTheSdkSends) {
  const auto r = good(parse, request(R"("temperature":1,"top_k":5,"top_p":0.9,"stream":true,
      "stop_sequences":["A","B"],"metadata":{"user_id":"user_1_session_2"},"service_tier":"auto",
      "thinking":{"type":"enabled","budget_tokens":2048},"cache_control":{"type":"ephemeral"},
      "output_config":{"effort":"max","format":{"type":"json_schema","schema":{"type":"object"}}},
      "context_management":{"edits":[]},"inference_geo":"us")"));
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.max_tokens, 10);
  EXPECT_EQ(*r.sampling.top_k, 5);
  EXPECT_TRUE(r.stream);
  EXPECT_EQ(r.stops, (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(r.session, "user_1_session_2");
  EXPECT_EQ(r.reasoning.enabled, true);
  EXPECT_EQ(r.reasoning.budget_tokens, 2048);
  EXPECT_EQ(r.reasoning.effort, "high");
  EXPECT_EQ(r.format.kind, ResponseFormat::Kind::json_schema);
  EXPECT_TRUE(r.format.strict);
}

// The last breakpoint is the one that the whole context is before.
TEST(Messages, BreakpointsSayForHowLongAContextIsWorthKeeping) {
  const auto ttl = [](const std::string& more, const std::string& block) {
    return good(parse, R"({"max_tokens":1,)" + more +
                           R"("messages":[{"role":"user","content":[{"type":"text","text":"Hi")" +
                           block + "}]}]}")
        .ttl_s;
  };
  EXPECT_EQ(ttl("", ""), 0);
  EXPECT_EQ(ttl("", R"(,"cache_control":{"type":"ephemeral"})"), 300);
  EXPECT_EQ(ttl("", R"(,"cache_control":{"type":"ephemeral","ttl":"1h"})"), 3600);
  const auto system =
      R"("system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral","ttl":"1h"}}],)";
  EXPECT_EQ(ttl(system, ""), 3600);
  EXPECT_EQ(ttl(system, R"(,"cache_control":{"type":"ephemeral","ttl":"5m"})"), 300);
  EXPECT_EQ(ttl(R"("cache_control":{"type":"ephemeral","ttl":"1h"},)", ""), 3600);
  EXPECT_EQ(ttl(R"("cache_control":7,)", R"(,"cache_control":{"ttl":[]})"), 300);
}

// As Claude Code writes it: blocks with cache_control, and a billing line that changes each time.
TEST(Messages, SystemBlocksLoseTheBillingLine) {
  const auto system = [](std::string_view blocks) {
    const auto r = good(parse, request("\"system\":" + std::string(blocks)));
    return r.chat.messages[0]["role"] == "system" ? r.chat.messages[0]["content"].get<std::string>()
                                                  : "none";
  };
  EXPECT_EQ(
      system(R"([{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.37; cch=a1b2c;"},
      {"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"More."}])"),
      "You are Claude Code.\nMore.");
  EXPECT_EQ(system(R"("x-anthropic-billing-header: cch=1;\n\nBe brief.")"), "Be brief.");
  EXPECT_EQ(system(R"("x-anthropic-billing-header: cch=1;")"), "none");
  EXPECT_EQ(system(R"("Be brief.")"), "Be brief.");
}

TEST(Messages, BlocksBecomeCallsAndResults) {
  EXPECT_EQ(
      rendered(
          R"([{"role":"user","content":[{"type":"text","text":"Look","cache_control":{"type":"ephemeral"}}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"redacted_thinking","data":"x"},{"type":"text","text":"I look."},
        {"type":"tool_use","id":"t1","name":"read","input":{"z":"/a","a":[1,2.5,null]}},
        {"type":"tool_use","id":"t2","name":"ls","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"A"},
        {"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"B"},
          {"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}]},
        {"type":"text","text":"Go on"}]}])"),
      R"([{"role":"user","content":"Look"},{"role":"assistant","content":"I look.",)"
      R"("reasoning_content":"hm","tool_calls":[{"id":"t1","type":"function","function":)"
      R"({"name":"read","arguments":"{\"z\":\"/a\",\"a\":[1,2.5,null]}"}},{"id":"t2",)"
      R"("type":"function","function":{"name":"ls","arguments":"{}"}}]},)"
      R"({"role":"tool","content":"A","tool_call_id":"t1"},)"
      R"({"role":"tool","content":"B\n[image omitted]","tool_call_id":"t2"},)"
      R"({"role":"user","content":"Go on"}])");
}

TEST(Messages, AStringAndItsBlockAreTheSamePrompt) {
  EXPECT_EQ(rendered(R"([{"role":"user","content":"Hi"}])"),
            rendered(R"([{"role":"user","content":[{"type":"text","text":"Hi"}]}])"));
}

TEST(Messages, SystemMessagesStayWhereTheyAre) {
  EXPECT_EQ(rendered(R"([{"role":"user","content":"A"},{"role":"system","content":"B"},
      {"role":"user","content":"C"}])"),
            R"([{"role":"user","content":"A"},{"role":"system","content":"B"},)"
            R"({"role":"user","content":"C"}])");
}

TEST(Messages, DocumentsWithTextAreRead) {
  const auto r = conversation(R"([{"role":"user","content":[
      {"type":"document","source":{"type":"text","media_type":"text/plain","data":"T"}},
      {"type":"document","source":{"type":"content","content":[{"type":"text","text":"U"}]}},
      {"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}},
      {"type":"search_result","title":"t","source":"s","content":[{"type":"text","text":"V"}]}]}])");
  EXPECT_EQ(r.chat.messages[0]["content"], "T\nU\n[document omitted]\nV");
  EXPECT_EQ(r.warnings.size(), 1u);
}

TEST(Messages, ALastAssistantMessageIsContinued) {
  const auto r =
      conversation(R"([{"role":"user","content":"A"},{"role":"assistant","content":"{"}])");
  EXPECT_EQ(r.prefill, "{");
  EXPECT_EQ(r.chat.messages.size(), 1u);
  const auto called = conversation(R"([{"role":"user","content":"A"},{"role":"assistant","content":
      [{"type":"tool_use","id":"t","name":"f","input":{}}]}])");
  EXPECT_EQ(called.prefill, "");
  EXPECT_EQ(called.chat.messages.size(), 2u);
}

TEST(Messages, ToolsBecomeFunctions) {
  const auto r = good(parse, request(R"("tools":[{"name":"z","description":"d","input_schema":
      {"type":"object","properties":{"b":{},"a":{}}},"cache_control":{"type":"ephemeral"}},
      {"type":"web_search_20250305","name":"web_search"},
      {"type":"custom","name":"a","input_schema":{"type":"object"},"strict":true}],
      "tool_choice":{"type":"tool","name":"a","disable_parallel_tool_use":true})"));
  EXPECT_EQ(dumped(r.chat.tools),
            R"([{"type":"function","function":{"name":"z","description":"d","parameters":)"
            R"({"type":"object","properties":{"b":{},"a":{}}}}},{"type":"function","function":)"
            R"({"name":"a","parameters":{"type":"object"},"strict":true}}])");
  EXPECT_EQ(r.tool_choice.kind, ToolChoice::Kind::named);
  EXPECT_FALSE(r.parallel_calls);
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_EQ(r.warnings[0], "tools[1] is of type web_search_20250305 and was left out");
}

TEST(Messages, SaysWhichFieldIsWrong) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({"messages":[{"role":"user","content":"x"}]})", "max_tokens: max_tokens is missing"},
      {R"({"max_tokens":0,"messages":[{"role":"user","content":"x"}]})",
       "max_tokens: max_tokens must be at least 1"},
      {R"({"max_tokens":1,"messages":[]})", "messages: messages is empty"},
      {R"({"max_tokens":1,"messages":[{"role":"user"}]})",
       "messages[0].content: messages[0].content is missing"},
      {R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result"}]}]})",
       "messages[0].content[0].tool_use_id: messages[0].content[0].tool_use_id is missing"},
      {R"({"max_tokens":1,"messages":[{"role":"assistant","content":[7]}]})",
       "messages[0].content[0]: messages[0].content[0] is a number; it must be an object"},
      {R"({"max_tokens":1,"messages":[{"role":"tool","content":"x"}]})",
       "messages[0].role: messages[0].role is 'tool'; it must be one of user, assistant, system"},
      {request(R"("tool_choice":{"type":"any"})"),
       "tool_choice: tool_choice asks for a tool call, and there are no tools to call"},
      {request(R"("mcp_servers":[{"url":"x"}])"),
       "mcp_servers: mcp_servers is not supported by this server; send their tools in tools"},
      {request(R"("thinking":{"type":"often"})"),
       "thinking.type: thinking.type is 'often'; it must be one of enabled, disabled, adaptive, "
       "auto"},
  };
  for (const auto& [body, wanted] : bad) EXPECT_EQ(problem(parse, body), wanted) << body;
}

TEST(Messages, CountsWithoutMaxTokens) {
  const auto body = R"({"model":"m","system":"S","messages":[{"role":"user","content":"x"}]})";
  EXPECT_EQ(good(messages::parse_count_tokens, body).chat.messages.size(), 2u);
  EXPECT_EQ(dumped(messages::count_tokens(9)), R"({"input_tokens":9})");
}

std::string written(const ApiRequest& request, const std::vector<AnswerEvent>& events) {
  const auto writer = messages::stream(request, test_head());
  return lines_of(streamed(*writer, events), {"timings"});
}

TEST(Messages, StreamsOneBlockAtATime) {
  EXPECT_EQ(
      written({}, busy_answer()),
      R"(message_start {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"tiny","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":16,"output_tokens":0},"system_fingerprint":"fp"}}
content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"bWlsbHJhY2U="}}
content_block_stop {"type":"content_block_stop","index":0}
content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I "}}
content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"look"}}
content_block_stop {"type":"content_block_stop","index":1}
content_block_start {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_a","name":"read","input":{}}}
content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}
content_block_delta {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}
content_block_stop {"type":"content_block_stop","index":2}
content_block_start {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"call_b","name":"ls","input":{}}}
content_block_delta {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}
content_block_stop {"type":"content_block_stop","index":3}
message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":16,"output_tokens":9},"seed":7}
message_stop {"type":"message_stop"}
)");
}

TEST(Messages, AnEmptyAnswerHasABlock) {
  const std::vector<AnswerEvent> events = {{.kind = Kind::finished}, {.kind = Kind::done}};
  EXPECT_TRUE(
      written({}, events)
          .starts_with(
              R"(content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
content_block_stop {"type":"content_block_stop","index":0}
)"));
  EXPECT_EQ(dumped(messages::whole({}, test_head(), collected(events))["content"]),
            R"([{"type":"text","text":""}])");
}

TEST(Messages, SaysWhichStopSequenceItMet) {
  const AnswerEvent stopped = {
      .kind = Kind::finished, .finish = FinishReason::stop_string, .stop_string = "END"};
  const auto lines = written({}, {stopped, {.kind = Kind::done}});
  EXPECT_NE(lines.find(R"("delta":{"stop_reason":"stop_sequence","stop_sequence":"END"})"),
            std::string::npos)
      << lines;
}

TEST(Messages, ProgressIsAPing) {
  const AnswerEvent event = {.kind = Kind::progress, .n_done = 4, .usage = {.n_prompt = 8}};
  EXPECT_EQ(written({}, {event}), "");
  EXPECT_EQ(
      written({.wants_progress = true}, {event}),
      R"(ping {"type":"ping","prompt_progress":{"total":8,"cache":0,"processed":4,"time_ms":0.0}})"
      "\n");
}

TEST(Messages, ErrorsHaveTheShapeOfAnthropic) {
  const ApiError error = {.kind = ApiError::Kind::overloaded, .message = "busy"};
  const auto writer = messages::stream({}, test_head());
  EXPECT_EQ(writer->write({.kind = Kind::failed, .error = error}),
            "event: error\ndata: "
            R"({"type":"error","error":{"type":"overloaded_error","message":"busy"}})"
            "\n\n");
  EXPECT_EQ(dumped(messages::error({.kind = ApiError::Kind::context_length, .message = "9 > 8"})),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"prompt is too long: 9 > 8"}})");
}

TEST(Messages, WritesAWholeAnswer) {
  Json out = messages::whole({}, test_head(), collected(busy_answer()));
  out.erase("timings");
  EXPECT_EQ(dumped(out),
            R"({"id":"msg_1","type":"message","role":"assistant","model":"tiny","content":[)"
            R"({"type":"thinking","thinking":"hmm","signature":"bWlsbHJhY2U="},)"
            R"({"type":"text","text":"I look"},)"
            R"({"type":"tool_use","id":"call_a","name":"read","input":{"path":"x"}},)"
            R"({"type":"tool_use","id":"call_b","name":"ls","input":{}}],)"
            R"("stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":4,)"
            R"("cache_creation_input_tokens":0,"cache_read_input_tokens":16,"output_tokens":9},)"
            R"("system_fingerprint":"fp","seed":7})");
}

TEST(Messages, ArgumentsThatAreNoObjectStayReadable) {
  Answer answer;
  answer.add({.kind = Kind::call_begin, .text = "f", .call_id = "c"});
  answer.add({.kind = Kind::call_arguments, .text = "{broken"});
  EXPECT_EQ(dumped(messages::whole({}, test_head(), answer)["content"][0]["input"]),
            R"({"arguments":"{broken"})");
}

}  // namespace
}  // namespace millrace::serve
