// Random small schemas against a validator that shares nothing with their compiler: instances are
// accepted exactly when they are valid, byte by byte and token by token, and whatever a walk
// through the masks writes is valid JSON that satisfies its schema.
#include <gtest/gtest.h>

#include "base/json_text.h"
#include "base/philox.h"
#include "text/grammar/schema_oracle_test.h"

namespace millrace::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNames[] = {"a", "b", "ab", "name", "path"};

class RandomSchema {
 public:
  explicit RandomSchema(uint64_t seed) : rng_(seed) {}

  Json schema(int depth) {
    switch (rng_.below(depth > 0 ? 11 : 6)) {
      case 0:
        return string();
      case 1:
        return integer();
      case 2:
        return {{"type", rng_.below(2) == 0 ? "boolean" : "null"}};
      case 3:
        return {{"enum", Json::array({"a", "ab", 1, nullptr, "b\"\n"})}};
      case 4:
        return {{"type", Json::array({"string", "null"})}, {"maxLength", rng_.below(4)}};
      case 5:
        return number();
      case 6:
      case 7:
        return object(depth);
      case 8:
        return array(depth);
      case 9:
        return {{"anyOf", Json::array({schema(depth - 1), schema(depth - 1)})}};
      default:
        return depth > 1 ? Json{{"$ref", "#/$defs/d"}} : tuple(depth);
    }
  }

  // Often close to what the schema wants.
  Json instance(const Json& schema, const Json& root, int depth) {
    if (rng_.below(12) == 0 || depth == 0) return any();
    if (schema.contains("$ref")) return instance(root["$defs"]["d"], root, depth - 1);
    if (schema.contains("anyOf")) return instance(schema["anyOf"][rng_.below(2)], root, depth - 1);
    if (schema.contains("enum")) return schema["enum"][rng_.below(schema["enum"].size())];
    const Json type = schema["type"].is_array() ? schema["type"][rng_.below(2)] : schema["type"];
    if (type == "object") return some_object(schema, root, depth);
    if (type == "array") return some_array(schema, root, depth);
    if (type == "string") return some_string();
    if (type == "integer") return static_cast<int64_t>(rng_.below(60)) - 30;
    if (type == "number") return (static_cast<double>(rng_.below(240)) - 120) / 8;
    if (type == "boolean") return rng_.below(2) == 0;
    return nullptr;
  }

  Rng& rng() { return rng_; }

 private:
  Json any() {
    const Json all =
        Json::parse(R"(["", "a", 0, -7, 1.5, true, null, [], [1], {}, {"a": 1}, "abc"])");
    return all[rng_.below(all.size())];
  }
  std::string some_string() {
    std::string out;
    for (uint64_t n = rng_.below(5); n > 0; --n) {
      const char* kParts[] = {"a", "b", "\"", "\\", "\n", "\u00e4", "\u20ac", "\U0001F600", " "};
      out += kParts[rng_.below(9)];
    }
    return out;
  }
  Json some_object(const Json& schema, const Json& root, int depth) {
    Json out = Json::object();
    for (const auto& [name, property] : schema["properties"].items())
      if (rng_.below(3) != 0) out[name] = instance(property, root, depth - 1);
    if (rng_.below(3) == 0) out[kNames[rng_.below(5)]] = any();
    return out;
  }
  Json some_array(const Json& schema, const Json& root, int depth) {
    Json out = Json::array();
    const Json& items = schema["items"];
    const size_t n_prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
    for (uint64_t n = rng_.below(5); n > 0; --n)
      out.push_back(instance(out.size() < n_prefix ? schema["prefixItems"][out.size()] : items,
                             root, depth - 1));
    return out;
  }

  Json string() {
    Json out = {{"type", "string"}};
    if (rng_.below(2) == 0) out["minLength"] = rng_.below(3);
    if (rng_.below(2) == 0) out["maxLength"] = 2 + rng_.below(3);
    return out;
  }
  Json integer() {
    Json out = {{"type", "integer"}};
    if (rng_.below(2) == 0) out["minimum"] = static_cast<int64_t>(rng_.below(40)) - 30;
    if (rng_.below(2) == 0) out["maximum"] = static_cast<int64_t>(rng_.below(40)) + 10;
    return out;
  }
  Json number() {
    Json out = {{"type", "number"}};
    if (rng_.below(2) == 0)
      out[rng_.below(2) == 0 ? "minimum" : "exclusiveMinimum"] =
          static_cast<int64_t>(rng_.below(20)) - 15;
    if (rng_.below(2) == 0)
      out[rng_.below(2) == 0 ? "maximum" : "exclusiveMaximum"] =
          static_cast<int64_t>(rng_.below(20)) + 5;
    return out;
  }
  Json object(int depth) {
    Json out = {{"type", "object"}, {"properties", Json::object()}};
    Json required = Json::array();
    for (const char* name : kNames) {
      if (rng_.below(2) == 0) continue;
      out["properties"][name] = schema(depth - 1);
      if (rng_.below(2) == 0) required.push_back(name);
    }
    if (!required.empty()) out["required"] = std::move(required);
    const uint64_t more = rng_.below(3);
    out["additionalProperties"] = more == 0 ? Json(true) : more == 1 ? schema(0) : Json(false);
    return out;
  }
  Json array(int depth) {
    Json out = {{"type", "array"}, {"items", schema(depth - 1)}};
    if (rng_.below(2) == 0) out["minItems"] = rng_.below(3);
    if (rng_.below(2) == 0) out["maxItems"] = 2 + rng_.below(3);
    return out;
  }
  Json tuple(int depth) {
    Json out = array(depth);
    out["prefixItems"] = Json::array({schema(0), schema(depth - 1)});
    return out;
  }

