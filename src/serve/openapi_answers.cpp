#include "serve/openapi_schemas.h"

namespace millrace::serve {

std::string_view openapi_answer_schemas() {
  return R"json({
"Error": {
  "type": "object",
  "required": ["error"],
  "properties": {
    "error": {
      "type": "object",
      "required": ["message", "type", "param", "code"],
      "properties": {
        "message": {"type": "string"},
        "type": {"type": "string"},
        "param": {
          "type": ["string", "null"],
          "description": "The path of the field that is wrong"},
        "code": {"type": ["string", "null"]}}}}},
"AnthropicError": {
  "type": "object",
  "required": ["type", "error"],
  "properties": {
    "type": {"const": "error"},
    "error": {
      "type": "object",
      "required": ["type", "message"],
      "properties": {"type": {"type": "string"}, "message": {"type": "string"}}}}},
"Usage": {
  "type": "object",
  "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {
    "prompt_tokens": {"type": "integer"},
    "completion_tokens": {"type": "integer"},
    "total_tokens": {"type": "integer"},
    "prompt_tokens_details": {
      "type": "object",
      "properties": {"cached_tokens": {"type": "integer"}}},
    "completion_tokens_details": {
      "type": "object",
      "properties": {"reasoning_tokens": {"type": "integer"}}}}},
"Timings": {
  "type": "object",
  "properties": {
    "queue_ms": {"type": "number"},
    "cache_n": {"type": "integer"},
    "cache_disk_n": {"type": "integer", "description": "Of cache_n, tokens that came from disk"},
    "prompt_n": {"type": "integer"},
    "prompt_ms": {"type": "number"},
    "prompt_per_second": {"type": "number"},
    "predicted_n": {"type": "integer"},
    "predicted_ms": {"type": "number"},
    "predicted_per_second": {"type": "number"}}},
"Warnings": {
  "type": "array",
  "items": {"type": "string"},
  "description": "What of the request was ignored"},
"ChatCompletion": {
  "type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage", "system_fingerprint"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "chat.completion"},
    "created": {"type": "integer"},
    "model": {"type": "string"},
    "choices": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["index", "message", "finish_reason"],
        "properties": {
          "index": {"type": "integer"},
          "message": {
            "type": "object",
            "required": ["role", "content"],
            "properties": {
              "role": {"const": "assistant"},
              "content": {"type": ["string", "null"]},
              "refusal": {"type": "null"},
              "reasoning_content": {"type": "string"},
              "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}}}},
          "logprobs": {"type": ["object", "null"]},
          "finish_reason": {"enum": ["stop", "length", "tool_calls"]}}}},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "seed": {
      "type": "integer",
      "description": "The seed that was used, drawn where none was asked for"},
    "system_fingerprint": {
      "type": "string",
      "description": "The same model, fingerprint and seed give the same tokens"},
    "warnings": {"$ref": "#/components/schemas/Warnings"}}},
"Completion": {
  "type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage", "system_fingerprint"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "text_completion"},
    "created": {"type": "integer"},
    "model": {"type": "string"},
    "choices": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["index", "text", "finish_reason"],
        "properties": {
          "index": {"type": "integer"},
          "text": {"type": "string"},
          "logprobs": {"type": ["object", "null"]},
          "finish_reason": {"enum": ["stop", "length"]}}}},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "seed": {"type": "integer"},
    "system_fingerprint": {"type": "string"},
    "warnings": {"$ref": "#/components/schemas/Warnings"}}},
"Response": {
  "type": "object",
  "required": ["id", "object", "created_at", "status", "model", "output", "usage"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "response"},
    "created_at": {"type": "integer"},
    "status": {
      "enum": ["completed", "incomplete", "failed", "in_progress", "queued", "cancelled"]},
    "model": {"type": "string"},
    "error": {"type": ["object", "null"]},
    "incomplete_details": {"type": ["object", "null"]},
    "output": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["id", "type"],
        "properties": {
          "id": {"type": "string"},
          "type": {"enum": ["reasoning", "message", "function_call", "custom_tool_call"]}}}},
    "usage": {
      "type": "object",
      "required": ["input_tokens", "output_tokens", "total_tokens"],
      "properties": {
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "total_tokens": {"type": "integer"}}},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "seed": {"type": "integer"},
    "system_fingerprint": {"type": "string"},
    "warnings": {"$ref": "#/components/schemas/Warnings"}}},
