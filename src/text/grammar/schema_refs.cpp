// References within a schema: resolved by JSON pointer, compiled once each, so that they may
// recurse.
#include "base/utf8.h"
#include "text/grammar/schema.h"

namespace millrace::grammar {

namespace {

// %XX of a URI; a broken one stays as it is.
std::string unescaped_uri(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return out;
}

// ~1 and ~0 of a JSON pointer.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "~1" || text.substr(i, 2) == "~0") {
      out += text[i + 1] == '1' ? '/' : '~';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

const SchemaCompiler::Json* child(const SchemaCompiler::Json& json, const std::string& key) {
  if (json.is_object()) {
    const auto at = json.find(key);
    return at == json.end() ? nullptr : &*at;
  }
  const bool digits =
      !key.empty() && key.size() < 9 && key.find_first_not_of("0123456789") == std::string::npos;
  if (!json.is_array() || !digits) return nullptr;
  const auto index = static_cast<size_t>(std::stoul(key));
  return index < json.size() ? &json[index] : nullptr;
}

}  // namespace

Result<const SchemaCompiler::Json*> SchemaCompiler::resolve(const std::string& ref,
                                                            const At& at) const {
  if (!ref.starts_with('#'))
    return wrong(at, "$ref",
                 fmt::format("only references within the schema (#/...) are followed, "
                             "not \"{}\"",
                             printable(ref, 100)));
  const std::string pointer = unescaped_uri(std::string_view(ref).substr(1));
  const Json* json = &root_;
  if (!pointer.empty() && pointer[0] != '/')
    return wrong(at, "$ref", fmt::format("anchors (\"{}\") are not followed", printable(ref, 100)));
  for (size_t from = 0; from < pointer.size() && json != nullptr;) {
    const size_t end = std::min(pointer.find('/', from + 1), pointer.size());
    json = child(*json, unescaped(std::string_view(pointer).substr(from + 1, end - from - 1)));
    from = end;
  }
  if (json == nullptr)
    return wrong(at, "$ref", fmt::format("the schema has no \"{}\"", printable(ref, 100)));
  return json;
}

Result<int32_t> SchemaCompiler::reference(const std::string& ref, const At& at) {
  MILLRACE_TRY(resolve(ref, at).status());
  const auto [known, fresh] = references_.emplace(ref, -1);
  if (fresh) {
    known->second = parts_.reference();
    pending_.push_back(ref);
  }
  return known->second;
}

Status SchemaCompiler::compile_pending() {
  while (!pending_.empty()) {
    const std::string ref = std::move(pending_.back());
    pending_.pop_back();
    At at{"$" + printable(std::string_view(ref).substr(1), 200), 0};
    for (char& c : at.path)
      if (c == '/') c = '.';
    MILLRACE_ASSIGN(const Json* schema, resolve(ref, at));
    MILLRACE_ASSIGN(const int32_t node, compile(*schema, at));
    parts_.point(references_.at(ref), node);
  }
  return {};
}

}  // namespace millrace::grammar
