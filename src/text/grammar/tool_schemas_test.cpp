#include "text/grammar/tool_schemas_test.h"

#include <fmt/format.h>

namespace millrace::grammar::test {

namespace {

std::string many(std::string_view before, std::string_view each, size_t n, std::string_view after) {
  std::string out(before);
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) out += ',';
    out += fmt::format(fmt::runtime(each), i);
  }
  return out + std::string(after);
}

// References that double at every step.
std::string doubling(std::string_view keyword) {
  std::string out = R"({"$ref": "#/$defs/d0", "$defs": {"d40": {"type": "null"})";
  for (int i = 0; i < 40; ++i)
    out += fmt::format(
        R"(, "d{0}": {{"{2}": [{{"$ref": "#/$defs/d{1}"}}, {{"$ref": "#/$defs/d{1}"}}]}})", i,
        i + 1, keyword);
  return out + "}}";
}

std::string nested(size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += R"({"items":)";
  return out + "{}" + std::string(n, '}');
}

std::vector<NamedSchema> make_hostile() {
  return {
      {"enum of 100,000", many(R"({"enum": [)", R"("value{}")", 100'000, "]}")},
      {"enum of 10,000", many(R"({"enum": [)", R"("value{}")", 10'000, "]}")},
      {"anyOf of 100,000", many(R"({"anyOf": [)", R"({{"const": "value{}"}})", 100'000, "]}")},
      {"9,000 properties",
       many(R"({"properties": {)", R"("p{}": {{"type": "string"}})", 9'000, "}}")},
      {"5,000 properties and others", many(R"({"additionalProperties": {}, "properties": {)",
                                           R"("property{}": {{"type": "string"}})", 5'000, "}}")},
      {"500 properties and others", many(R"({"additionalProperties": {}, "properties": {)",
                                         R"("property{}": {{"type": "string"}})", 500, "}}")},
      {"anyOf merged 500 times",
       many(R"({"properties": {"a": {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}}, "anyOf": [)",
            R"({{"required": ["a{}"]}})", 500, "]}")},
      {"long string", R"({"type": "string", "maxLength": 1000000000, "minLength": 999999999})"},
      {"long array", R"({"type": "array", "minItems": 1000000, "maxItems": 10000000000})"},
      {"repeats of repeats", R"({"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"})"},
      {"repeats of nothing", R"({"type": "string", "pattern": "^((){1,1000}){1,1000}$"})"},
      {"exponential automaton", R"({"type": "string", "pattern": "(a|b)*a(a|b){30}$"})"},
      {"another one", R"({"type": "string", "pattern": "(.*a){25}"})"},
      {"1,000 characters", R"({"type": "string", "pattern": "^.{1000}$", "maxLength": 100000})"},
      {"500 and lengths", R"({"type": "string", "pattern": "^.{1,500}$", "maxLength": 100})"},
      {"groups", R"({"type": "string", "pattern": ")" + std::string(10'000, '(') + "\"}"},
      {"50 patterns",
       many(R"({"anyOf": [)", R"({{"type": "string", "pattern": "^.{{1,{}}}[a-z]"}})", 50, "]}")},
      {"nesting", nested(90)},
      {"brackets", std::string(100'000, '[')},
      {"references that double", doubling("anyOf")},
      {"merges that double", doubling("allOf")},
  };
}

constexpr const char* kTodo = R"({"type": "object", "properties": {"todos": {"type": "array",
  "items": {"type": "object", "properties": {"content": {"type": "string", "minLength": 1},
  "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
  "priority": {"type": "string", "enum": ["high", "medium", "low"]}, "id": {"type": "string"}},
  "required": ["content", "status", "id"], "additionalProperties": false}}},
  "required": ["todos"], "additionalProperties": false,
  "$schema": "http://json-schema.org/draft-07/schema#"})";

std::vector<NamedSchema> make_tools() {
  return {
      {"read_file", R"({"type": "object", "properties": {"file_path": {"type": "string",
        "description": "Absolute path"}, "offset": {"type": "integer", "minimum": 0},
        "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991}},
        "required": ["file_path"], "additionalProperties": false})"},
      {"write_file", R"({"type": "object", "properties": {"file_path": {"type": "string"},
        "content": {"type": "string"}}, "required": ["file_path", "content"]})"},
      {"edit_file", R"({"type": "object", "properties": {"file_path": {"type": "string"},
        "old_string": {"type": "string"}, "new_string": {"type": "string"},
        "replace_all": {"type": "boolean", "default": false}},
        "required": ["file_path", "old_string", "new_string"], "additionalProperties": false})"},
      {"multi_edit", R"({"type": "object", "properties": {"file_path": {"type": "string"},
        "edits": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {
        "old_string": {"type": "string"}, "new_string": {"type": "string"},
        "replace_all": {"type": "boolean"}}, "required": ["old_string", "new_string"],
        "additionalProperties": false}}}, "required": ["file_path", "edits"]})"},
      {"bash", R"({"type": "object", "properties": {"command": {"type": "string"},
        "timeout": {"type": "number", "minimum": 0, "maximum": 600000},
        "description": {"type": "string", "maxLength": 200},
        "run_in_background": {"type": "boolean"}}, "required": ["command"]})"},
      {"glob", R"({"type": "object", "properties": {"pattern": {"type": "string"},
        "path": {"type": ["string", "null"]}}, "required": ["pattern"]})"},
      {"grep", R"({"type": "object", "properties": {"pattern": {"type": "string"},
        "path": {"type": "string"}, "glob": {"type": "string"}, "output_mode": {"type": "string",
        "enum": ["content", "files_with_matches", "count"]}, "-A": {"type": "number"},
        "-B": {"type": "number"}, "-C": {"type": "number"}, "-n": {"type": "boolean"},
        "-i": {"type": "boolean"}, "type": {"type": "string"}, "head_limit": {"type": "number"},
        "multiline": {"type": "boolean"}}, "required": ["pattern"]})"},
      {"ls", R"({"type": "object", "properties": {"path": {"type": "string"}, "ignore":
        {"type": "array", "items": {"type": "string"}}}, "required": ["path"]})"},
      {"todo_write", kTodo},
      {"web_fetch", R"({"type": "object", "properties": {"url": {"type": "string",
        "format": "uri"}, "prompt": {"type": "string"}}, "required": ["url", "prompt"]})"},
      {"web_search", R"({"type": "object", "properties": {"query": {"type": "string",
        "minLength": 2}, "allowed_domains": {"type": "array", "items": {"type": "string",
        "pattern": "^[a-z0-9.-]+$"}}, "blocked_domains": {"type": "array", "items":
        {"type": "string"}}}, "required": ["query"]})"},
      {"task", R"({"type": "object", "properties": {"description": {"type": "string"},
        "prompt": {"type": "string"}, "subagent_type": {"type": "string"}},
        "required": ["description", "prompt", "subagent_type"]})"},
      {"notebook_edit", R"({"type": "object", "properties": {"notebook_path": {"type": "string"},
        "cell_id": {"type": "string"}, "new_source": {"type": "string"}, "cell_type":
        {"type": "string", "enum": ["code", "markdown"]}, "edit_mode": {"type": "string",
        "enum": ["replace", "insert", "delete"]}}, "required": ["notebook_path", "new_source"]})"},
      {"apply_patch", R"({"type": "object", "properties": {"input": {"type": "string",
        "description": "The entire patch"}}, "required": ["input"]})"},
      {"update_plan", R"({"type": "object", "properties": {"explanation": {"type": "string"},
        "plan": {"type": "array", "items": {"type": "object", "properties": {"step":
        {"type": "string"}, "status": {"type": "string", "enum": ["pending", "in_progress",
        "completed"]}}, "required": ["step", "status"], "additionalProperties": false}}},
        "required": ["plan"], "additionalProperties": false})"},
      {"ask_user", R"({"type": "object", "properties": {"questions": {"type": "array",
        "minItems": 1, "maxItems": 4, "items": {"type": "object", "properties": {"question":
        {"type": "string"}, "header": {"type": "string", "maxLength": 12}, "options": {"type":
        "array", "minItems": 2, "maxItems": 4, "items": {"type": "object", "properties": {"label":
        {"type": "string"}, "description": {"type": "string"}}, "required": ["label",
        "description"]}}, "multiSelect": {"type": "boolean"}}, "required": ["question", "header",
        "options"]}}}, "required": ["questions"]})"},
      {"kill_process", R"({"type": "object", "properties": {"id": {"type": "string",
        "format": "uuid"}, "signal": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 64},
        {"enum": ["SIGTERM", "SIGKILL", "SIGINT"]}]}}, "required": ["id"]})"},
      {"http_request", R"({"type": "object", "properties": {"method": {"enum": ["GET", "POST",
        "PUT", "DELETE"]}, "url": {"type": "string"}, "headers": {"type": "object",
        "additionalProperties": {"type": "string"}}, "body": {}}, "required": ["method", "url"]})"},
      {"schedule", R"({"type": "object", "properties": {"at": {"type": "string", "format":
        "date-time"}, "repeat": {"type": ["string", "null"], "enum": ["daily", "weekly", null]},
        "message": {"type": "string", "maxLength": 10000}}, "required": ["at", "message"]})"},
      {"query", R"({"type": "object", "properties": {"filter": {"$ref": "#/$defs/filter"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000}}, "required": ["filter"],
        "$defs": {"filter": {"anyOf": [{"type": "object", "properties": {"and": {"type": "array",
        "items": {"$ref": "#/$defs/filter"}}}, "required": ["and"]}, {"type": "object",
        "properties": {"field": {"type": "string"}, "op": {"enum": ["=", "<", ">", "~"]},
        "value": {"type": ["string", "number", "boolean", "null"]}},
        "required": ["field", "op", "value"]}]}}})"},
  };
}

}  // namespace

const std::vector<NamedSchema>& tool_schemas() {
  static const std::vector<NamedSchema> all = make_tools();
  return all;
}

const std::vector<NamedSchema>& hostile_schemas() {
  static const std::vector<NamedSchema> all = make_hostile();
  return all;
}

}  // namespace millrace::grammar::test
