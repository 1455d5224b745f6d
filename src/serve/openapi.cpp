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
     .summary = "Answer a list of items (OpenAI Responses, without a store)",
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
    {"411", "The body has no length"},
    {"413", "The body is too large"},
    {"414", "The path is too long"},
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
  if (operation.gives.empty()) content["text/plain"] = text;
  if (operation.streams) content["text/event-stream"] = text;
  Json out = Json::object();
  out["200"] = {{"description", operation.summary}, {"content", std::move(content)}};
  for (const Failure& failure : kFailures) {
    if (operation.open && failure.status == "401") continue;
    out[std::string(failure.status)] = {{"description", failure.description},
                                        {"content", json_content(operation.error)}};
  }
  return out;
}

Json parameters_of(const Operation& operation) {
  const Json text = {{"type", "string"}};
  Json out = Json::array();
  if (operation.path.ends_with("{id}"))
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

// A key is asked for only where the server has some.
Json security() {
  Json bearer = Json::object(), key = Json::object();
  bearer["bearer"] = Json::array();
  key["key"] = Json::array();
  return Json::array({Json::object(), std::move(bearer), std::move(key)});
}

}  // namespace

std::string openapi_document(std::string_view version) {
  Json paths = Json::object();
  for (const Operation& operation : kOperations)
    paths[std::string(operation.path)][std::string(operation.method)] = operation_json(operation);
  Json schemas = Json::parse(openapi_request_schemas());
  schemas.update(Json::parse(openapi_answer_schemas()));
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
