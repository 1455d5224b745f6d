#include "serve/responses.h"

#include "serve/dialect_test.h"

namespace millrace::serve {
namespace {

using Kind = AnswerEvent::Kind;
using responses::parse;

std::string request(std::string_view more) {
  return R"({"model":"m","input":"Hi",)" + std::string(more) + "}";
}

ApiRequest with_items(std::string_view items) {
  return good(parse, R"({"input":)" + std::string(items) + "}");
}

std::string rendered(std::string_view items) {
  return dumped(with_items(items).chat.messages);
}

// Written after Codex's public request type.
TEST(Responses, ReadsWhatCodexSends) {
  const auto r = good(parse, R"({"model":"m","instructions":"Be Codex.","input":[
      {"type":"message","role":"developer","content":[{"type":"input_text","text":"D"}]},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"U"}]}],
      "tools":[{"type":"function","name":"shell","description":"d","strict":false,
                "parameters":{"type":"object","properties":{"command":{"type":"array"}}}},
               {"type":"local_shell"},{"type":"web_search","external_web_access":false}],
      "tool_choice":"auto","parallel_tool_calls":false,"store":false,"stream":true,
      "reasoning":{"effort":"medium","summary":"auto"},"include":["reasoning.encrypted_content"],
      "prompt_cache_key":"thread","text":{"verbosity":"low"},"client_metadata":{"x":"y"}})",
                      {{"x-client-request-id", "1"}});
  EXPECT_EQ(dumped(r.chat.messages),
            R"([{"role":"system","content":"Be Codex."},{"role":"system","content":"D"},)"
            R"({"role":"user","content":"U"}])");
  EXPECT_EQ(dumped(r.chat.tools),
            R"([{"type":"function","function":{"name":"shell","description":"d","parameters":)"
            R"({"type":"object","properties":{"command":{"type":"array"}}}}}])");
  EXPECT_EQ(r.session, "thread");
  EXPECT_EQ(r.reasoning.effort, "medium");
  EXPECT_TRUE(r.stream);
  EXPECT_FALSE(r.parallel_calls);
  EXPECT_EQ(r.warnings.size(), 2u);
}

TEST(Responses, ItemsOfATurnBecomeOneMessage) {
  EXPECT_EQ(
      rendered(R"([{"role":"user","content":"A"},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],
       "encrypted_content":null},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"B"}]},
      {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"z\": 1}"},
      {"type":"function_call","call_id":"c2","name":"g","arguments":"broken"},
      {"type":"function_call_output","call_id":"c1","output":"1"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"2"},
         {"type":"input_image","image_url":"data:,"}]},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"so"}]},
      {"type":"custom_tool_call","call_id":"c3","name":"patch","input":"*** \"x\""},
      {"type":"custom_tool_call_output","call_id":"c3","output":"done"}])"),
      R"([{"role":"user","content":"A"},{"role":"assistant","content":"B",)"
      R"("reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":)"
      R"({"name":"f","arguments":"{\"z\": 1}"}},{"id":"c2","type":"function","function":)"
      R"({"name":"g","arguments":"broken"}}]},{"role":"tool","content":"1","tool_call_id":"c1"},)"
      R"({"role":"tool","content":"2\n[image omitted]","tool_call_id":"c2"},)"
      R"({"role":"assistant","content":null,"reasoning_content":"so","tool_calls":[{"id":"c3",)"
      R"("type":"function","function":{"name":"patch","arguments":"{\"input\":\"*** \\\"x\\\"\"}"}}]},)"
      R"({"role":"tool","content":"done","tool_call_id":"c3"}])");
}

TEST(Responses, TwoMessagesOfTheAssistantStayTwo) {
  EXPECT_EQ(rendered(R"([{"role":"assistant","content":"A"},{"role":"assistant","content":"B"},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}])"),
            R"([{"role":"assistant","content":"A"},{"role":"assistant","content":"B"},)"
            R"({"role":"assistant","content":"","reasoning_content":"hm"}])");
}

TEST(Responses, UnknownItemsAreLeftOut) {
  const auto r = with_items(R"([{"role":"user","content":"A"},{"type":"web_search_call","id":"w"},
      {"type":"compaction","encrypted_content":"x"},{"type":"of_the_future","x":[1]}])");
  EXPECT_EQ(r.chat.messages.size(), 1u);
  ASSERT_EQ(r.warnings.size(), 3u);
  EXPECT_EQ(r.warnings[2], "input[3] is of type of_the_future and was left out");
}

