// enum and const: the values themselves, each written in one way but for its white space.
#include <algorithm>

#include "base/json_text.h"
#include "text/grammar/schema.h"

namespace millrace::grammar {

namespace {

using Json = SchemaCompiler::Json;

constexpr size_t kMaxValueBytes = 1 << 19;

std::string text_of(const Json& scalar) {
  return scalar.is_string() ? json_string(scalar.get_ref<const std::string&>()) : json_text(scalar);
}

std::vector<std::string> types_in(const Json& list) {
  std::vector<std::string> types;
  for (const Json& value : list) {
    const std::string type(type_of(value));
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types;
}

}  // namespace

std::string_view type_of(const Json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.type_name();
}

bool has_type(const Json& value, const std::vector<std::string>& types) {
  const auto is = [&](std::string_view type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  return is(type_of(value)) || (value.is_number() && is("number"));
}

Result<int32_t> SchemaCompiler::value(const Json& value, const At& at) {
  MILLRACE_TRY(spend(1, at));
  if (!value.is_structured()) return parts_.literal(text_of(value));
  const bool object = value.is_object();
  std::vector<int32_t> nodes = {parts_.literal(object ? "{" : "["), space()};
  for (const auto& [name, child] : value.items()) {
    if (nodes.size() > 2) nodes.insert(nodes.end(), {parts_.literal(","), space()});
    if (object) nodes.insert(nodes.end(), {parts_.literal(json_string(name) + ":"), space()});
    MILLRACE_ASSIGN(const int32_t node, this->value(child, at));
    nodes.push_back(node);
  }
  if (!value.empty()) nodes.push_back(space());
  nodes.push_back(parts_.literal(object ? "}" : "]"));
  return parts_.sequence(nodes);
}

Result<int32_t> SchemaCompiler::values(const Json& schema, const At& at) {
  Json list = Json::array();
  if (schema.contains("const")) list.push_back(schema["const"]);
  if (schema.contains("enum")) {
    const Json& all = schema["enum"];
    if (!all.is_array()) return wrong(at, "enum", "it is not a list");
    const bool fixed = !list.empty();
    if (fixed && std::find(all.begin(), all.end(), list[0]) == all.end()) return parts_.never();
    if (!fixed) list = all;
  }
  std::vector<std::string> types;
  if (schema.contains("type")) {
    MILLRACE_ASSIGN(types, types_of(schema, at));
  }
  for (const char* keyword :
       {"pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "properties", "required", "items", "prefixItems", "minItems",
        "maxItems", "additionalProperties", "patternProperties", "propertyNames"})
    if (schema.contains(keyword)) MILLRACE_TRY(give_up(at, keyword, "not held beside values"));
  std::vector<std::string> scalars;
  std::vector<int32_t> nodes;
  size_t bytes = 0;
  for (const Json& one : list) {
    if (!types.empty() && !has_type(one, types)) continue;
    if (one.is_structured()) {
      MILLRACE_ASSIGN(const int32_t node, value(one, at));
      nodes.push_back(node);
      continue;
    }
    scalars.push_back(text_of(one));
    bytes += scalars.back().size();
  }
  if (bytes > kMaxValueBytes || scalars.size() > Builder::Parts::kMaxNodes / 8) {
    MILLRACE_TRY(give_up(at, "enum", "there are too many values, only their types are held"));
    return by_types(Json::object({{"type", types_in(list)}}), at);
  }
  if (!scalars.empty()) nodes.push_back(parts_.one_of(std::move(scalars)));
  return parts_.alternatives(nodes);
}

}  // namespace millrace::grammar
