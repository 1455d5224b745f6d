#include <algorithm>
#include <unordered_set>

#include "base/utf8.h"
#include "text/grammar/pattern.h"
#include "text/grammar/schema.h"

namespace millrace::grammar {

namespace {

using Json = SchemaCompiler::Json;

const Json kAny = Json(true);

// A schema of names that every string satisfies.
bool any_string(const Json& names) {
  if (names == Json(true)) return true;
  return names.is_object() &&
         std::all_of(names.items().begin(), names.items().end(), [](const auto& item) {
           return item.key() == "type" ? item.value() == "string"
                                       : item.key() == "$schema" || item.key() == "description";
         });
}

// Of properties without a name. What is unevaluated is additional, once schemas are merged.
Json::const_iterator others_of(const Json& schema) {
  const auto additional = schema.find("additionalProperties");
  return additional != schema.end() ? additional : schema.find("unevaluatedProperties");
}

Result<std::unordered_set<std::string>> names_in(const Json& list) {
  std::unordered_set<std::string> names;
  if (!list.is_array()) return error(Code::invalid_argument, "it is not a list of names");
  for (const Json& name : list) {
    if (!name.is_string()) return error(Code::invalid_argument, "it is not a list of names");
    names.insert(name.get<std::string>());
  }
  return names;
}

}  // namespace

Result<std::vector<SchemaCompiler::Property>> SchemaCompiler::properties_of(const Json& schema,
                                                                            const At& at) {
  std::unordered_set<std::string> required;
  if (schema.contains("required")) {
    auto names = names_in(schema["required"]);
    if (schema["required"].is_boolean())
      MILLRACE_TRY(give_up(at, "required", "it is not a list of names"));
    else if (!names.ok())
      return wrong(at, "required", names.status().message());
    if (names.ok()) required = std::move(*names);
  }
  std::vector<Property> out;
  std::unordered_set<std::string> named;
  if (schema.contains("properties")) {
    const Json& properties = schema["properties"];
    if (!properties.is_object()) return wrong(at, "properties", "it is not an object");
    if (properties.size() > kMaxProperties)
      return wrong(at, "properties", fmt::format("there are more than {}", kMaxProperties));
    for (const auto& [name, property] : properties.items()) {
      out.push_back({name, &property, required.contains(name)});
      named.insert(name);
    }
  }
  if (required.size() > kMaxProperties)
    return wrong(at, "required", fmt::format("there are more than {}", kMaxProperties));
  const auto others = others_of(schema);
  if (!required.empty())
    for (const Json& name : schema["required"])
      if (named.insert(name.get<std::string>()).second)
        out.push_back({name.get<std::string>(), others == schema.end() ? &kAny : &*others, true});
  return out;
}

// Names by a pattern. Those that match none may be left out, and are.
Result<SchemaCompiler::Additional> SchemaCompiler::pattern_properties(const Json& schema,
                                                                      bool alone, const At& at) {
  const Json& patterns = schema["patternProperties"];
  if (!patterns.is_object()) return wrong(at, "patternProperties", "it is not an object");
  Additional out;
  if (patterns.size() != 1 || !alone) {
    MILLRACE_TRY(
        give_up(at, "patternProperties", "held only as a single one and without named properties"));
    return Additional{true, parts_.lexeme(standard().plain_string), parts_.json(options_.compact)};
  }
  const std::string pattern = patterns.begin().key();
  const Json& value = patterns.begin().value();
  const At below = at.down("patternProperties");
  MILLRACE_ASSIGN(out.key, string_of_pattern(pattern, {}, pattern, below));
  MILLRACE_ASSIGN(out.value, compile(value, below.down(pattern)));
  out.allowed = true;
  return out;
}

Result<SchemaCompiler::Additional> SchemaCompiler::named_properties(const Json& schema,
                                                                    const At& at) {
  const auto others = others_of(schema);
  const Json& value = others == schema.end() ? kAny : *others;
  Additional out{.allowed = true};
  MILLRACE_ASSIGN(out.value, compile(value, at.down("additionalProperties")));
  const At below = at.down("propertyNames");
  MILLRACE_ASSIGN(const Json names,
                  merged(schema["propertyNames"], Json::object({{"type", "string"}}), below));
  MILLRACE_ASSIGN(out.key, compile(names, below));
  return out;
}

Result<SchemaCompiler::Additional> SchemaCompiler::additional(
    const Json& schema, const std::vector<Property>& properties, const At& at) {
  const auto others = others_of(schema);
  const bool closed = others != schema.end() && *others == Json(false);
  bool by_name = schema.contains("propertyNames") && !any_string(schema["propertyNames"]);
  if (by_name && !properties.empty()) {
    MILLRACE_TRY(give_up(at, "propertyNames", "not held beside named properties"));
    by_name = false;
  }
  if (schema.contains("patternProperties") && !schema["patternProperties"].empty())
    return pattern_properties(schema, properties.empty(), at);
  if (closed) return Additional{};
  if (others == schema.end() && !properties.empty() && !options_.additional) return Additional{};
  if (by_name) return named_properties(schema, at);

  Additional out{.allowed = true};
  const Json& value = others == schema.end() ? kAny : *others;
  MILLRACE_ASSIGN(out.value, compile(value, at.down("additionalProperties")));
  if (properties.empty()) {
    out.key = parts_.string(0, kNoLimit);
    return out;
  }
  std::vector<std::string> names;
  for (const Property& property : properties) names.push_back(property.name);
  auto key = string_without(names);
  if (!key.ok()) {
    MILLRACE_TRY(give_up(at, "additionalProperties",
                         "too many properties to keep additional ones from their names"));
    return Additional{};
  }
  out.key = *key ? parts_.lexeme(std::move(**key)) : parts_.never();
  return out;
}

Status SchemaCompiler::check_counts(const Json& schema, const std::vector<Property>& properties,
                                    const Additional& more, const At& at) {
  MILLRACE_ASSIGN(const Lengths n, lengths(schema, "minProperties", "maxProperties", at));
  const auto required = static_cast<uint32_t>(std::count_if(
      properties.begin(), properties.end(), [](const auto& p) { return p.required; }));
  if (n.min > required) MILLRACE_TRY(give_up(at, "minProperties", "properties are not counted"));
  if (n.max != kNoLimit && (more.allowed || n.max < properties.size()))
    MILLRACE_TRY(give_up(at, "maxProperties", "properties are not counted"));
  return {};
}

// Back to front: `rest` follows where a property was written, `first` where none was.
int32_t SchemaCompiler::members(const std::vector<Property>& properties,
                                const std::vector<int32_t>& values, const Additional& more) {
  const int32_t comma = parts_.sequence({parts_.literal(","), space()});
  int32_t rest = space();
  int32_t first = parts_.empty();
  if (more.allowed) {
    const int32_t member = parts_.sequence({more.key, parts_.literal(":"), space(), more.value});
    const int32_t another = parts_.sequence({comma, member});
    rest = parts_.sequence({parts_.repeat(another, another, 0, kNoLimit), rest});
    const int32_t some = parts_.sequence({parts_.repeat(member, another, 1, kNoLimit), space()});
    first = parts_.alternatives({some, first});
  }
  for (size_t i = properties.size(); i > 0; --i) {
    const Property& property = properties[i - 1];
    const int32_t key = parts_.literal(json_string(property.name) + ":");
    const int32_t gap = space();
    const int32_t here = parts_.sequence({key, gap, values[i - 1], rest});
    const int32_t later = parts_.sequence({comma, key, gap, values[i - 1], rest});
    rest = property.required ? later : parts_.alternatives({later, rest});
    first = property.required ? here : parts_.alternatives({here, first});
  }
  return first;
}

Result<int32_t> SchemaCompiler::object(const Json& schema, const At& at) {
  MILLRACE_ASSIGN(const auto properties, properties_of(schema, at));
  MILLRACE_ASSIGN(const Additional more, additional(schema, properties, at));
  MILLRACE_TRY(check_counts(schema, properties, more, at));
  std::vector<int32_t> values;
  for (const Property& property : properties) {
    MILLRACE_ASSIGN(const int32_t value,
                    compile(*property.schema, at.down("properties").down(property.name)));
    values.push_back(value);
  }
  const int32_t inside = members(properties, values, more);
  return parts_.sequence({parts_.literal("{"), space(), inside, parts_.literal("}")});
}

}  // namespace millrace::grammar
