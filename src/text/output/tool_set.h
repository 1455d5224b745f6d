// The tools of a request, as far as reading calls needs them: their names, and what types their
// parameters may have. From OpenAI's shape ({"type": "function", "function": {...}}) or the bare
// function ({"name", "parameters" or "input_schema"}).
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace millrace {

// A set of JSON types.
struct ValueTypes {
  bool string = false, number = false, boolean = false, null = false, object = false, array = false;

  bool only_string() const { return string && !number && !boolean && !null && !object && !array; }
};

class ToolSet {
 public:
  ToolSet() = default;
  // What is no tool is left out.
  explicit ToolSet(const nlohmann::ordered_json& tools);

  bool empty() const { return tools_.empty(); }
  bool contains(std::string_view name) const { return tools_.find(name) != tools_.end(); }
  // A parameter that the schema does not know is a string.
  ValueTypes types(std::string_view tool, std::string_view parameter) const;

 private:
  using Parameters = std::map<std::string, ValueTypes, std::less<>>;
  std::map<std::string, Parameters, std::less<>> tools_;
};

// `text`, which a model wrote without quotes, as JSON of one of these types; a JSON string where it
// is none of them. Python's True, False and None count.
std::string typed_json(std::string_view text, const ValueTypes& types);

}  // namespace millrace