ApiRequest with_special_tools() {
  return good(parse, request(R"("tools":[{"type":"custom","name":"patch","description":"Edits.",
      "format":{"type":"grammar","syntax":"lark","definition":"start: x"}},
      {"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"find"}]}])"));
}

TEST(Responses, CustomToolsAreFunctionsToTheModel) {
  const auto r = with_special_tools();
  EXPECT_EQ(dumped(r.chat.tools),
            R"([{"type":"function","function":{"name":"patch","description":)"
            R"("Edits.\nThe input follows this lark grammar:\nstart: x","parameters":)"
            R"({"type":"object","properties":{"input":{"type":"string","description":)"
            R"("The whole input of the tool, as free text."}},"required":["input"],)"
            R"("additionalProperties":false}}},{"type":"function","function":{"name":"crm__find",)"
            R"("parameters":{"type":"object","properties":{}}}}])");
}

TEST(Responses, ReadsTheFormatOfTheAnswer) {
  const auto r = good(parse, request(R"("text":{"format":{"type":"json_schema","name":"x",
      "strict":true,"schema":{"type":"object"}}})"));
  EXPECT_EQ(r.format.kind, ResponseFormat::Kind::json_schema);
  EXPECT_TRUE(r.format.strict);
}

TEST(Responses, SaysWhichFieldIsWrong) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({"model":"m"})", "input: input is missing"},
      {R"({"input":[]})", "input: input is empty"},
      {R"({"input":7})", "input: input is a number; it must be an array"},
      {R"({"input":[7]})", "input[0]: input[0] is a number; it must be an object"},
      {R"({"input":[{"role":"tool","content":"x"}]})",
       "input[0].role: input[0].role is 'tool'; it must be one of user, assistant, system, "
       "developer"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})",
       "input[0]: input[0] is not supported by this server; nothing is stored here: send the item "
       "itself"},
      {request(R"("previous_response_id":"r")"),
       "previous_response_id: previous_response_id is not supported by this server; nothing is "
       "stored here: send the whole input"},
      {request(R"("background":true,"store":false)"),
       "store: store must not be false: a response in the background is stored"},
      {request(R"("top_logprobs":3)"),
       "top_logprobs: top_logprobs is not supported by this server; use chat completions"},
      {request(R"("max_output_tokens":-5)"),
       "max_output_tokens: max_output_tokens must be at least 1"},
      {request(R"("tool_choice":{"type":"file_search"})"),
       "tool_choice.type: tool_choice.type is not supported by this server"},
      {request(R"("tools":[{"type":"function"}])"), "tools[0].name: tools[0].name is missing"},
  };
  for (const auto& [body, wanted] : bad) EXPECT_EQ(problem(parse, body), wanted) << body;
}

std::string written(const ApiRequest& request, const std::vector<AnswerEvent>& events) {
  const auto writer = responses::stream(request, test_head());
  return lines_of(streamed(*writer, events), {"type", "response"});
}

