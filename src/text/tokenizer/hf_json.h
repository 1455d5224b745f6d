// Small steps through Hugging Face's JSON files: members that may be missing, of the right type or
// a typed error that names them. Private to model/tokenizer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "files/json.h"

namespace millrace::hf {

using Json = nlohmann::json;

// An object; empty text gives an empty one.
Result<Json> parse(std::string_view text, std::string_view file,
                   const JsonVisitor& visit = nullptr);

// A member, or null when it is missing or `object` is no object.
const Json& member(const Json& object, const char* key);

Result<bool> boolean(const Json& object, const char* key, bool fallback);
// "" when missing or null.
Result<std::string> string(const Json& object, const char* key);
// The "type" of a component; "" for null, "without a type" where it says none.
std::string_view type_of(const Json& component);

// What is not of the type it should be.
Status wrong(std::string_view what, std::string_view should_be);
Status unsupported(std::string_view kind, std::string_view what);

}  // namespace millrace::hf
