// OpenAI's Responses, as Codex and the openai package speak them. Those in the background are jobs
// and stored; of others nothing is, and each request carries its whole history. Items become
// messages; what one turn of the assistant was (reasoning, message, calls) becomes one. A custom
// tool, whose input is free text, is a function with one string to the model, and a custom tool
// again to the client; a namespace's tools are functions under a longer name.
#pragma once

#include "serve/dialect.h"

namespace millrace::serve::responses {

ApiResult<ApiRequest> parse(const Json& body, const HeaderOf& header);
std::unique_ptr<StreamWriter> stream(const ApiRequest& request, const AnswerHead& head);
Json whole(const ApiRequest& request, const AnswerHead& head, const Answer& answer);
// One that has not ended (queued, in_progress), or failed.
Json unfinished(const ApiRequest& request, const AnswerHead& head, std::string_view status);
Json failed(const ApiRequest& request, const AnswerHead& head, const ApiError& error);
// What it says of itself where it is a job.
void mark_stored(ApiRequest& request);

// What ApiRequest::dialect holds for the writer.
inline constexpr const char* kShown = "shown";  // fields of the request that a response repeats
// By the name that the model knows: {"type": "custom" | "function", "name", "namespace"}, of the
// tools that are more than functions.
inline constexpr const char* kTools = "tools";
inline constexpr const char* kSummary = "summary";  // reasoning goes out as its own summary

}  // namespace millrace::serve::responses
