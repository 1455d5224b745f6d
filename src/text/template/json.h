// JSON into a template's values. Strings (keys too) count as input.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "text/template/interpreter.h"

namespace millrace::jinja {

// Nothing for what is no JSON, nests deeper than from_json() takes (parsed values that nest without
// limit could not even be copied), or has an object of more than 10,000 keys.
std::optional<nlohmann::ordered_json> parse_ordered_json(std::string_view text);

// `trusted` marks the strings as the template's own.
Result<Value> from_json(Interpreter& in, const nlohmann::ordered_json& json, bool trusted = false);

}  // namespace millrace::jinja
