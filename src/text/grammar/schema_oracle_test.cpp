#include "text/grammar/schema_oracle_test.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "base/utf8.h"
#include "text/grammar/graph.h"

namespace millrace::grammar::test {

namespace {

using Json = nlohmann::ordered_json;

TokenTrie small_trie() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.resize(259);
  for (const char* text :
       {"true", "fals",  "null",     "\"a",     "\", \"", "\":", "\": ", "\": \"", "\":\"",
        "\"}",  "\"},",  "\", ",     "{\"",     "[\"",    "[{",  "}]",   "},",     ", ",
        ",\"",  "\n",    "\n  ",     "\n    ",  " \"",    " {",  "  ",   "a\"",    "b\", \"c",
        "\\\"", "\\n",   "\\u00",    "\\ud83d", "ab",     "abc", "name", "path",   "10",
        "123",  "0.5",   "1,",       "1]",      "[]",     "{}",  "[]}",  ": [",    ": {\"",
        "\xc3", "\xa4x", "\xf0\x9f", "\u20ac",  "\u00e4", "e+",  "-1",   "<tool",  "_call>",
        " <",   "null}", "\"]",      "\"a\"",   "\"b\""})
    pieces.emplace_back(text);
  return TokenTrie(pieces, {kEnd}, {{"<tool_call>", kToolId}, {"<other>", kToolId + 1}});
}

// A token that the text goes on with, among those the mask allows; -1: there is none.
int32_t some_token(const std::vector<uint32_t>& mask, std::string_view rest, Rng& rng) {
  const TokenTrie& trie = small_vocabulary().trie;
  std::vector<int32_t> fits;
  for (int32_t id = 0; id < trie.n_tokens(); ++id) {
    const std::string_view piece = trie.piece(id);
    if (piece.empty() || !rest.starts_with(piece)) continue;
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) fits.push_back(id);
  }
  return fits.empty() ? -1 : fits[rng.below(fits.size())];
}

bool accepts_by_tokens(const TokenGrammar& grammar, std::string_view text, Rng& rng) {
  Matcher matcher(grammar);
  std::vector<uint32_t> mask((static_cast<size_t>(small_vocabulary().trie.n_tokens()) + 31) / 32);
  while (true) {
    matcher.mask(mask);
    EXPECT_EQ((mask[kEnd / 32] >> (kEnd % 32) & 1) != 0, matcher.is_complete());
    if (text.empty()) return matcher.is_complete();
    const int32_t token = some_token(mask, text, rng);
    if (token < 0) return false;
    const Status taken = matcher.accept(token);
    EXPECT_TRUE(taken.ok()) << "allowed, but " << taken.message();
    if (!taken.ok()) return false;
    text.remove_prefix(small_vocabulary().trie.piece(token).size());
  }
}

size_t n_chars(const std::string& text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return n;
}

bool is_type(const Json& instance, const std::string& type) {
  if (type == "integer")
    return instance.is_number_integer() ||
           (instance.is_number() && std::floor(instance.get<double>()) == instance.get<double>());
  if (type == "number") return instance.is_number();
  return type == instance.type_name();
}

bool valid_object(const Json& schema, const Json& instance, const Json& root) {
  if (schema.contains("required"))
    for (const Json& name : schema["required"])
      if (!instance.contains(name.get<std::string>())) return false;
  for (const auto& [name, value] : instance.items()) {
    const bool named = schema.contains("properties") && schema["properties"].contains(name);
    if (named && !validates(schema["properties"][name], value, root)) return false;
    if (!named && schema.contains("additionalProperties") &&
        !validates(schema["additionalProperties"], value, root))
      return false;
  }
  return true;
}

bool valid_array(const Json& schema, const Json& instance, const Json& root) {
  if (instance.size() < schema.value("minItems", size_t{0})) return false;
  if (instance.size() > schema.value("maxItems", size_t{1000})) return false;
  const size_t n_prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
  for (size_t i = 0; i < instance.size(); ++i) {
    if (i < n_prefix) {
      if (!validates(schema["prefixItems"][i], instance[i], root)) return false;
    } else if (schema.contains("items") && !validates(schema["items"], instance[i], root)) {
      return false;
    }
  }
  return true;
}

bool valid_number(const Json& schema, double value) {
  if (schema.contains("minimum") && value < schema["minimum"].get<double>()) return false;
  if (schema.contains("maximum") && value > schema["maximum"].get<double>()) return false;
  if (schema.contains("exclusiveMinimum") && value <= schema["exclusiveMinimum"].get<double>())
    return false;
  return !schema.contains("exclusiveMaximum") || value < schema["exclusiveMaximum"].get<double>();
}

bool valid_choice(const Json& schema, const Json& instance, const Json& root) {
  if (schema.contains("allOf"))
    for (const Json& part : schema["allOf"])
      if (!validates(part, instance, root)) return false;
  if (!schema.contains("anyOf")) return true;
  for (const Json& branch : schema["anyOf"])
    if (validates(branch, instance, root)) return true;
  return false;
}

}  // namespace

const Vocabulary& small_vocabulary() {
  static const Vocabulary vocabulary(small_trie());
  return vocabulary;
}

bool accepts(const Grammar& grammar, std::string_view text) {
  Stacks stacks(grammar.graph());
  bool by_bytes = stacks.advance({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  bool complete = false;
  for (size_t i = 0; i < stacks.now().end && by_bytes; ++i)
    complete = complete || stacks[i].node == Config::kDone;
  by_bytes = by_bytes && complete;
  return by_bytes;
}

bool validates(const Json& schema, const Json& instance, const Json& root) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("$ref")) {
    const auto pointer = schema["$ref"].get<std::string>().substr(1);
    if (!validates(root.at(Json::json_pointer(pointer)), instance, root)) return false;
  }
  if (schema.contains("type")) {
    const Json& types = schema["type"];
    bool any = false;
    for (const Json& type : types.is_array() ? types : Json::array({types}))
      any = any || is_type(instance, type.get<std::string>());
    if (!any) return false;
  }
  if (schema.contains("const") && instance != schema["const"]) return false;
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), instance) == schema["enum"].end())
    return false;
  if (!valid_choice(schema, instance, root)) return false;
  if (instance.is_object()) return valid_object(schema, instance, root);
  if (instance.is_array()) return valid_array(schema, instance, root);
  if (instance.is_number()) return valid_number(schema, instance.get<double>());
  if (!instance.is_string()) return true;
  const size_t n = n_chars(instance.get<std::string>());
  return n >= schema.value("minLength", size_t{0}) && n <= schema.value("maxLength", size_t{1000});
}

bool accepts_in_tokens(const TokenGrammar& grammar, std::string_view text, uint64_t seed) {
  Rng rng(seed);
  return accepts_by_tokens(grammar, text, rng);
}

}  // namespace millrace::grammar::test
