// One schema that says what several say: for allOf, $ref with neighbours, and anyOf beside others.
#include <algorithm>

#include "text/grammar/schema.h"

namespace millrace::grammar {

namespace {

using Json = SchemaCompiler::Json;

constexpr size_t kMaxChoices = 64;

size_t size_of(const Json& json) {
  size_t n = 1;
  if (json.is_structured())
    for (const Json& child : json) n += size_of(child);
  return n;
}

Json both(const Json& a, const Json& b) {
  if (a == b || b == Json(true)) return a;
  if (a == Json(true)) return b;
  if (a == Json(false) || b == Json(false)) return false;
  return Json::object({{"allOf", Json::array({a, b})}});
}

Json listed(const Json& one_or_many) {
  return one_or_many.is_array() ? one_or_many : Json::array({one_or_many});
}

bool has(const Json& list, const Json& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Json common_types(const Json& a, const Json& b) {
  Json out = Json::array();
  const Json in_a = listed(a), in_b = listed(b);
  for (const Json& type : in_a)
    if (has(in_b, type) || (type == "integer" && has(in_b, "number"))) out.push_back(type);
  for (const Json& type : in_b)
    if (type == "integer" && has(in_a, "number") && !has(out, type)) out.push_back(type);
  return out;
}

Json common_values(const Json& a, const Json& b) {
  Json out = Json::array();
  for (const Json& value : listed(a))
    if (has(listed(b), value)) out.push_back(value);
  return out;
}

bool is_lower_bound(std::string_view keyword) {
  return keyword == "minimum" || keyword == "exclusiveMinimum" || keyword == "minLength" ||
         keyword == "minItems" || keyword == "minProperties";
}

bool is_upper_bound(std::string_view keyword) {
  return keyword == "maximum" || keyword == "exclusiveMaximum" || keyword == "maxLength" ||
         keyword == "maxItems" || keyword == "maxProperties";
}

bool is_of_objects(std::string_view keyword) {
  return keyword == "properties" || keyword == "required" || keyword == "additionalProperties";
}

bool is_constraint(std::string_view keyword) {
  return keyword == "pattern" || keyword == "format" || keyword == "const" ||
         keyword == "prefixItems" || keyword == "patternProperties" || keyword == "propertyNames" ||
         keyword == "additionalItems";
}

const Json* find(const Json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

bool is_nullable(const Json& schema) {
  const Json* nullable = find(schema, "nullable");
  return nullable != nullptr && *nullable == Json(true);
}

bool takes_null(const Json& schema) {
  const bool silent = !schema.contains("type") && !schema.contains("enum") &&
                      !schema.contains("const") && !schema.contains("anyOf") &&
                      !schema.contains("oneOf");
  return silent || is_nullable(schema);
}

// What `schema` says of a property that it does not name; null: nothing.
const Json* of_others(const Json& schema) {
  return find(schema, "additionalProperties");
}

void merge_properties(Json& out, const Json& mine, const Json& other) {
  const Json* properties = find(mine, "properties");
  const Json* theirs = find(other, "properties");
  if (properties == nullptr || !properties->is_object()) return;
  for (const auto& [name, schema] : properties->items()) {
    if (out.contains(name)) continue;
    const Json* beside = theirs != nullptr && theirs->is_object() ? find(*theirs, name) : nullptr;
    if (beside == nullptr) beside = of_others(other);
    out[name] = beside == nullptr ? schema : both(schema, *beside);
  }
}

}  // namespace

Status SchemaCompiler::merge_objects(Json& out, const Json& a, const Json& b, const At& at) {
  Json properties = Json::object();
  const auto too_many = [](const Json& s) {
    const Json* named = find(s, "properties");
    return named != nullptr && named->size() > kMaxProperties / 10;
  };
  if (too_many(a) || too_many(b))
    return wrong(at, "properties", "too many of them to be merged with another schema's");
  merge_properties(properties, a, b);
  merge_properties(properties, b, a);
  if (!properties.empty()) out["properties"] = std::move(properties);
  Json required = Json::array();
  for (const Json* from : {&a, &b})
    if (const Json* names = find(*from, "required"); names != nullptr && names->is_array())
      for (const Json& name : *names)
        if (!has(required, name)) required.push_back(name);
  if (!required.empty()) out["required"] = std::move(required);
  const Json *of_a = of_others(a), *of_b = of_others(b);
  if (of_a != nullptr || of_b != nullptr)
    out["additionalProperties"] = of_a == nullptr   ? *of_b
                                  : of_b == nullptr ? *of_a
                                                    : both(*of_a, *of_b);
  return {};
}

// All ways to take one of each; two lists of choices become one.
Status SchemaCompiler::merge_choice(Json& out, const std::string& keyword, const Json& value,
                                    const At& at) {
  const Json& mine = out[keyword];
  if (!mine.is_array() || !value.is_array())
    return wrong(at, keyword, "it is not a list of schemas");
  if (mine.size() * value.size() > kMaxChoices)
    return give_up(at, keyword, "too many combinations with another one");
  Json ways = Json::array();
  for (const Json& a : mine)
    for (const Json& b : value) ways.push_back(both(a, b));
  out[keyword] = std::move(ways);
  return {};
}

Status SchemaCompiler::merge_keyword(Json& out, const std::string& keyword, const Json& value,
                                     const At& at) {
  Json* mine = nullptr;
  if (const auto known = out.find(keyword); known != out.end()) mine = &*known;
  if (mine == nullptr) {
    out[keyword] = value;
    return {};
  }
  if (*mine == value) return {};
  if (keyword == "type") {
    *mine = common_types(*mine, value);
    if (mine->empty()) out = Json(false);
  } else if (keyword == "enum") {
    *mine = common_values(*mine, value);
    if (mine->empty()) out = Json(false);
  } else if (keyword == "const") {
    out = Json(false);
  } else if (keyword == "items") {
    *mine = both(*mine, value);
  } else if (keyword == "anyOf" || keyword == "oneOf") {
    return merge_choice(out, keyword, value, at);
  } else if (is_lower_bound(keyword) || is_upper_bound(keyword)) {
    if (!mine->is_number() || !value.is_number())
      return give_up(at, keyword, "it cannot be merged with another one");
    const bool tighter = is_lower_bound(keyword) ? value.get<double>() > mine->get<double>()
                                                 : value.get<double>() < mine->get<double>();
    if (tighter) *mine = value;
  } else if (is_constraint(keyword)) {
    return give_up(at, keyword, "it cannot be merged with another one");
  }
  return {};
}

// `schema` without $ref and allOf, which say what it says at its own level.
Result<SchemaCompiler::Json> SchemaCompiler::flat(Json schema, const At& at) {
  if (at.depth > kMaxDepth)
    return error(Code::invalid_argument,
                 "{}: references and allOf nest deeper than {}, or in a cycle", at.path, kMaxDepth);
  MILLRACE_TRY(spend(size_of(schema), at));
  if (!schema.is_object()) return schema;
  const At below{at.path, at.depth + 1};
  while (schema.is_object() && (schema.contains("$ref") || schema.contains("allOf"))) {
    Json others = Json::array();
    if (schema.contains("$ref")) {
      if (!schema["$ref"].is_string()) return wrong(at, "$ref", "it is not a string");
      MILLRACE_ASSIGN(const Json* target, resolve(schema["$ref"].get<std::string>(), at));
      MILLRACE_TRY(spend(size_of(*target), at));
      others.push_back(*target);
      schema.erase("$ref");
    } else {
      others = schema["allOf"];
      schema.erase("allOf");
      if (!others.is_array()) return wrong(at, "allOf", "it is not a list of schemas");
    }
    for (const Json& other : others) {
      MILLRACE_ASSIGN(schema, merged(schema, other, below));
    }
  }
  return schema;
}

Result<SchemaCompiler::Json> SchemaCompiler::merged(const Json& a, const Json& b, const At& at) {
  MILLRACE_ASSIGN(Json out, flat(a, at));
  MILLRACE_ASSIGN(const Json other, flat(b, at));
  if (other.is_boolean()) return other.get<bool>() ? out : other;
  if (out.is_boolean()) return out.get<bool>() ? other : out;
  if (!other.is_object() || !out.is_object())
    return error(Code::invalid_argument, "{}: a schema is an object or a boolean", at.path);
  const Json mine = out;
  if (mine.contains("prefixItems") != other.contains("prefixItems") &&
      mine.contains("items") != other.contains("items"))
    MILLRACE_TRY(give_up(at, "prefixItems", "it cannot be merged with another's items"));
  for (const auto& [keyword, value] : other.items()) {
    if (keyword == "$defs" || keyword == "definitions" || is_of_objects(keyword)) continue;
    if (keyword == "nullable") continue;
    MILLRACE_TRY(merge_keyword(out, keyword, value, at));
    if (!out.is_object()) return out;
  }
  out.erase("nullable");
  if ((is_nullable(mine) || is_nullable(other)) && takes_null(mine) && takes_null(other))
    out["nullable"] = true;
  MILLRACE_TRY(merge_objects(out, mine, other, at));
  return out;
}

}  // namespace millrace::grammar
