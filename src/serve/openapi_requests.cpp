#include "serve/openapi_schemas.h"

namespace millrace::serve {

// Null stands for absent everywhere, because SDKs send it.
std::string_view openapi_request_schemas() {
  return R"json({
"TextPart": {
  "anyOf": [
    {"type": "string"},
    {
      "type": "object",
      "required": ["type", "text"],
      "properties": {
        "type": {"enum": ["text", "input_text", "output_text"]},
        "text": {"type": "string"}}},
    {
      "type": "object",
      "required": ["type"],
      "description": "Images, audio and files become a placeholder and a warning",
      "properties": {
        "type": {
          "enum": ["image_url", "input_image", "image", "input_audio", "file", "input_file"]}}}]},
"Content": {
  "anyOf": [
    {"type": ["string", "null"]},
    {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}]},
"Stops": {
  "anyOf": [
    {"type": ["string", "null"], "maxLength": 1024},
    {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 1024}}]},
"Metadata": {"type": ["object", "null"]},
"Thinking": {
  "anyOf": [
    {"type": ["boolean", "null"]},
    {
      "type": "object",
      "required": ["type"],
      "properties": {
        "type": {"enum": ["enabled", "disabled", "adaptive", "auto"]},
        "budget_tokens": {"type": ["integer", "null"], "minimum": 0, "maximum": 1099511627776}}}]},
"Effort": {"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max", null]},
"Common": {
  "type": "object",
  "properties": {
    "model": {
      "type": ["string", "null"],
      "maxLength": 1024,
      "description": "Echoed; any name is answered unless the server says otherwise"},
    "stream": {"type": ["boolean", "null"]},
    "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 100},
    "top_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "min_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "top_k": {"type": ["integer", "null"], "minimum": -1, "maximum": 2147483647},
    "presence_penalty": {"type": ["number", "null"], "minimum": -100, "maximum": 100},
    "frequency_penalty": {"type": ["number", "null"], "minimum": -100, "maximum": 100},
    "repeat_penalty": {"type": ["number", "null"], "minimum": 0.001, "maximum": 1000},
    "repetition_penalty": {"type": ["number", "null"], "minimum": 0.001, "maximum": 1000},
    "seed": {
      "type": ["integer", "null"],
      "minimum": -9223372036854775808,
      "maximum": 9223372036854775807},
    "cache_salt": {
      "type": ["string", "null"],
      "maxLength": 1024,
      "description": "The cache is shared only with requests of the same salt"},
    "prompt_cache_retention": {
      "type": ["string", "null"],
      "maxLength": 1024,
      "description": "in-memory keeps the context of this request off the disk; 24h says that it may go on so late"},
    "priority": {
      "type": ["integer", "null"],
      "minimum": -1000000,
      "maximum": 1000000,
      "description": "Lower is sooner"},
    "ignore_eos": {"type": ["boolean", "null"]},
    "return_progress": {"type": ["boolean", "null"]},
    "chat_template_kwargs": {"type": ["object", "null"]},
    "enable_thinking": {"type": ["boolean", "null"]},
    "thinking_budget": {"type": ["integer", "null"], "minimum": -1, "maximum": 1099511627776},
    "thinking": {"$ref": "#/components/schemas/Thinking"}}},
"Function": {
  "type": "object",
  "required": ["name"],
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "description": {"type": ["string", "null"]},
    "parameters": {"type": ["object", "null"]}}},
