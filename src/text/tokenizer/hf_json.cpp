#include "text/tokenizer/hf_json.h"

#include "base/utf8.h"

namespace millrace::hf {

Result<Json> parse(std::string_view text, std::string_view file, const JsonVisitor& visit) {
  if (text.empty()) return Json::object();
  MILLRACE_ASSIGN(Json json, parse_json(text, file, visit));
  if (!json.is_object()) return error(Code::corrupt, "{} is not a JSON object", file);
  return json;
}

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

Result<bool> boolean(const Json& object, const char* key, bool fallback) {
  const Json& value = member(object, key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) return wrong(key, "true or false");
  return value.get<bool>();
}

Result<std::string> string(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return std::string();
  if (!value.is_string()) return wrong(key, "a string");
  return value.get<std::string>();
}

std::string_view type_of(const Json& component) {
  if (component.is_null()) return "";
  const Json& type = member(component, "type");
  return type.is_string() ? std::string_view(type.get_ref<const std::string&>()) : "without a type";
}

Status wrong(std::string_view what, std::string_view should_be) {
  return error(Code::corrupt, "tokenizer.json: {} is not {}", printable(what, 64), should_be);
}

Status unsupported(std::string_view kind, std::string_view what) {
  return error(Code::unsupported, "tokenizer.json: the {} '{}' is not supported", kind,
               printable(what, 64));
}

}  // namespace millrace::hf