"Message": {
  "type": "object",
  "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
  "properties": {
    "id": {"type": "string"},
    "type": {"const": "message"},
    "role": {"const": "assistant"},
    "model": {"type": "string"},
    "content": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": ["thinking", "text", "tool_use"]}}}},
    "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use"]},
    "stop_sequence": {"type": ["string", "null"]},
    "usage": {
      "type": "object",
      "required": ["input_tokens", "output_tokens"],
      "properties": {
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "cache_creation_input_tokens": {"type": "integer"},
        "cache_read_input_tokens": {"type": "integer"}}},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "seed": {"type": "integer"},
    "system_fingerprint": {"type": "string"},
    "warnings": {"$ref": "#/components/schemas/Warnings"}}},
"Model": {
  "type": "object",
  "required": ["id", "object", "created", "owned_by"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "model"},
    "created": {"type": "integer"},
    "owned_by": {"type": "string"},
    "max_model_len": {"type": "integer"},
    "meta": {
      "type": "object",
      "properties": {
        "n_ctx_train": {"type": "integer"},
        "n_vocab": {"type": "integer"},
        "n_params": {"type": "integer"},
        "size": {"type": "integer"}}}}},
"ModelList": {
  "type": "object",
  "required": ["object", "data"],
  "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
"AnthropicModel": {
  "type": "object",
  "required": ["type", "id", "display_name", "created_at"],
  "properties": {
    "type": {"const": "model"},
    "id": {"type": "string"},
    "display_name": {"type": "string"},
    "created_at": {"type": "string", "format": "date-time"},
    "max_input_tokens": {"type": "integer"},
    "max_tokens": {"type": "integer"}}},
"AnthropicModelList": {
  "type": "object",
  "required": ["data", "has_more", "first_id", "last_id"],
  "properties": {
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/AnthropicModel"}},
    "has_more": {"type": "boolean"},
    "first_id": {"type": ["string", "null"]},
    "last_id": {"type": ["string", "null"]}}},
"Job": {
  "type": "object",
  "required": ["id", "object", "api", "status", "model", "created_at", "tokens", "stale_because"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "job"},
    "api": {"enum": ["chat_completions", "responses", "messages"]},
    "status": {
      "enum": ["queued", "running", "paused", "stale", "completed", "failed", "cancelled"]},
    "model": {"type": "string"},
    "created_at": {"type": "integer"},
    "started_at": {"type": ["integer", "null"]},
    "ended_at": {"type": ["integer", "null"]},
    "expires_at": {"type": ["integer", "null"]},
    "seed": {"type": "integer"},
    "max_tokens": {"type": "integer"},
    "prompt_tokens": {"type": "integer"},
    "tokens": {"type": "integer", "description": "Committed so far"},
    "runs": {"type": "integer", "description": "How often it was begun or gone on with"},
    "system_fingerprint": {"type": "string"},
    "stale_because": {"type": "array", "items": {"type": "string"}},
    "finish_reason": {"type": ["string", "null"]},
    "error": {"type": ["object", "null"]},
    "idempotency_key": {"type": ["string", "null"]},
    "response": {
      "type": ["object", "null"],
      "description": "The answer in the shape of its API, once it has ended"},
    "prompt_token_ids": {"type": "array", "items": {"type": "integer"}},
    "token_ids": {"type": "array", "items": {"type": "integer"}}}},
"JobList": {
  "type": "object",
  "required": ["object", "data", "has_more", "first_id", "last_id"],
  "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
    "has_more": {"type": "boolean"},
    "first_id": {"type": ["string", "null"]},
    "last_id": {"type": ["string", "null"]}}},
"Deleted": {
  "type": "object",
  "required": ["id", "object", "deleted"],
  "properties": {
    "id": {"type": "string"},
    "object": {"type": "string"},
    "deleted": {"const": true}}},
"Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
"TokenCount": {
  "type": "object",
  "required": ["input_tokens"],
  "properties": {"input_tokens": {"type": "integer", "minimum": 0}}},
"Tokens": {
  "type": "object",
  "required": ["tokens", "count"],
  "properties": {
    "tokens": {"type": "array", "items": {"type": "integer"}},
    "count": {"type": "integer"}}},
"Text": {"type": "object", "required": ["content"], "properties": {"content": {"type": "string"}}},
"RenderedPrompt": {
  "type": "object",
  "required": ["prompt"],
  "properties": {"prompt": {"type": "string"}}},
"Version": {
  "type": "object",
  "required": ["version"],
  "properties": {"version": {"type": "string"}}},
"AnyModel": {
  "anyOf": [
    {"$ref": "#/components/schemas/Model"},
    {"$ref": "#/components/schemas/AnthropicModel"}]},
"AnyModelList": {
  "anyOf": [
    {"$ref": "#/components/schemas/ModelList"},
    {"$ref": "#/components/schemas/AnthropicModelList"}]}
})json";
}

}  // namespace millrace::serve