"ToolCall": {
  "type": "object",
  "required": ["function"],
  "properties": {
    "id": {"type": ["string", "null"]},
    "function": {
      "type": "object",
      "required": ["name"],
      "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}}}}},
"ChatMessage": {
  "type": "object",
  "required": ["role"],
  "properties": {
    "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
    "content": {"$ref": "#/components/schemas/Content"},
    "name": {"type": ["string", "null"]},
    "tool_call_id": {"type": ["string", "null"]},
    "tool_calls": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/ToolCall"}},
    "reasoning_content": {"type": ["string", "null"]}}},
"ResponseFormat": {
  "anyOf": [
    {"type": "null"},
    {
      "type": "object",
      "required": ["type"],
      "properties": {"type": {"enum": ["text", "json_object"]}}},
    {
      "type": "object",
      "required": ["type", "json_schema"],
      "properties": {
        "type": {"const": "json_schema"},
        "json_schema": {
          "type": "object",
          "required": ["schema"],
          "properties": {
            "schema": {"type": "object"}, "strict": {"type": ["boolean", "null"]}}}}}]},
"StreamOptions": {
  "type": ["object", "null"],
  "properties": {"include_usage": {"type": ["boolean", "null"]}}},
"LogitBias": {
  "type": ["object", "null"],
  "maxProperties": 4096,
  "propertyNames": {"pattern": "^[0-9]{1,9}$"},
  "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}},
"ChatRequest": {
  "allOf": [{"$ref": "#/components/schemas/Common"}],
  "type": "object",
  "required": ["messages"],
  "properties": {
    "messages": {
      "type": "array",
      "minItems": 1,
      "items": {"$ref": "#/components/schemas/ChatMessage"}},
    "tools": {
      "type": ["array", "null"],
      "maxItems": 4096,
      "items": {
        "type": "object",
        "required": ["type", "function"],
        "properties": {
          "type": {"const": "function"},
          "function": {"$ref": "#/components/schemas/Function"}}}},
    "tool_choice": {
      "anyOf": [
        {"enum": ["auto", "none", "required", null]},
        {
          "type": "object",
          "required": ["type", "function"],
          "properties": {
            "type": {"const": "function"},
            "function": {
              "type": "object",
              "required": ["name"],
              "properties": {"name": {"type": "string", "minLength": 1}}}}}]},
    "parallel_tool_calls": {"type": ["boolean", "null"]},
    "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 128},
    "max_tokens": {"type": ["integer", "null"], "minimum": 1},
    "max_completion_tokens": {"type": ["integer", "null"], "minimum": 1},
    "stop": {"$ref": "#/components/schemas/Stops"},
    "logit_bias": {"$ref": "#/components/schemas/LogitBias"},
    "logprobs": {"type": ["boolean", "null"]},
    "top_logprobs": {
      "type": ["integer", "null"],
      "minimum": 0,
      "maximum": 20,
      "description": "Needs logprobs"},
    "response_format": {"$ref": "#/components/schemas/ResponseFormat"},
    "reasoning_effort": {"$ref": "#/components/schemas/Effort"},
    "continue_final_message": {
      "type": ["boolean", "null"],
      "description": "Needs a last message of the assistant, which the answer continues"},
    "stream_options": {"$ref": "#/components/schemas/StreamOptions"}}},
"CompletionRequest": {
  "allOf": [{"$ref": "#/components/schemas/Common"}],
  "type": "object",
  "required": ["prompt"],
  "properties": {
    "prompt": {
      "anyOf": [
        {"type": "string"},
        {"type": "array", "minItems": 1, "maxItems": 128, "items": {"type": "string"}},
        {
          "type": "array",
          "minItems": 1,
          "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}},
        {
          "type": "array",
          "minItems": 1,
          "maxItems": 128,
          "items": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}}}]},
    "n": {
      "type": ["integer", "null"],
      "minimum": 1,
      "maximum": 128,
      "description": "Choices for each prompt; at most 128 in all"},
    "max_tokens": {"type": ["integer", "null"], "minimum": 1, "default": 16},
    "echo": {"type": ["boolean", "null"]},
    "stop": {"$ref": "#/components/schemas/Stops"},
    "logit_bias": {"$ref": "#/components/schemas/LogitBias"},
    "logprobs": {
      "type": ["integer", "null"],
      "minimum": 0,
      "maximum": 20,
      "description": "Not together with echo"},
    "response_format": {"$ref": "#/components/schemas/ResponseFormat"},
    "stream_options": {"$ref": "#/components/schemas/StreamOptions"}}},
"Item": {
  "type": "object",
  "properties": {
    "type": {
      "type": ["string", "null"],
      "not": {"const": "item_reference"},
      "description": "message where it is absent; items of unknown types are left out"}},
  "anyOf": [
    {
      "required": ["role"],
      "properties": {
        "type": {"enum": ["message", null]},
        "role": {"enum": ["user", "assistant", "system", "developer"]},
        "content": {"$ref": "#/components/schemas/Content"}}},
    {
      "required": ["type", "name"],
      "properties": {
        "type": {"enum": ["function_call", "custom_tool_call"]},
        "name": {"type": "string"},
        "call_id": {"type": "string"},
        "arguments": {"type": "string"},
        "input": {"type": "string"}}},
    {
      "required": ["type"],
      "properties": {
        "type": {"enum": ["function_call_output", "custom_tool_call_output"]},
        "call_id": {"type": "string"},
        "output": {"$ref": "#/components/schemas/Content"}}},
    {
      "required": ["type"],
      "properties": {
        "type": {"const": "reasoning"},
        "summary": {
          "type": "array",
          "items": {
            "type": "object",
            "required": ["type", "text"],
            "properties": {"type": {"const": "summary_text"}, "text": {"type": "string"}}}}}}]},
"ResponsesRequest": {
  "allOf": [{"$ref": "#/components/schemas/Common"}],
  "type": "object",
  "required": ["input"],
  "properties": {
    "input": {
      "anyOf": [
        {"type": "string"},
        {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Item"}}]},
    "instructions": {"type": ["string", "null"]},
    "tools": {
      "type": ["array", "null"],
      "maxItems": 4096,
      "items": {
        "allOf": [{"$ref": "#/components/schemas/Function"}],
        "type": "object",
        "required": ["type"],
        "properties": {
          "type": {"enum": ["function", "custom"]},
          "strict": {"type": ["boolean", "null"]}}}},
    "tool_choice": {
      "anyOf": [
        {"enum": ["auto", "none", "required", null]},
        {
          "type": "object",
          "required": ["type", "name"],
          "properties": {
            "type": {"enum": ["function", "custom"]},
            "name": {"type": "string", "minLength": 1}}}]},
    "parallel_tool_calls": {"type": ["boolean", "null"]},
    "max_output_tokens": {"type": ["integer", "null"], "minimum": 1},
    "reasoning": {
      "type": ["object", "null"],
      "properties": {
        "effort": {"$ref": "#/components/schemas/Effort"},
        "summary": {"type": ["string", "null"]}}},
    "text": {
      "type": ["object", "null"],
      "properties": {
        "format": {
          "anyOf": [
            {"type": "null"},
            {
              "type": "object",
              "required": ["type"],
              "properties": {"type": {"enum": ["text", "json_object"]}}},
            {
              "type": "object",
              "required": ["type", "schema"],
              "properties": {
                "type": {"const": "json_schema"},
                "schema": {"type": "object"},
                "strict": {"type": ["boolean", "null"]}}}]}}},
    "metadata": {"$ref": "#/components/schemas/Metadata"},
    "background": {
      "type": ["boolean", "null"],
      "description": "As a job: GET /v1/responses/{id} has the answer"},
    "previous_response_id": {
      "type": "null",
      "description": "Nothing is stored: send the whole input"}}},
"Block": {
  "type": "object",
  "required": ["type"],
  "anyOf": [
    {"required": ["text"], "properties": {"type": {"const": "text"}, "text": {"type": "string"}}},
    {
      "required": ["id", "name"],
      "properties": {
        "type": {"const": "tool_use"},
        "id": {"type": "string"},
        "name": {"type": "string"},
        "input": {"type": "object"}}},
    {
      "required": ["tool_use_id"],
      "properties": {
        "type": {"const": "tool_result"},
        "tool_use_id": {"type": "string"},
        "content": {"$ref": "#/components/schemas/Content"},
        "is_error": {"type": ["boolean", "null"]}}},
    {
      "properties": {
        "type": {"enum": ["thinking", "redacted_thinking", "image"]},
        "thinking": {"type": "string"}}}]},
"AnthropicPrompt": {
  "allOf": [{"$ref": "#/components/schemas/Common"}],
  "type": "object",
  "required": ["messages"],
  "properties": {
    "system": {
      "anyOf": [
        {"type": ["string", "null"]},
        {
          "type": "array",
          "items": {
            "type": "object",
            "required": ["type", "text"],
            "properties": {"type": {"const": "text"}, "text": {"type": "string"}}}}]},
    "messages": {
      "type": "array",
      "minItems": 1,
      "items": {
        "type": "object",
        "required": ["role", "content"],
        "properties": {
          "role": {"enum": ["user", "assistant"]},
          "content": {
            "anyOf": [
              {"type": "string"},
              {"type": "array", "items": {"$ref": "#/components/schemas/Block"}}]}}}},
    "tools": {
      "type": ["array", "null"],
      "maxItems": 4096,
      "items": {
        "type": "object",
        "required": ["name", "input_schema"],
        "properties": {
          "name": {"type": "string", "minLength": 1},
          "description": {"type": ["string", "null"]},
          "input_schema": {"type": "object"},
          "strict": {"type": ["boolean", "null"]}}}},
    "tool_choice": {
      "anyOf": [
        {"type": "null"},
        {
          "type": "object",
          "required": ["type"],
          "properties": {
            "type": {"enum": ["auto", "any", "none"]},
            "disable_parallel_tool_use": {"type": ["boolean", "null"]}}},
        {
          "type": "object",
          "required": ["type", "name"],
          "properties": {"type": {"const": "tool"}, "name": {"type": "string"}}}]},
    "stop_sequences": {
      "type": ["array", "null"],
      "maxItems": 64,
      "items": {"type": "string", "maxLength": 1024}},
    "output_config": {
      "type": ["object", "null"],
      "properties": {
        "effort": {"$ref": "#/components/schemas/Effort"},
        "format": {
          "anyOf": [
            {"type": "null"},
            {
              "type": "object",
              "required": ["type", "schema"],
              "properties": {"type": {"const": "json_schema"}, "schema": {"type": "object"}}}]}}},
    "metadata": {"$ref": "#/components/schemas/Metadata"}}},
"MessagesRequest": {
  "allOf": [{"$ref": "#/components/schemas/AnthropicPrompt"}],
  "type": "object",
  "required": ["max_tokens"],
  "properties": {"max_tokens": {"type": "integer", "minimum": 1}}},
"CountTokensRequest": {
  "allOf": [{"$ref": "#/components/schemas/AnthropicPrompt"}],
  "type": "object",
  "properties": {"max_tokens": {"type": ["integer", "null"], "minimum": 1}}},
"JobRequest": {
  "type": "object",
  "properties": {
    "api": {
      "enum": ["chat_completions", "responses", "messages"],
      "description": "Which API the body is of. Without it: responses where it has an input, messages where it has a system or the request an anthropic-version, else chat completions"}},
  "anyOf": [
    {"$ref": "#/components/schemas/ChatRequest"},
    {"$ref": "#/components/schemas/ResponsesRequest"},
    {"$ref": "#/components/schemas/MessagesRequest"}]},
"TokenizeRequest": {
  "type": "object",
  "required": ["content"],
  "properties": {
    "content": {"type": "string"},
    "add_special": {
      "type": "boolean",
      "description": "Add the tokens that begin a text (default: false)"},
    "parse_special": {
      "type": "boolean",
      "description": "Read control tokens in the text as such (default: false)"}}},
"DetokenizeRequest": {
  "type": "object",
  "required": ["tokens"],
  "properties": {
    "tokens": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}}}}
})json";
}

}  // namespace millrace::serve
