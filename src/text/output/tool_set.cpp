#include "text/output/tool_set.h"

#include <nlohmann/json.hpp>

#include "text/output/json_scan.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr ValueTypes kAny = {true, true, true, true, true, true};
// Schemas nest alternatives without limit; past this, anything goes.
constexpr int kMaxAlternatives = 4;

const Json* member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

void add_named(ValueTypes& types, const Json& name) {
  if (!name.is_string()) return;
  const auto& text = name.get_ref<const std::string&>();
  types.string |= text == "string";
  types.number |= text == "number" || text == "integer";
  types.boolean |= text == "boolean";
  types.null |= text == "null";
  types.object |= text == "object";
  types.array |= text == "array";
}

void add_value(ValueTypes& types, const Json& value) {
  types.string |= value.is_string();
  types.number |= value.is_number();
  types.boolean |= value.is_boolean();
  types.null |= value.is_null();
  types.object |= value.is_object();
  types.array |= value.is_array();
}

void add_all(ValueTypes& types, const ValueTypes& more) {
  types.string |= more.string;
  types.number |= more.number;
  types.boolean |= more.boolean;
  types.null |= more.null;
  types.object |= more.object;
  types.array |= more.array;
}

ValueTypes types_of(const Json& schema, int depth = 0) {
  ValueTypes types;
  bool found = false;
  if (const Json* type = member(schema, "type")) {
    found = true;
    if (type->is_array())
      for (const Json& one : *type) add_named(types, one);
    else
      add_named(types, *type);
  } else if (const Json* values = member(schema, "enum"); values && values->is_array()) {
    found = true;
    for (const Json& value : *values) add_value(types, value);
  } else if (const Json* value = member(schema, "const")) {
    found = true;
    add_value(types, *value);
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    const Json* choices = member(schema, key);
    if (found || choices == nullptr || !choices->is_array() || depth >= kMaxAlternatives) continue;
    for (const Json& choice : *choices) add_all(types, types_of(choice, depth + 1));
    found = true;
  }
  return found ? types : kAny;
}

bool is_one_of(std::string_view text, std::string_view a, std::string_view b) {
  return text == a || text == b;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

ToolSet::ToolSet(const Json& tools) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools) {
    const Json* inner = member(tool, "function");
    const Json& function = inner != nullptr ? *inner : tool;
    const Json* name = member(function, "name");
    if (name == nullptr || !name->is_string()) continue;
    Parameters& parameters = tools_[name->get<std::string>()];
    const Json* schema = member(function, "parameters");
    if (schema == nullptr) schema = member(function, "input_schema");
    const Json* properties = schema == nullptr ? nullptr : member(*schema, "properties");
    if (properties == nullptr || !properties->is_object()) continue;
    for (const auto& [key, value] : properties->items()) parameters[key] = types_of(value);
  }
}

ValueTypes ToolSet::types(std::string_view tool, std::string_view parameter) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return {.string = true};
  const auto type = found->second.find(parameter);
  return type == found->second.end() ? ValueTypes{.string = true} : type->second;
}

std::string typed_json(std::string_view text, const ValueTypes& types) {
  const std::string_view value = trimmed(text);
  const char first = value.empty() ? 'x' : value.front();
  if (types.null && is_one_of(value, "null", "None")) return "null";
  if (types.boolean && is_one_of(value, "true", "True")) return "true";
  if (types.boolean && is_one_of(value, "false", "False")) return "false";
  const bool may_be_json = (types.object && first == '{') || (types.array && first == '[') ||
                           (types.number && (first == '-' || (first >= '0' && first <= '9')));
  if (may_be_json && Json::accept(value)) return std::string(value);
  std::string out = "\"";
  append_escaped(out, text);
  return out += '"';
}

}  // namespace millrace