TEST(Responses, StreamsItems) {
  EXPECT_EQ(written({}, busy_answer()),
            R"(response.created {"sequence_number":0}
response.in_progress {"sequence_number":1}
response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[],"content":[],"encrypted_content":null,"status":"in_progress"}}
response.content_part.added {"sequence_number":3,"item_id":"rs_1_0","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}}
response.reasoning_text.delta {"sequence_number":4,"item_id":"rs_1_0","output_index":0,"content_index":0,"delta":"hm"}
response.reasoning_text.delta {"sequence_number":5,"item_id":"rs_1_0","output_index":0,"content_index":0,"delta":"m"}
response.reasoning_text.done {"sequence_number":6,"item_id":"rs_1_0","output_index":0,"content_index":0,"text":"hmm"}
response.content_part.done {"sequence_number":7,"item_id":"rs_1_0","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":"hmm"}}
response.output_item.done {"sequence_number":8,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hmm"}],"encrypted_content":null,"status":"completed"}}
response.output_item.added {"sequence_number":9,"output_index":1,"item":{"id":"msg_1_1","type":"message","role":"assistant","status":"in_progress","content":[]}}
response.content_part.added {"sequence_number":10,"item_id":"msg_1_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
response.output_text.delta {"sequence_number":11,"item_id":"msg_1_1","output_index":1,"content_index":0,"delta":"I ","logprobs":[]}
response.output_text.delta {"sequence_number":12,"item_id":"msg_1_1","output_index":1,"content_index":0,"delta":"look","logprobs":[]}
response.output_text.done {"sequence_number":13,"item_id":"msg_1_1","output_index":1,"content_index":0,"text":"I look","logprobs":[]}
response.content_part.done {"sequence_number":14,"item_id":"msg_1_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"I look","annotations":[],"logprobs":[]}}
response.output_item.done {"sequence_number":15,"output_index":1,"item":{"id":"msg_1_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look","annotations":[],"logprobs":[]}]}}
response.output_item.added {"sequence_number":16,"output_index":2,"item":{"id":"fc_1_2","type":"function_call","call_id":"call_a","name":"read","arguments":"","status":"in_progress"}}
response.function_call_arguments.delta {"sequence_number":17,"item_id":"fc_1_2","output_index":2,"delta":"{\"path\":"}
response.function_call_arguments.delta {"sequence_number":18,"item_id":"fc_1_2","output_index":2,"delta":"\"x\"}"}
response.function_call_arguments.done {"sequence_number":19,"item_id":"fc_1_2","output_index":2,"name":"read","arguments":"{\"path\":\"x\"}"}
response.output_item.done {"sequence_number":20,"output_index":2,"item":{"id":"fc_1_2","type":"function_call","call_id":"call_a","name":"read","arguments":"{\"path\":\"x\"}","status":"completed"}}
response.output_item.added {"sequence_number":21,"output_index":3,"item":{"id":"fc_1_3","type":"function_call","call_id":"call_b","name":"ls","arguments":"","status":"in_progress"}}
response.function_call_arguments.delta {"sequence_number":22,"item_id":"fc_1_3","output_index":3,"delta":"{}"}
response.function_call_arguments.done {"sequence_number":23,"item_id":"fc_1_3","output_index":3,"name":"ls","arguments":"{}"}
response.output_item.done {"sequence_number":24,"output_index":3,"item":{"id":"fc_1_3","type":"function_call","call_id":"call_b","name":"ls","arguments":"{}","status":"completed"}}
response.completed {"sequence_number":25}
)");
}

TEST(Responses, ReasoningIsItsSummaryWhenAskedFor) {
  const auto r = good(parse, request(R"("reasoning":{"summary":"auto"})"));
  const std::vector<AnswerEvent> events = {{.kind = Kind::reasoning, .text = "hm"},
                                           {.kind = Kind::done}};
  EXPECT_EQ(
      written(r, events),
      R"(response.output_item.added {"sequence_number":0,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[],"encrypted_content":null,"status":"in_progress"}}
response.reasoning_summary_part.added {"sequence_number":1,"item_id":"rs_1_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
response.reasoning_summary_text.delta {"sequence_number":2,"item_id":"rs_1_0","output_index":0,"summary_index":0,"delta":"hm"}
response.reasoning_summary_text.done {"sequence_number":3,"item_id":"rs_1_0","output_index":0,"summary_index":0,"text":"hm"}
response.reasoning_summary_part.done {"sequence_number":4,"item_id":"rs_1_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"hm"}}
response.output_item.done {"sequence_number":5,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null,"status":"completed"}}
response.completed {"sequence_number":6}
)");
}

TEST(Responses, CustomToolsAreCustomAgainToTheClient) {
  const std::vector<AnswerEvent> events = {
      {.kind = Kind::call_begin, .call = 0, .text = "patch", .call_id = "c"},
      {.kind = Kind::call_arguments, .call = 0, .text = R"({"input": "*** )"},
      {.kind = Kind::call_arguments, .call = 0, .text = R"(End\n"})"},
      {.kind = Kind::call_end, .call = 0},
      {.kind = Kind::call_begin, .call = 1, .text = "crm__find", .call_id = "d"},
      {.kind = Kind::call_end, .call = 1}};
  const auto r = with_special_tools();
  EXPECT_EQ(
      written(r, events),
      R"(response.output_item.added {"sequence_number":0,"output_index":0,"item":{"id":"ctc_1_0","type":"custom_tool_call","call_id":"c","name":"patch","input":"","status":"in_progress"}}
response.custom_tool_call_input.delta {"sequence_number":1,"item_id":"ctc_1_0","output_index":0,"delta":"*** End\n"}
response.custom_tool_call_input.done {"sequence_number":2,"item_id":"ctc_1_0","output_index":0,"input":"*** End\n"}
response.output_item.done {"sequence_number":3,"output_index":0,"item":{"id":"ctc_1_0","type":"custom_tool_call","call_id":"c","name":"patch","input":"*** End\n","status":"completed"}}
response.output_item.added {"sequence_number":4,"output_index":1,"item":{"id":"fc_1_1","type":"function_call","call_id":"d","name":"find","namespace":"crm","arguments":"","status":"in_progress"}}
response.function_call_arguments.done {"sequence_number":5,"item_id":"fc_1_1","output_index":1,"name":"find","arguments":""}
response.output_item.done {"sequence_number":6,"output_index":1,"item":{"id":"fc_1_1","type":"function_call","call_id":"d","name":"find","namespace":"crm","arguments":"","status":"completed"}}
)");
  EXPECT_EQ(dumped(responses::whole(r, test_head(), collected(events))["output"][0]),
            R"({"id":"ctc_1_0","type":"custom_tool_call","call_id":"c","name":"patch",)"
            R"("input":"*** End\n","status":"completed"})");
}

