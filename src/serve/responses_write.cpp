#include <utility>

#include "serve/openai_shapes.h"
#include "serve/responses.h"
#include "serve/responses_items.h"

namespace millrace::serve::responses {
namespace {

// Ends a response that was not failed.
void conclude(Json& response, FinishReason finish, const Usage& usage, uint64_t seed) {
  const bool cut = finish == FinishReason::length;
  const bool cancelled = finish == FinishReason::cancelled;
  response["status"] = cut ? "incomplete" : cancelled ? "cancelled" : "completed";
  if (cut) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response["usage"] = usage_of(usage);
  response["timings"] = timings(usage);
  response["seed"] = seed;
}

// One item is open at a time; what is done is kept for the response that ends the stream.
class Writer : public StreamWriter {
 public:
  Writer(const ApiRequest& request, const AnswerHead& head)
      : head_(head), shape_(request), warnings_(request.warnings) {}

  std::string write(const AnswerEvent& event) override;

 private:
  enum class Open : unsigned char { none, reasoning, message, call };

  // Appends an event to out_; they are numbered in the order in which they are sent.
  void send(std::string_view type, Json fields);
  // The same with the place of the item that is open, and of its only part.
  void send_of_item(std::string_view type, Json fields);
  void send_of_part(std::string_view type, Json fields);

  void handle(const AnswerEvent& event);
  Json response(std::string_view status) const;
  Json item(std::string_view status) const;
  Json reasoning_part() const;
  bool is_summary() const { return open_ == Open::reasoning && shape_.summary; }
  void start(const AnswerEvent& event);
  void open(Open what, std::string_view prefix);
  void open_words(Open what);
  void close(std::string_view status = "completed");
  void close_reasoning();
  void close_message();
  void close_call();
  void words(Open what, const AnswerEvent& event);
  void begin_call(const AnswerEvent& event);
  void arguments(const AnswerEvent& event);
  void done(const AnswerEvent& event);
  void failed(const AnswerEvent& event);

