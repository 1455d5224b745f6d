#include "serve/openapi.h"

#include "base/json_text.h"
#include "serve/api_request.h"
#include "serve/openapi_schemas.h"

namespace millrace::serve {
namespace {

struct Operation {
  std::string_view path, method, id, summary;
  std::string_view takes = {};  // the schema of the body
  std::string_view gives = {};  // the schema of the answer; none: text
  bool streams = false;         // events, where the body says "stream": true
  std::string_view error = "Error";
  bool open = false;  // needs no key
  std::string_view status = "200";
  bool only_events = false;  // it gives nothing else
};

constexpr Operation kOperations[] = {
    {.path = "/v1/chat/completions",
     .method = "post",
     .id = "chat_completions",
     .summary = "Answer a conversation (OpenAI chat completions)",
     .takes = "ChatRequest",
     .gives = "ChatCompletion",
     .streams = true},
    {.path = "/v1/completions",
     .method = "post",
     .id = "completions",
     .summary = "Continue a text (OpenAI completions)",
     .takes = "CompletionRequest",
     .gives = "Completion",
     .streams = true},
    {.path = "/v1/responses",
     .method = "post",
     .id = "responses",
     .summary = "Answer a list of items (OpenAI Responses; stored only in the background)",
     .takes = "ResponsesRequest",
     .gives = "Response",
     .streams = true},
    {.path = "/v1/messages",
     .method = "post",
     .id = "messages",
     .summary = "Answer a conversation (Anthropic Messages)",
     .takes = "MessagesRequest",
     .gives = "Message",
     .streams = true,
     .error = "AnthropicError"},
    {.path = "/v1/messages/count_tokens",
     .method = "post",
     .id = "count_tokens",
     .summary = "Count the tokens of a conversation's prompt (Anthropic)",
     .takes = "CountTokensRequest",
     .gives = "TokenCount",
     .error = "AnthropicError"},
    {.path = "/v1/models",
     .method = "get",
     .id = "models",
     .summary = "List the models, in Anthropic's shape for clients that send anthropic-version",
     .gives = "AnyModelList"},
    {.path = "/v1/models/{id}",
     .method = "get",
     .id = "model",
     .summary = "One model; its id may have slashes",
     .gives = "AnyModel"},
    {.path = "/v1/responses/{id}",
     .method = "get",
     .id = "response",
     .summary = "A response that was asked for with \"background\": true; its events with "
                "stream=true, after the one numbered starting_after",
     .gives = "Response",
     .streams = true},
    {.path = "/v1/responses/{id}",
     .method = "delete",
     .id = "delete_response",
     .summary = "Delete a response in the background",
     .gives = "Deleted"},
    {.path = "/v1/responses/{id}/cancel",
     .method = "post",
     .id = "cancel_response",
     .summary = "Cancel a response in the background; one that has ended stays as it is",
     .gives = "Response"},
    {.path = "/v1/jobs",
     .method = "post",
     .id = "submit_job",
     .summary = "Answer a request in the background, also across restarts of the server",
     .takes = "JobRequest",
     .gives = "Job",
     .status = "202"},
    {.path = "/v1/jobs",
     .method = "get",
     .id = "jobs",
     .summary = "List the jobs of this key, the newest first",
     .gives = "JobList"},
    {.path = "/v1/jobs/{id}",
     .method = "get",
     .id = "job",
     .summary = "One job, with its answer once it has ended",
     .gives = "Job"},
    {.path = "/v1/jobs/{id}",
     .method = "delete",
     .id = "delete_job",
     .summary = "Delete a job; one that runs is cancelled",
     .gives = "Deleted"},
    {.path = "/v1/jobs/{id}/events",
     .method = "get",
     .id = "job_events",
     .summary = "The answer as events of the API that it was asked through, each with an id, as "
                "they come; from the one after Last-Event-ID or `after` on",
     .only_events = true},
    {.path = "/v1/jobs/{id}/pause",
     .method = "post",
     .id = "pause_job",
     .summary = "Let a job rest until it is resumed",
     .gives = "Job"},
    {.path = "/v1/jobs/{id}/resume",
     .method = "post",
     .id = "resume_job",
     .summary = "Go on with a job that was paused",
     .gives = "Job"},
    {.path = "/v1/jobs/{id}/cancel",
     .method = "post",
     .id = "cancel_job",
     .summary = "End a job; its tokens are kept",
     .gives = "Job"},
    {.path = "/v1/jobs/{id}/restart",
     .method = "post",
     .id = "restart_job",
     .summary = "A new job that goes on from the tokens of one that is stale, failed or cancelled",
     .gives = "Job",
     .status = "202"},
    {.path = "/tokenize",
     .method = "post",
     .id = "tokenize",
     .summary = "Turn text into token ids",
     .takes = "TokenizeRequest",
     .gives = "Tokens"},
    {.path = "/detokenize",
     .method = "post",
     .id = "detokenize",
     .summary = "Turn token ids into text",
     .takes = "DetokenizeRequest",
     .gives = "Text"},
    {.path = "/apply-template",
     .method = "post",
     .id = "apply_template",
     .summary = "Show the prompt that a chat completions request becomes",
     .takes = "ChatRequest",
     .gives = "RenderedPrompt"},
    {.path = "/health",
     .method = "get",
     .id = "health",
     .summary = "Whether the server answers requests",
     .gives = "Health",
     .open = true},
    {.path = "/metrics",
     .method = "get",
     .id = "metrics",
     .summary =
         "Metrics in the text format of Prometheus; needs the admin key where keys are used"},
    {.path = "/version",
     .method = "get",
     .id = "version",
     .summary = "The server's version",
     .gives = "Version"},
};

struct Failure {
  std::string_view status, description;
};

constexpr Failure kFailures[] = {
    {"400", "The request is wrong; the message names the field"},
    {"401", "The key is missing or unknown"},
    {"403", "This key, Host or Origin is not allowed here"},
    {"404", "There is no such model or route"},
    {"405", "The route has other methods"},
    {"408", "The request took too long to arrive"},
    {"409", "The job is not in a state in which this can be done"},
    {"411", "The body has no length"},
    {"413", "The body is too large"},
    {"414", "The path is too long"},
    {"422", "The Idempotency-Key came with another request before"},
    {"429", "Too many requests; Retry-After says when to try again"},
    {"431", "The headers are too large"},
    {"500", "The server failed"},
    {"503", "The server is overloaded, starting or stopping; Retry-After says when to try again"},
};

Json json_content(std::string_view schema) {
  Json media = {{"schema", {{"$ref", "#/components/schemas/" + std::string(schema)}}}};
  return {{"application/json", std::move(media)}};
}

Json answers_of(const Operation& operation) {
  const Json text = {{"schema", {{"type", "string"}}}};
  Json content = Json::object();
  if (!operation.gives.empty()) content = json_content(operation.gives);
  if (operation.gives.empty() && !operation.only_events) content["text/plain"] = text;
  if (operation.streams || operation.only_events) content["text/event-stream"] = text;
  Json out = Json::object();
  out[std::string(operation.status)] = {{"description", operation.summary},
                                        {"content", std::move(content)}};
  for (const Failure& failure : kFailures) {
    if (operation.open && failure.status == "401") continue;
    out[std::string(failure.status)] = {{"description", failure.description},
                                        {"content", json_content(operation.error)}};
  }
  return out;
}

struct Parameter {
  std::string_view operation, name, in, schema;
};

constexpr Parameter kParameters[] = {
    {"response", "stream", "query", R"({"type": "boolean"})"},
    {"response", "starting_after", "query", R"({"type": "integer", "minimum": 0})"},
    {"responses", "Idempotency-Key", "header", R"({"type": "string", "maxLength": 255})"},
    {"submit_job", "Idempotency-Key", "header", R"({"type": "string", "maxLength": 255})"},
    {"jobs", "limit", "query", R"({"type": "integer", "minimum": 1, "maximum": 100})"},
    {"jobs", "after", "query", R"({"type": "string"})"},
    {"job", "include", "query", R"({"enum": ["token_ids"]})"},
    {"job_events", "after", "query", R"({"type": "integer", "minimum": 0})"},
    {"job_events", "Last-Event-ID", "header", R"({"type": "integer", "minimum": 0})"},
};

Json parameters_of(const Operation& operation) {
  const Json text = {{"type", "string"}};
  Json out = Json::array();
  for (const Parameter& one : kParameters)
    if (one.operation == operation.id)
      out.push_back(
          Json::object({{"name", one.name}, {"in", one.in}, {"schema", Json::parse(one.schema)}}));
  if (operation.path.find("{id}") != std::string_view::npos)
    out.push_back(
        Json::object({{"name", "id"}, {"in", "path"}, {"required", true}, {"schema", text}}));
  if (operation.path.starts_with("/v1/models"))
    out.push_back(
        Json::object({{"name", "anthropic-version"}, {"in", "header"}, {"schema", text}}));
  return out;
}

Json operation_json(const Operation& operation) {
  Json out = {{"operationId", operation.id}, {"summary", operation.summary}};
  if (operation.open) out["security"] = Json::array();
  if (Json parameters = parameters_of(operation); !parameters.empty())
    out["parameters"] = std::move(parameters);
  if (!operation.takes.empty())
    out["requestBody"] = {{"required", true}, {"content", json_content(operation.takes)}};
  out["responses"] = answers_of(operation);
  return out;
}

Json mounted_json(const MountedRoute& route) {
  Json out = operation_json({.path = route.path,
                             .method = "get",
                             .id = route.id,
                             .summary = route.summary,
                             .gives = "Object"});
  if (!out.contains("parameters")) out["parameters"] = Json::array();
  for (const std::string& name : route.params)
    out["parameters"].push_back(
        Json::object({{"name", name}, {"in", "query"}, {"schema", {{"type", "string"}}}}));
  return out;
}

// A key is asked for only where the server has some.
Json security() {
  Json bearer = Json::object(), key = Json::object();
  bearer["bearer"] = Json::array();
  key["key"] = Json::array();
  return Json::array({Json::object(), std::move(bearer), std::move(key)});
}

}  // namespace

std::string openapi_document(std::string_view version, const std::vector<MountedRoute>& mounted) {
  Json paths = Json::object();
  for (const Operation& operation : kOperations)
    paths[std::string(operation.path)][std::string(operation.method)] = operation_json(operation);
  for (const MountedRoute& route : mounted) paths[route.path]["get"] = mounted_json(route);
  Json schemas = Json::parse(openapi_request_schemas());
  schemas.update(Json::parse(openapi_answer_schemas()));
  schemas["Object"] = {{"type", "object"}};
  const Json schemes = {
      {"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
      {"key", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}},
  };
  const Json out = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Millrace"},
        {"version", version},
        {"description",
         "A language model over the APIs of OpenAI and Anthropic. Fields that are "
         "not listed are ignored."}}},
      {"servers", Json::array({Json::object({{"url", "/"}})})},
      {"security", security()},
      {"paths", std::move(paths)},
      {"components", {{"securitySchemes", schemes}, {"schemas", std::move(schemas)}}},
  };
  return json_text(out);
}

}  // namespace millrace::serve
