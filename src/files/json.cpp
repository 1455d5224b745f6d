#include "files/json.h"

#include <filesystem>
#include <fstream>

#include "base/utf8.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view file) {
  bool too_deep = false;
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMaxJsonDepth;
    return !too_deep;
  };
  try {  // the one place where this library's exceptions end: they know the byte
    Json json = Json::parse(text.begin(), text.end(), keep);
    if (!too_deep) return json;
  } catch (const Json::exception& e) {
    const auto* parse_error = dynamic_cast<const Json::parse_error*>(&e);
    return error(Code::corrupt, "{}: not valid JSON at byte {}", printable(file),
                 parse_error == nullptr ? 0 : parse_error->byte);
  }
  return error(Code::corrupt, "{}: JSON nested more than {} deep", printable(file), kMaxJsonDepth);
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed) return error(Code::not_found, "cannot read {}: {}", path, failed.message());
  if (bytes > max_bytes)
    return error(Code::corrupt, "{}: {} bytes, more than {}", path, bytes, max_bytes);
  std::string text(bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(bytes)))
    return error(Code::io_error, "cannot read {}", path);
  return text;
}

const Json* JsonFields::find(std::string_view key) const {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

Result<int64_t> JsonFields::integer(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return error(Code::not_found, "{}: '{}' is missing", printable(file_), key);
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX}))
    return bad(key, "is not an integer");
  return value->get<int64_t>();
}

Result<int64_t> JsonFields::integer_or(std::string_view key, int64_t fallback) const {
  return find(key) == nullptr ? fallback : integer(key);
}

Result<double> JsonFields::real_or(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) return bad(key, "is not a number");
  return value->get<double>();
}

Result<bool> JsonFields::boolean_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return bad(key, "is neither true nor false");
  return value->get<bool>();
}

Result<std::string> JsonFields::string_or(std::string_view key, std::string_view fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return bad(key, "is not a string");
  return value->get<std::string>();
}

Status JsonFields::bad(std::string_view key, std::string_view why) const {
  return error(Code::corrupt, "{}: '{}' {}", printable(file_), printable(key, 200), why);
}

Status JsonFields::unsupported(std::string_view key, std::string_view why) const {
  return error(Code::unsupported, "{}: '{}' {}", printable(file_), printable(key, 200), why);
}

}  // namespace millrace