  Rng rng_;
};

// Declared properties in their order, others after them: how a grammar wants an object written.
bool in_order(const Json& schema, const Json& instance, const Json& root) {
  if (!schema.is_object()) return true;
  if (schema.contains("$ref")) return in_order(root["$defs"]["d"], instance, root);
  if (schema.contains("anyOf")) {
    for (const Json& branch : schema["anyOf"])
      if (test::validates(branch, instance, root) && in_order(branch, instance, root)) return true;
    return false;
  }
  if (instance.is_array()) {
    for (size_t i = 0; i < instance.size(); ++i) {
      const bool fixed = schema.contains("prefixItems") && i < schema["prefixItems"].size();
      if (!in_order(fixed ? schema["prefixItems"][i] : schema["items"], instance[i], root))
        return false;
    }
    return true;
  }
  if (!instance.is_object() || !schema.contains("properties")) return true;
  size_t last = 0;
  for (const auto& [name, value] : instance.items()) {
    size_t at = 0;
    const Json* property = &schema["additionalProperties"];
    for (const auto& [declared, its] : schema["properties"].items()) {
      ++at;
      if (declared != name) continue;
      property = &its;
      break;
    }
    if (property == &schema["additionalProperties"]) at = 1000;
    if (at < last || !in_order(*property, value, root)) return false;
    last = at;
  }
  return true;
}

struct Case {
  Json schema;
  Result<Grammar> grammar;
};

Case random_case(RandomSchema& random) {
  Json schema = random.schema(2);
  schema["$defs"]["d"] = random.schema(1);
  Builder builder;
  auto piece = builder.schema(schema, {.strict = true});
  if (!piece.ok()) return {schema, piece.status()};
  return {schema, builder.finish(*piece)};
}

TEST(GrammarRandom, InstancesAreAcceptedExactlyWhenValid) {
  size_t n_valid = 0, n_invalid = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomSchema random(seed);
    Case c = random_case(random);
    if (!c.grammar.ok()) {
      ASSERT_EQ(c.grammar.status().message(), "no text can satisfy it") << c.schema;
    }
    std::optional<TokenGrammar> tokens;
    std::vector<std::pair<std::string, bool>> texts;
    for (int i = 0; i < 30; ++i) {
      const Json instance = random.instance(c.schema, c.schema, 4);
      const bool valid = test::validates(c.schema, instance, c.schema);
      if (valid && !in_order(c.schema, instance, c.schema)) continue;
      ASSERT_TRUE(c.grammar.ok() || !valid) << c.schema << instance;
      texts.emplace_back(json_text(instance, static_cast<int>(random.rng().below(4)) - 1), valid);
      (valid ? n_valid : n_invalid) += 1;
    }
    if (!c.grammar.ok()) continue;
    for (const auto& [text, valid] : texts)
      ASSERT_EQ(test::accepts(c.grammar.value(), text), valid)
          << "seed " << seed << ": " << c.schema << "\n"
          << text;
    tokens.emplace(std::move(*c.grammar), test::small_vocabulary());
    for (const auto& [text, valid] : texts)
      for (uint64_t way = 0; way < 3; ++way)
        ASSERT_EQ(test::accepts_in_tokens(*tokens, text, seed * 100 + way), valid)
            << "seed " << seed << ": " << c.schema << "\n"
            << text;
  }
  EXPECT_GT(n_valid, 1000u);
  EXPECT_GT(n_invalid, 1000u);
}

// The mask is exactly the tokens that can be accepted.
void expect_exact_mask(const Matcher& matcher, const std::vector<uint32_t>& mask,
                       const Json& schema) {
  const TokenTrie& trie = test::small_vocabulary().trie;
  for (int32_t id = 0; id < trie.n_tokens(); ++id) {
    Matcher copy = matcher;
    ASSERT_EQ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0, copy.accept(id).ok())
        << schema << " token " << id << " " << trie.piece(id);
  }
}

TEST(GrammarRandom, WalksThroughMasksEndInValidJson) {
  const TokenTrie& trie = test::small_vocabulary().trie;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomSchema random(seed);
    Case c = random_case(random);
    if (!c.grammar.ok()) continue;
    const TokenGrammar grammar(std::move(*c.grammar), test::small_vocabulary());
    std::vector<uint32_t> mask((static_cast<size_t>(trie.n_tokens()) + 31) / 32);
    for (int walk = 0; walk < 3; ++walk) {
      Matcher matcher(grammar);
      std::string text;
      for (size_t step = 0; !matcher.ended(); ++step) {
        ASSERT_LT(step, 100'000u) << c.schema << text;
        matcher.mask(mask);
        if (step < 12 && walk == 0) expect_exact_mask(matcher, mask, c.schema);
        if (HasFatalFailure()) return;
        std::vector<int32_t> allowed;
        for (int32_t id = 0; id < trie.n_tokens(); ++id)
          if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
        ASSERT_FALSE(allowed.empty()) << c.schema << text;
        // Ends where it may after a while, or it would write lists for ever.
        const bool end = matcher.is_complete() && step > 20;
        const int32_t token = end ? test::kEnd : allowed[random.rng().below(allowed.size())];
        ASSERT_TRUE(matcher.accept(token).ok());
        text += trie.piece(token);
      }
      const Json parsed = Json::parse(text, nullptr, false);
      ASSERT_FALSE(parsed.is_discarded()) << c.schema << "\n" << text;
      ASSERT_TRUE(test::validates(c.schema, parsed, c.schema)) << c.schema << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace millrace::grammar