TEST(Responses, WritesAWholeAnswer) {
  const auto r = good(parse, request(R"("instructions":"I","temperature":0.5)"));
  Json out = responses::whole(r, test_head(), collected(short_answer("Hi", FinishReason::length)));
  out.erase("timings");
  EXPECT_EQ(
      dumped(out),
      R"({"id":"resp_1","object":"response","created_at":1700000000,"status":"incomplete",)"
      R"("background":false,"error":null,"incomplete_details":{"reason":"max_output_tokens"},)"
      R"("model":"tiny","output":[{"id":"msg_1_0","type":"message","role":"assistant",)"
      R"("status":"incomplete","content":[{"type":"output_text","text":"Hi","annotations":[],)"
      R"("logprobs":[]}]}],"previous_response_id":null,"store":false,"usage":{"input_tokens":5,)"
      R"("input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":2,)"
      R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":7},)"
      R"("system_fingerprint":"fp","instructions":"I","max_output_tokens":null,"metadata":{},)"
      R"("parallel_tool_calls":true,"reasoning":{"effort":null,"summary":null},)"
      R"("temperature":0.5,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],)"
      R"("top_p":null,"truncation":"disabled","user":null,"seed":7})");
}

TEST(Responses, TheLastEventHasTheWholeResponse) {
  const auto r = good(parse, request(R"("temperature":0.5)"));
  const auto writer = responses::stream(r, test_head());
  const std::string wire = streamed(*writer, busy_answer());
  const Json last = Json::parse(wire.substr(wire.rfind("data: ") + 6));
  EXPECT_EQ(last["type"], "response.completed");
  EXPECT_EQ(last["response"], responses::whole(r, test_head(), collected(busy_answer())));
}

TEST(Responses, AFailureSaysWhatCodexKnows) {
  const auto failed = [](ApiError error) {
    const auto writer = responses::stream({}, test_head());
    const std::string wire = writer->write({.kind = Kind::failed, .error = std::move(error)});
    const Json event = Json::parse(wire.substr(wire.find("data: ") + 6));
    EXPECT_EQ(event["type"], "response.failed");
    EXPECT_EQ(event["response"]["status"], "failed");
    return dumped(event["response"]["error"]);
  };
  EXPECT_EQ(failed({.kind = ApiError::Kind::context_length, .message = "too long"}),
            R"({"code":"context_length_exceeded","message":"too long"})");
  EXPECT_EQ(failed({.kind = ApiError::Kind::overloaded, .message = "busy"}),
            R"({"code":"server_is_overloaded","message":"busy"})");
  EXPECT_EQ(failed({.kind = ApiError::Kind::rate_limit, .message = "slow.", .retry_after_s = 7}),
            R"({"code":"rate_limit_exceeded","message":"slow. Please try again in 7s."})");
  EXPECT_EQ(failed({.kind = ApiError::Kind::invalid_request, .message = "no"}),
            R"({"code":"invalid_prompt","message":"no"})");
}

}  // namespace
}  // namespace millrace::serve
