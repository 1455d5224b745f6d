// The parameters of a request's query ("limit=50&case=1x%2A"), decoded and checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace::lab {

class Params {
 public:
  // A bad escape, a control character, a name given twice or a value of more than 256 bytes is an
  // error.
  static Result<Params> parse(std::string_view query);

  std::string text(const std::string& name) const;  // empty where it was not given
  // A whole number inside the limits, or the fallback where it was not given.
  Result<int64_t> integer(const std::string& name, int64_t fallback, int64_t least,
                          int64_t most) const;
  // A shell pattern for SQLite's GLOB; one that could take long to match is an error.
  Result<std::string> pattern(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
};

// Digits alone, 1 to 2^63 - 1.
Result<int64_t> parse_id(std::string_view text);

}  // namespace millrace::lab
