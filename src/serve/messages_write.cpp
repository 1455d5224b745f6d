#include <fmt/format.h>

#include <utility>

#include "serve/json_body.h"
#include "serve/messages.h"
#include "serve/openai_shapes.h"

namespace millrace::serve::messages {
namespace {

// Clients send thinking back with its signature. Ours proves nothing and is not looked at.
constexpr std::string_view kSignature = "bWlsbHJhY2U=";

std::string_view type_of(ApiError::Kind kind) {
  using enum ApiError::Kind;
  switch (kind) {
    case authentication:
      return "authentication_error";
    case permission:
      return "permission_error";
    case not_found:
      return "not_found_error";
    case too_large:
      return "request_too_large";
    case rate_limit:
      return "rate_limit_error";
    case internal:
      return "api_error";
    case overloaded:
      return "overloaded_error";
    default:
      return "invalid_request_error";
  }
}

// Anthropic counts what came from the cache apart from the rest.
Json usage_of(const Usage& usage) {
  return {{"input_tokens", usage.n_prompt - usage.n_cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.n_cached},
          {"output_tokens", usage.n_completion}};
}

std::string_view stop_reason(FinishReason finish) {
  switch (finish) {
    case FinishReason::stop_string:
      return "stop_sequence";
    case FinishReason::length:
      return "max_tokens";
    case FinishReason::tool_calls:
      return "tool_use";
    default:
      return "end_turn";
  }
}

Json stop_of(FinishReason finish, const std::string& stop_string) {
  const bool stopped = finish == FinishReason::stop_string;
  Json out = {{"stop_reason", stop_reason(finish)}};
  out["stop_sequence"] = stopped ? Json(stop_string) : Json();
  return out;
}

Json text_block(std::string text) {
  return {{"type", "text"}, {"text", std::move(text)}};
}

// A call's input must be an object, also where the model wrote none.
Json input_of(const std::string& arguments) {
  if (arguments.empty()) return Json::object();
  auto parsed = parse_body(arguments);
  if (auto* const object = std::get_if<Json>(&parsed)) return std::move(*object);
  return {{"arguments", arguments}};
}

Json call_block(std::string id, std::string name, Json input) {
  return {{"type", "tool_use"},
          {"id", std::move(id)},
          {"name", std::move(name)},
          {"input", std::move(input)}};
}

// A client that takes the first block without looking must find one.
Json content_of(const AnswerChoice& choice) {
  Json out = Json::array();
  if (!choice.reasoning.empty())
    out.push_back(Json::object(
        {{"type", "thinking"}, {"thinking", choice.reasoning}, {"signature", kSignature}}));
  if (!choice.text.empty()) out.push_back(text_block(choice.text));
  for (const ToolCall& call : choice.calls)
    out.push_back(call_block(call.id, call.name, input_of(call.arguments)));
  if (out.empty()) out.push_back(text_block(""));
  return out;
}

Json message_of(const AnswerHead& head, Json content, const Usage& usage) {
  return {{"id", "msg_" + head.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", head.model},
          {"content", std::move(content)},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", usage_of(usage)},
          {"system_fingerprint", head.fingerprint}};
}

std::string named(const Json& data) {
  return sse(data, data["type"].get_ref<const std::string&>());
}

// One block is open at a time, and they are numbered in the order in which they open.
class Writer : public StreamWriter {
 public:
  Writer(const ApiRequest& request, const AnswerHead& head)
      : head_(head), warnings_(request.warnings), wants_progress_(request.wants_progress) {}

  std::string write(const AnswerEvent& event) override;

 private:
  enum class Block : unsigned char { none, thinking, text, call };

  std::string start(const AnswerEvent& event);
  std::string open(Block block, Json empty);
  std::string close();
  std::string delta(std::string_view type, std::string_view key, std::string_view piece) const;
  std::string words(Block block, const AnswerEvent& event);
  std::string progress(const AnswerEvent& event) const;
  std::string done(const AnswerEvent& event);

  const AnswerHead head_;
  const std::vector<std::string> warnings_;
  const bool wants_progress_;
  uint64_t seed_ = 0;
  Block open_ = Block::none;
  int index_ = -1;  // of the block that is open, or was last
  Json stop_ = stop_of(FinishReason::end, "");
};

std::string Writer::start(const AnswerEvent& event) {
  seed_ = event.seed;
  Json message = message_of(head_, Json::array(), event.usage);
  if (!warnings_.empty()) message["warnings"] = warnings_;
  return named({{"type", "message_start"}, {"message", std::move(message)}});
}

std::string Writer::open(Block block, Json empty) {
  std::string out = close();
  open_ = block;
  ++index_;
  return out + named({{"type", "content_block_start"},
                      {"index", index_},
                      {"content_block", std::move(empty)}});
}

std::string Writer::close() {
  std::string out;
  if (open_ == Block::none) return out;
  if (open_ == Block::thinking) out = delta("signature_delta", "signature", kSignature);
  open_ = Block::none;
  return out + named({{"type", "content_block_stop"}, {"index", index_}});
}

std::string Writer::delta(std::string_view type, std::string_view key,
                          std::string_view piece) const {
  Json delta = {{"type", type}};
  delta[std::string(key)] = piece;
  return named({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
}

std::string Writer::words(Block block, const AnswerEvent& event) {
  const bool thinks = block == Block::thinking;
  std::string out;
  if (open_ != block)
    out = open(block, thinks ? Json{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}
                             : text_block(""));
  return out + (thinks ? delta("thinking_delta", "thinking", event.text)
                       : delta("text_delta", "text", event.text));
}

std::string Writer::progress(const AnswerEvent& event) const {
  if (!wants_progress_) return {};
  Json of = {{"total", event.usage.n_prompt},
             {"cache", event.usage.n_cached},
             {"processed", event.n_done},
             {"time_ms", event.usage.prompt_s * 1e3}};
  return named({{"type", "ping"}, {"prompt_progress", std::move(of)}});
}

std::string Writer::done(const AnswerEvent& event) {
  std::string out;
  if (index_ < 0) out = open(Block::text, text_block(""));
  out += close();
  out += named({{"type", "message_delta"},
                {"delta", stop_},
                {"usage", usage_of(event.usage)},
                {"timings", timings(event.usage)},
                {"seed", seed_}});
  return out + named({{"type", "message_stop"}});
}

std::string Writer::write(const AnswerEvent& event) {
  using enum AnswerEvent::Kind;
  if (event.choice != 0) return {};
  switch (event.kind) {
    case accepted:
      return start(event);
    case progress:
      return this->progress(event);
    case reasoning:
      return words(Block::thinking, event);
    case text:
      return words(Block::text, event);
    case call_begin:
      return open(Block::call, call_block(event.call_id, event.text, Json::object()));
    case call_arguments:
      return delta("input_json_delta", "partial_json", event.text);
    case call_end:
      return close();
    case tokens:
      return {};
    case finished:
      stop_ = stop_of(event.finish, event.stop_string);
      return {};
    case done:
      return this->done(event);
    case failed:
      return named(error(event.error));
  }
  return {};
}

}  // namespace

std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head) {
  return std::make_unique<Writer>(request, head);
}

Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer) {
  const AnswerChoice choice = answer.choices.empty() ? AnswerChoice() : answer.choices[0];
  Json out = message_of(head, content_of(choice), answer.usage);
  out.update(stop_of(choice.finish, choice.stop_string));
  out["timings"] = timings(answer.usage);
  out["seed"] = answer.seed;
  if (!request.warnings.empty()) out["warnings"] = request.warnings;
  return out;
}

Json count_tokens(int64_t n_prompt) {
  return {{"input_tokens", n_prompt}};
}

Json error(const ApiError& error) {
  // Claude Code compacts its history when it reads these words.
  constexpr std::string_view kTooLong = "prompt is too long";
  std::string message = error.message;
  if (error.kind == ApiError::Kind::context_length && !message.starts_with(kTooLong))
    message = fmt::format("{}: {}", kTooLong, message);
  Json body = {{"type", type_of(error.kind)}, {"message", std::move(message)}};
  return {{"type", "error"}, {"error", std::move(body)}};
}

}  // namespace millrace::serve::messages
