// JSON from outside, parsed within bounds: limits on its size, on its depth, and on the memory of
// the tree, which stays a small multiple of the text. Fields are read with errors that name file
// and key.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

inline constexpr int kMaxJsonDepth = 32;

// Is shown keys and values as they are read, with the number of containers around them; what it
// returns false for is left out of the tree and takes no memory. The way to read long lists. Of a
// key that it leaves out it still sees the value; of a container it leaves out, nothing inside.
using JsonEvent = nlohmann::json::parse_event_t;
using JsonVisitor = std::function<bool(int depth, JsonEvent event, nlohmann::json& value)>;

// `file` names it in errors.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view file,
                                  const JsonVisitor& visit = nullptr);

// A whole file of at most `max_bytes`.
Result<std::string> read_text_file(const std::string& path, size_t max_bytes);

// The members of one object. A member that is null counts as absent.
class JsonFields {
 public:
  // `object` outlives this; what is no object has no members.
  JsonFields(const nlohmann::json& object, std::string_view file) : object_(object), file_(file) {}

  const nlohmann::json* find(std::string_view key) const;
  Result<int64_t> integer(std::string_view key) const;  // absent: not_found
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> real_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;

  Status bad(std::string_view key, std::string_view why) const;
  Status unsupported(std::string_view key, std::string_view why) const;

 private:
  const nlohmann::json& object_;
  std::string_view file_;
};

}  // namespace millrace