  const AnswerHead head_;
  const Shape shape_;
  const std::vector<std::string> warnings_;
  std::string out_ = {};
  uint64_t seed_ = 0;
  int sequence_ = 0;
  Json output_ = Json::array();  // the items that are done
  Open open_ = Open::none;
  std::string id_ = {};    // of the item that is open
  std::string text_ = {};  // what it says so far
  ToolCall call_ = {};
  FinishReason finish_ = FinishReason::end;
};

void Writer::send(std::string_view type, Json fields) {
  Json all = {{"type", type}, {"sequence_number", sequence_++}};
  all.update(fields);
  out_ += sse(all, type);
}

void Writer::send_of_item(std::string_view type, Json fields) {
  Json all = {{"item_id", id_}, {"output_index", output_.size()}};
  all.update(fields);
  send(type, std::move(all));
}

void Writer::send_of_part(std::string_view type, Json fields) {
  Json all = Json::object();
  all[is_summary() ? "summary_index" : "content_index"] = 0;
  all.update(fields);
  send_of_item(type, std::move(all));
}

Json Writer::response(std::string_view status) const {
  Json out = response_of(head_, shape_, status);
  out["output"] = output_;
  if (!warnings_.empty()) out["warnings"] = warnings_;
  return out;
}

Json Writer::item(std::string_view status) const {
  if (open_ == Open::reasoning) return reasoning_item(id_, text_, shape_.summary, status);
  if (open_ == Open::message) return message_item(id_, text_, status);
  return call_item(id_, call_, shape_, status);
}

Json Writer::reasoning_part() const {
  return {{"type", is_summary() ? "summary_text" : "reasoning_text"}, {"text", text_}};
}

void Writer::start(const AnswerEvent& event) {
  seed_ = event.seed;
  const Json now = {{"response", response("in_progress")}};
  send("response.created", now);
  send("response.in_progress", now);
}

void Writer::open(Open what, std::string_view prefix) {
  close();
  open_ = what;
  id_ = item_id(prefix, head_, output_.size());
  text_.clear();
  send("response.output_item.added",
       {{"output_index", output_.size()}, {"item", item("in_progress")}});
}

void Writer::open_words(Open what) {
  open(what, what == Open::message ? "msg" : "rs");
  Json part = what == Open::message ? text_part("") : reasoning_part();
  send_of_part(
      is_summary() ? "response.reasoning_summary_part.added" : "response.content_part.added",
      {{"part", std::move(part)}});
}

void Writer::close_reasoning() {
  const bool summary = shape_.summary;
  send_of_part(summary ? "response.reasoning_summary_text.done" : "response.reasoning_text.done",
               {{"text", text_}});
  send_of_part(summary ? "response.reasoning_summary_part.done" : "response.content_part.done",
               {{"part", reasoning_part()}});
}

void Writer::close_message() {
  send_of_part("response.output_text.done", {{"text", text_}, {"logprobs", Json::array()}});
  send_of_part("response.content_part.done", {{"part", text_part(text_)}});
}

// What a custom tool gets is known only once the JSON around it is whole.
void Writer::close_call() {
  if (!shape_.is_custom(call_.name))
    return send_of_item("response.function_call_arguments.done",
                        {{"name", item("completed")["name"]}, {"arguments", call_.arguments}});
  const std::string input = custom_input(call_.arguments);
  send_of_item("response.custom_tool_call_input.delta", {{"delta", input}});
  send_of_item("response.custom_tool_call_input.done", {{"input", input}});
}

void Writer::close(std::string_view status) {
  if (open_ == Open::none) return;
  if (open_ == Open::reasoning) close_reasoning();
  if (open_ == Open::message) close_message();
  if (open_ == Open::call) close_call();
  Json whole = item(status);
  send("response.output_item.done", {{"output_index", output_.size()}, {"item", whole}});
  output_.push_back(std::move(whole));
  open_ = Open::none;
}

void Writer::words(Open what, const AnswerEvent& event) {
  if (open_ != what) open_words(what);
  text_ += event.text;
  if (what == Open::message)
    return send_of_part("response.output_text.delta",
                        {{"delta", event.text}, {"logprobs", Json::array()}});
  send_of_part(
      shape_.summary ? "response.reasoning_summary_text.delta" : "response.reasoning_text.delta",
      {{"delta", event.text}});
}

void Writer::begin_call(const AnswerEvent& event) {
  close();
  call_ = {.id = event.call_id, .name = event.text};
  open(Open::call, shape_.is_custom(event.text) ? "ctc" : "fc");
}

void Writer::arguments(const AnswerEvent& event) {
  if (open_ != Open::call) return;
  call_.arguments += event.text;
  if (!shape_.is_custom(call_.name))
    send_of_item("response.function_call_arguments.delta", {{"delta", event.text}});
}

void Writer::done(const AnswerEvent& event) {
  const bool cut = finish_ == FinishReason::length || finish_ == FinishReason::cancelled;
  close(cut ? "incomplete" : "completed");
  Json last = response("completed");
  conclude(last, finish_, event.usage, seed_);
  send(cut ? "response.incomplete" : "response.completed", {{"response", std::move(last)}});
}

void Writer::failed(const AnswerEvent& event) {
  close("incomplete");
  Json last = response("failed");
  last["error"] = failure_of(event.error);
  send("response.failed", {{"response", std::move(last)}});
}

void Writer::handle(const AnswerEvent& event) {
  using enum AnswerEvent::Kind;
  switch (event.kind) {
    case accepted:
      return start(event);
    case reasoning:
      return words(Open::reasoning, event);
    case text:
      return words(Open::message, event);
    case call_begin:
      return begin_call(event);
    case call_arguments:
      return arguments(event);
    case call_end:
      return close();
    case progress:
    case tokens:
      return;
    case finished:
      finish_ = event.finish;
      return;
    case done:
      return this->done(event);
    case failed:
      return this->failed(event);
  }
}

std::string Writer::write(const AnswerEvent& event) {
  if (event.choice == 0) handle(event);
  return std::exchange(out_, {});
}

Json output_of(const AnswerHead& head, const Shape& shape, const AnswerChoice& choice) {
  Json out = Json::array();
  if (!choice.reasoning.empty())
    out.push_back(reasoning_item(item_id("rs", head, out.size()), choice.reasoning, shape.summary,
                                 "completed"));
  if (!choice.text.empty())
    out.push_back(message_item(item_id("msg", head, out.size()), choice.text, "completed"));
  for (const ToolCall& call : choice.calls) {
    const std::string_view prefix = shape.is_custom(call.name) ? "ctc" : "fc";
    out.push_back(call_item(item_id(prefix, head, out.size()), call, shape, "completed"));
  }
  if (choice.finish == FinishReason::length && !out.empty()) out.back()["status"] = "incomplete";
  return out;
}

}  // namespace

std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head) {
  return std::make_unique<Writer>(request, head);
}

Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer) {
  const AnswerChoice choice = answer.choices.empty() ? AnswerChoice() : answer.choices[0];
  const Shape shape(request);
  Json out = response_of(head, shape, "completed");
  out["output"] = output_of(head, shape, choice);
  conclude(out, choice.finish, answer.usage, answer.seed);
  if (!request.warnings.empty()) out["warnings"] = request.warnings;
  return out;
}

Json unfinished(const ApiRequest& request, const AnswerHead& head, std::string_view status) {
  return response_of(head, Shape(request), status);
}

Json failed(const ApiRequest& request, const AnswerHead& head, const ApiError& error) {
  Json out = response_of(head, Shape(request), "failed");
  out["error"] = failure_of(error);
  return out;
}

void mark_stored(ApiRequest& request) {
  request.dialect[kShown]["background"] = true;
  request.dialect[kShown]["store"] = true;
}

}  // namespace millrace::serve::responses
