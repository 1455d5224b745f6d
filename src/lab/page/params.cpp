#include "lab/page/params.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/utf8.h"

namespace millrace::lab {
namespace {

constexpr size_t kMostBytes = 256, kMostParams = 32;
constexpr std::ptrdiff_t kMostStars = 4;  // GLOB backtracks over each

std::optional<unsigned char> hex_pair(std::string_view text) {
  unsigned value = 0;
  const char* end = text.data() + 2;
  if (text.size() < 2) return std::nullopt;
  const auto [stop, failure] = std::from_chars(text.data(), end, value, 16);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return static_cast<unsigned char>(value);
}

Result<std::string> decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+') c = ' ';
    if (c == '%') {
      const auto value = hex_pair(text.substr(i + 1));
      if (!value) return error(Code::invalid_argument, "the query has a bad % escape");
      c = static_cast<char>(*value);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return error(Code::invalid_argument, "the query has a control character");
    out += c;
  }
  if (out.size() > kMostBytes || !is_utf8(out))
    return error(Code::invalid_argument, "a parameter is not UTF-8 of at most {} bytes",
                 kMostBytes);
  return out;
}

}  // namespace

Result<Params> Params::parse(std::string_view query) {
  Params out;
  while (!query.empty()) {
    const std::string_view item = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(item.size() + 1, query.size()));
    if (item.empty()) continue;
    const size_t equals = std::min(item.find('='), item.size());
    MILLRACE_ASSIGN(const std::string name, decode(item.substr(0, equals)));
    MILLRACE_ASSIGN(std::string value, decode(item.substr(std::min(equals + 1, item.size()))));
    if (out.values_.size() >= kMostParams || !out.values_.emplace(name, std::move(value)).second)
      return error(Code::invalid_argument, "the query has '{}' twice, or too many parameters",
                   printable(name, 40));
  }
  return out;
}

std::string Params::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

Result<int64_t> Params::integer(const std::string& name, int64_t fallback, int64_t least,
                                int64_t most) const {
  const std::string value = text(name);
  if (value.empty()) return fallback;
  int64_t out = 0;
  const char* end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, out);
  if (failure != std::errc() || stop != end || out < least || out > most)
    return error(Code::invalid_argument, "'{}' must be a whole number from {} to {}", name, least,
                 most);
  return out;
}

Result<std::string> Params::pattern(const std::string& name) const {
  std::string value = text(name);
  if (std::count(value.begin(), value.end(), '*') > kMostStars)
    return error(Code::invalid_argument, "'{}' may have at most {} stars", name, kMostStars);
  return value;
}

Result<int64_t> parse_id(std::string_view text) {
  int64_t out = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, out);
  if (failure != std::errc() || stop != end || out < 1)
    return error(Code::invalid_argument, "'{}' is no number of a record", printable(text, 40));
  return out;
}

}  // namespace millrace::lab
