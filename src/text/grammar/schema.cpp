#include "text/grammar/schema.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/utf8.h"

namespace millrace::grammar {

namespace {

using Json = SchemaCompiler::Json;

// Each list is sorted.
constexpr auto kKnown = std::to_array<std::string_view>({"$defs",
                                                         "$ref",
                                                         "additionalItems",
                                                         "additionalProperties",
                                                         "allOf",
                                                         "anyOf",
                                                         "const",
                                                         "definitions",
                                                         "enum",
                                                         "exclusiveMaximum",
                                                         "exclusiveMinimum",
                                                         "format",
                                                         "items",
                                                         "maxItems",
                                                         "maxLength",
                                                         "maxProperties",
                                                         "maximum",
                                                         "minItems",
                                                         "minLength",
                                                         "minProperties",
                                                         "minimum",
                                                         "nullable",
                                                         "oneOf",
                                                         "pattern",
                                                         "patternProperties",
                                                         "prefixItems",
                                                         "properties",
                                                         "propertyNames",
                                                         "required",
                                                         "type",
                                                         "unevaluatedProperties"});
constexpr auto kAnnotations = std::to_array<std::string_view>({"$anchor",
                                                               "$comment",
                                                               "$id",
                                                               "$schema",
                                                               "$vocabulary",
                                                               "contentEncoding",
                                                               "contentMediaType",
                                                               "contentSchema",
                                                               "default",
                                                               "deprecated",
                                                               "description",
                                                               "discriminator",
                                                               "example",
                                                               "examples",
                                                               "externalDocs",
                                                               "id",
                                                               "readOnly",
                                                               "title",
                                                               "writeOnly",
                                                               "xml"});
constexpr auto kNotHeld = std::to_array<std::string_view>(
    {"$dynamicAnchor", "$dynamicRef", "$recursiveRef", "contains", "dependencies",
     "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "minContains",
     "multipleOf", "not", "then", "unevaluatedItems", "uniqueItems"});

template <size_t N>
bool in(const std::array<std::string_view, N>& list, std::string_view keyword) {
  return std::find(list.begin(), list.end(), keyword) != list.end();
}

bool says_nothing(const std::string& keyword, const Json& value) {
  if (keyword == "uniqueItems") return value.is_boolean() && !value.get<bool>();
  if (keyword == "multipleOf") return value.is_number_integer() && value.get<int64_t>() == 1;
  return false;
}

constexpr int kMaxJsonDepth = 256;

bool nests_within(const Json& json, int depth) {
  if (!json.is_structured()) return true;
  return depth > 0 && std::all_of(json.begin(), json.end(), [&](const Json& child) {
           return nests_within(child, depth - 1);
         });
}

// What a schema without a type is about, by its other keywords.
std::vector<std::string> guessed_types(const Json& schema) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kHints = {
      {{"properties", "object"},
       {"required", "object"},
       {"additionalProperties", "object"},
       {"patternProperties", "object"},
       {"propertyNames", "object"},
       {"minProperties", "object"},
       {"maxProperties", "object"},
       {"items", "array"},
       {"prefixItems", "array"},
       {"minItems", "array"},
       {"maxItems", "array"},
       {"pattern", "string"},
       {"format", "string"},
       {"minLength", "string"},
       {"maxLength", "string"},
       {"minimum", "number"},
       {"maximum", "number"},
       {"exclusiveMinimum", "number"},
       {"exclusiveMaximum", "number"},
       {"uniqueItems", "array"}}};
  std::vector<std::string> types;
  for (const auto& [keyword, type] : kHints)
    if (schema.contains(keyword) && std::find(types.begin(), types.end(), type) == types.end())
      types.emplace_back(type);
  return types;
}

bool only_annotates(const Json& schema) {
  return std::all_of(schema.items().begin(), schema.items().end(), [](const auto& item) {
    return item.key() == "$defs" || item.key() == "definitions" || !in(kKnown, item.key());
  });
}

Json without(const Json& schema, std::string_view keyword) {
  Json out = Json::object();
  for (const auto& [key, value] : schema.items())
    if (key != keyword && key != "$defs" && key != "definitions") out[key] = value;
  return out;
}

// A property that each branch fixes to another value, or types that no two branches share.
bool disjoint(const Json& branches) {
  std::set<std::string> types;
  size_t n_types = 0;
  for (const Json& branch : branches) {
    if (!branch.is_object() || !branch.contains("type")) return false;
    const Json& type = branch["type"];
    for (const Json& one : type.is_array() ? type : Json::array({type})) {
      if (!one.is_string()) return false;
      const std::string name = one.get<std::string>();
      types.insert(name == "integer" ? "number" : name);
      ++n_types;
    }
  }
  return types.size() == n_types;
}

const Json* fixed(const Json& branch, const std::string& name) {
  if (!branch.is_object() || !branch.contains("properties")) return nullptr;
  const Json& properties = branch["properties"];
  if (!properties.is_object() || !properties.contains(name)) return nullptr;
  const Json& property = properties[name];
  if (!property.is_object()) return nullptr;
  if (property.contains("const")) return &property["const"];
  if (!property.contains("enum") || !property["enum"].is_array()) return nullptr;
  return property["enum"].size() == 1 ? &property["enum"][0] : nullptr;
}

bool told_apart_by(const Json& branches, const std::string& name) {
  std::set<std::string> values;
  for (const Json& branch : branches) {
    const Json* value = fixed(branch, name);
    const bool required = branch.is_object() && branch.contains("required") &&
                          branch["required"].is_array() &&
                          std::find(branch["required"].begin(), branch["required"].end(), name) !=
                              branch["required"].end();
    if (value == nullptr || !required) return false;
    values.insert(value->dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return values.size() == branches.size();
}

}  // namespace

SchemaCompiler::At SchemaCompiler::At::down(std::string_view key) const {
  return {fmt::format("{}.{}", path, printable(key, 100)), depth + 1};
}

SchemaCompiler::At SchemaCompiler::At::down(std::string_view key, size_t index) const {
  return {fmt::format("{}.{}[{}]", path, key, index), depth + 1};
}

Status SchemaCompiler::wrong(const At& at, std::string_view keyword, std::string_view why) const {
  return error(Code::invalid_argument, "{}.{}: {}", at.path, keyword, why);
}

void SchemaCompiler::warn(const At& at, std::string_view keyword, std::string_view why) {
  if (parts_.warnings.size() < kMaxWarnings)
    parts_.warnings.push_back(fmt::format("{}.{}: {}", at.path, printable(keyword, 100), why));
}

Status SchemaCompiler::give_up(const At& at, std::string_view keyword, std::string_view why) {
  if (options_.strict) return wrong(at, keyword, why);
  warn(at, keyword, fmt::format("{}, ignored", why));
  return {};
}

Status SchemaCompiler::spend(size_t work, const At& at) {
  work_ += work;
  if (work_ > kMaxWork)
    return error(Code::invalid_argument, "{}: the schema is too large or merges too much", at.path);
  return parts_.check();
}

Result<int32_t> SchemaCompiler::run() {
  if (!nests_within(root_, kMaxJsonDepth))
    return error(Code::invalid_argument, "$: the schema nests deeper than {}", kMaxJsonDepth);
  MILLRACE_ASSIGN(const int32_t root, compile(root_, {"$", 0}));
  MILLRACE_TRY(compile_pending());
  MILLRACE_TRY(parts_.check());
  return root;
}

Result<int32_t> SchemaCompiler::compile(const Json& schema, const At& at) {
  MILLRACE_TRY(spend(1, at));
  if (at.depth > kMaxDepth)
    return error(Code::invalid_argument, "{}: the schema nests deeper than {}", at.path, kMaxDepth);
  if (schema.is_boolean())
    return schema.get<bool>() ? parts_.json(options_.compact) : parts_.never();
  if (!schema.is_object())
    return error(Code::invalid_argument, "{}: a schema is an object or a boolean", at.path);
  MILLRACE_TRY(check_keywords(schema, at));
  MILLRACE_ASSIGN(const int32_t node, compile_object_form(schema, at));
  const auto nullable = schema.find("nullable");
  if (nullable == schema.end() || !nullable->is_boolean() || !nullable->get<bool>()) return node;
  return parts_.alternatives({node, parts_.literal("null")});
}

Result<int32_t> SchemaCompiler::compile_object_form(const Json& schema, const At& at) {
  if (schema.contains("$ref")) {
    const Json& ref = schema["$ref"];
    if (!ref.is_string()) return wrong(at, "$ref", "it is not a string");
    if (only_annotates(without(schema, "$ref"))) return reference(ref.get<std::string>(), at);
  }
  if (schema.contains("$ref") || schema.contains("allOf")) {
    MILLRACE_ASSIGN(const Json one, flat(without(schema, "nullable"), at));
    return compile(one, {at.path, at.depth + 1});
  }
  for (const char* keyword : {"anyOf", "oneOf"})
    if (schema.contains(keyword)) return choice(schema, keyword, at);
  if (schema.contains("const") || schema.contains("enum")) return values(schema, at);
  return by_types(schema, at);
}

Status SchemaCompiler::check_keywords(const Json& schema, const At& at) {
  MILLRACE_TRY(spend(schema.size(), at));
  for (const auto& [keyword, value] : schema.items()) {
    if (in(kKnown, keyword) || in(kAnnotations, keyword)) continue;
    if (!in(kNotHeld, keyword))
      warn(at, keyword, "not a keyword that is known, ignored");
    else if (!says_nothing(keyword, value))
      MILLRACE_TRY(give_up(at, keyword, "not supported"));
  }
  return {};
}

Status SchemaCompiler::check_one_of(const Json& branches, const At& at) {
  if (branches.size() < 2 || disjoint(branches)) return {};
  const Json& first = branches[0];
  if (first.is_object() && first.contains("properties") && first["properties"].is_object())
    for (const auto& [name, _] : first["properties"].items())
      if (told_apart_by(branches, name)) return {};
  if (options_.strict) return wrong(at, "oneOf", "it is held as anyOf: more than one may match");
  warn(at, "oneOf", "held as anyOf: more than one may match");
  return {};
}

Result<int32_t> SchemaCompiler::choice(const Json& schema, const char* keyword, const At& at) {
  const Json& branches = schema[keyword];
  if (!branches.is_array() || branches.empty())
    return wrong(at, keyword, "it is not a list of schemas");
  if (std::string_view(keyword) == "oneOf") MILLRACE_TRY(check_one_of(branches, at));
  Json base = without(schema, keyword);
  base.erase("nullable");
  const bool alone = only_annotates(base);
  std::vector<int32_t> nodes;
  for (size_t i = 0; i < branches.size(); ++i) {
    const At below = at.down(keyword, i);
    if (alone) {
      MILLRACE_ASSIGN(const int32_t node, compile(branches[i], below));
      nodes.push_back(node);
      continue;
    }
    MILLRACE_ASSIGN(const Json one, merged(base, branches[i], below));
    MILLRACE_ASSIGN(const int32_t node, compile(one, below));
    nodes.push_back(node);
  }
  return parts_.alternatives(nodes);
}

Result<std::vector<std::string>> SchemaCompiler::types_of(const Json& schema, const At& at) {
  if (!schema.contains("type")) return guessed_types(schema);
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"array", "boolean", "integer", "null", "number", "object", "string"});
  const Json& type = schema["type"];
  std::vector<std::string> types;
  for (const Json& one : type.is_array() ? type : Json::array({type})) {
    if (!one.is_string() || !in(kTypes, one.get_ref<const std::string&>()))
      return wrong(at, "type", "it is not a type of JSON");
    const auto name = one.get<std::string>();
    if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
  }
  if (types.empty()) return wrong(at, "type", "it is an empty list");
  return types;
}

Result<int32_t> SchemaCompiler::by_types(const Json& schema, const At& at) {
  MILLRACE_ASSIGN(const auto types, types_of(schema, at));
  if (types.empty()) return parts_.json(options_.compact);
  const bool numbers = std::find(types.begin(), types.end(), "number") != types.end();
  std::vector<int32_t> nodes;
  for (const std::string& type : types) {
    if (numbers && type == "integer") continue;
    MILLRACE_ASSIGN(const int32_t node, of_type(type, schema, at));
    nodes.push_back(node);
  }
  return parts_.alternatives(nodes);
}

Result<int32_t> SchemaCompiler::of_type(const std::string& type, const Json& schema, const At& at) {
  if (type == "object") return object(schema, at);
  if (type == "array") return array(schema, at);
  if (type == "string") return string(schema, at);
  if (type == "integer") return integer(schema, at);
  if (type == "number") return number(schema, at);
  if (type == "boolean") return parts_.one_of({"true", "false"});
  return parts_.literal("null");
}

}  // namespace millrace::grammar
