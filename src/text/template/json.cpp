#include "text/template/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/template/format.h"

namespace millrace::jinja {
namespace {

constexpr uint32_t kMaxJsonDepth = kMaxNesting - 50;  // leaves templates room to wrap

Result<Value> converted(Interpreter& in, const nlohmann::ordered_json& json, bool trusted,
                        uint32_t depth) {
  if (depth > kMaxJsonDepth)
    return error(Code::invalid_argument, "the messages nest deeper than {} levels", kMaxJsonDepth);
  MILLRACE_TRY(in.spend(1));
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return Value(json.get<bool>());
    case Type::number_integer:
      return Value(json.get<int64_t>());
    case Type::number_unsigned: {
      const auto value = json.get<uint64_t>();
      if (value > INT64_MAX) return Value(static_cast<double>(value));
      return Value(static_cast<int64_t>(value));
    }
    case Type::number_float:
      return Value(json.get<double>());
    case Type::string:
      return in.text(json.get_ref<const std::string&>(), !trusted);
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& element : json) {
        MILLRACE_ASSIGN(Value value, converted(in, element, trusted, depth + 1));
        items.push_back(std::move(value));
      }
      return in.list(ListKind::list, std::move(items));
    }
    case Type::object: {
      std::vector<Dict::Entry> entries;
      entries.reserve(json.size());
      for (const auto& [key, element] : json.items()) {
        MILLRACE_ASSIGN(Value name, in.text(key, !trusted));
        MILLRACE_ASSIGN(Value value, converted(in, element, trusted, depth + 1));
        entries.emplace_back(std::move(name), std::move(value));
      }
      return in.dict(std::move(entries));
    }
    default:
      return Value(None{});
  }
}

// json.dumps, value by value.
class Writer {
 public:
  Writer(Interpreter& in, const JsonStyle& style) : in_(in), style_(style), out_(in.builder()) {}
  Status write(const Value& value, size_t level);
  Result<Value> finish() { return in_.text(std::move(out_)); }

 private:
  Status write_list(const List& list, size_t level);
  Status write_dict(const Dict& dict, size_t level);
  Status write_key(const Value& key);
  Status write_text(const Text& text);
  void escape(const Point& point, bool from_input);
  void newline(size_t level);
  // What is neither a string nor in one cannot be told apart from input, and counts as such.
  void raw(std::string_view text) { out_.append(text, true); }

  Interpreter& in_;
  const JsonStyle& style_;
  TextBuilder out_;
};

void Writer::newline(size_t level) {
  if (!style_.indented) return;
  raw("\n");
  in_.budget().spend_bytes(style_.indent.size() * level);
  out_.repeat(style_.indent, level, true);
}

void Writer::escape(const Point& p, bool from_input) {
  constexpr std::string_view kChars = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
  if (p.code < 0x80)
    if (const size_t i = kChars.find(static_cast<char>(p.code)); i != std::string_view::npos)
      return out_.append({std::string{'\\', kNames[i]}}, from_input);
  if (p.code < 0x10000) return out_.append(fmt::format("\\u{:04x}", p.code), from_input);
  const uint32_t rest = p.code - 0x10000;
  out_.append(fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF)),
              from_input);
}

Status Writer::write_text(const Text& text) {
  MILLRACE_TRY(in_.spend_points(text.bytes.size()));
  Origins origins(text.input);
  raw("\"");
  size_t plain = 0;  // from here to `at` nothing needs escaping
  for (size_t at = 0; at < text.bytes.size();) {
    const Point p = point_at(text.bytes, at);
    const bool escapes =
        p.code < 0x20 || p.code == '"' || p.code == '\\' || (style_.ensure_ascii && p.code > 0x7E);
    if (escapes) {
      out_.append(text.bytes, text.input, plain, at);
      in_.budget().spend(1);
      escape(p, origins.at(at));
      plain = at + p.bytes;
    }
    at += p.bytes;
  }
  out_.append(text.bytes, text.input, plain, text.bytes.size());
  raw("\"");
  return in_.spend(0);
}

Status Writer::write_list(const List& list, size_t level) {
  if (list.items.empty()) return raw("[]"), Status();
  raw("[");
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) raw(style_.item_separator);
    newline(level + 1);
    MILLRACE_TRY(write(list.items[i], level + 1));
  }
  newline(level);
  raw("]");
  return {};
}

Status Writer::write_key(const Value& key) {
  if (const Text* text = key.text()) return write_text(*text);
  if (!key.is_none() && !key.is_number())
    return in_.fail("a key of JSON is a string or a number, not a {}", type_name(key));
  raw("\"");
  MILLRACE_TRY(write(key, 0));
  raw("\"");
  return {};
}

Status Writer::write_dict(const Dict& dict, size_t level) {
  if (dict.entries.empty()) return raw("{}"), Status();
  std::vector<const Dict::Entry*> entries;
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (style_.sort_keys) {
    for (const auto* entry : entries)
      if (!entry->first.is_text()) return in_.fail("tojson sorts keys that are strings alone");
    std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
      return less(a->first, b->first, in_.budget()).value_or(false);
    });
  }
  raw("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) raw(style_.item_separator);
    newline(level + 1);
    MILLRACE_TRY(write_key(entries[i]->first));
    raw(style_.key_separator);
    MILLRACE_TRY(write(entries[i]->second, level + 1));
  }
  newline(level);
  raw("}");
  return {};
}

Status Writer::write(const Value& value, size_t level) {
  MILLRACE_TRY(in_.spend(2));
  if (out_.over()) return in_.text(std::move(out_)).status();
  if (value.is_none()) return raw("null"), Status();
  if (value.is_bool()) return raw(value.as_bool() ? "true" : "false"), Status();
  if (value.is_int()) return raw(fmt::format("{}", *value.as_int())), Status();
  if (value.is_float()) {
    const double number = *value.as_number();
    raw(std::isnan(number)   ? "NaN"
        : std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity")
                             : float_repr(number));
    return {};
  }
  if (const Text* text = value.text()) return write_text(*text);
  if (const Dict* dict = value.dict()) return write_dict(*dict, level);
  const List* list = value.list();
  if (list != nullptr && list->kind <= ListKind::tuple) return write_list(*list, level);
  return in_.fail("a {} cannot be written as JSON", type_name(value));
}

}  // namespace

namespace {

// Whether text that may be JSON nests and grows within bounds. An ordered object looks through all
// its keys for each new one, so a large one takes the square of its size.
bool within_bounds(std::string_view text) {
  constexpr size_t kMaxKeys = 10'000;
  std::vector<size_t> colons;  // of each open bracket
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') colons.push_back(0);
    if ((c == ']' || c == '}') && !colons.empty()) colons.pop_back();
    if (colons.size() > kMaxJsonDepth) return false;
    if (c == ':' && !colons.empty() && ++colons.back() > kMaxKeys) return false;
  }
  return true;
}

}  // namespace

std::optional<nlohmann::ordered_json> parse_ordered_json(std::string_view text) {
  if (!within_bounds(text)) return std::nullopt;
  auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  return parsed;
}

Result<Value> from_json(Interpreter& in, const nlohmann::ordered_json& json, bool trusted) {
  return converted(in, json, trusted, 0);
}

Result<Value> to_json(Interpreter& in, const Value& value, const JsonStyle& style) {
  Writer writer(in, style);
  MILLRACE_TRY(writer.write(value, 0));
  return writer.finish();
}

}  // namespace millrace::jinja
