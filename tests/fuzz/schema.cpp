// Any text as a JSON schema: compiled both ways, then followed by a walk through its masks.
// Whatever compiles must be able to end: a walk that may always go on finds a token, and its text
// is JSON.
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/grammar/matcher.h"

namespace {

using namespace millrace;
using namespace millrace::grammar;

constexpr int32_t kEnd = 256;

const Vocabulary& vocabulary() {
  static const Vocabulary all = [] {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    pieces.emplace_back();
    for (const char* text : {"\", \"", "\": ", "{\"", "\"}", "}]", "[[", "]]", "ab", "\\u00", "123",
                             "\n  ", "null", "true", "\xe2\x82", "\xac\""})
      pieces.emplace_back(text);
    return Vocabulary(TokenTrie(pieces, {kEnd}, {}));
  }();
  return all;
}

// The tokens are chosen by the schema's own bytes; ends as soon as it may after a while.
void walk(Grammar grammar, std::string_view schema) {
  const TokenGrammar tokens(std::move(grammar), vocabulary());
  Matcher matcher(tokens);
  std::array<uint32_t, 16> mask{};
  std::string text;
  constexpr size_t kSteps = 200;
  for (size_t step = 0; step < kSteps && !matcher.ended(); ++step) {
    matcher.mask(mask);
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < vocabulary().trie.n_tokens(); ++id)
      if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
    MILLRACE_CHECK(!allowed.empty(), "nothing may follow {}", text);
    const size_t choice = static_cast<uint8_t>(schema[step * 7 % schema.size()]) + step;
    const bool end = matcher.is_complete() && step > 50;
    const int32_t token = end ? kEnd : allowed[choice % allowed.size()];
    const Status taken = matcher.accept(token);
    MILLRACE_CHECK(taken.ok(), "allowed, but {}", taken.message());
    text += vocabulary().trie.piece(token);
  }
  if (!matcher.ended()) return;
  MILLRACE_CHECK(nlohmann::json::accept(text), "a walk wrote {}", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view schema(reinterpret_cast<const char*>(data), size);
  for (const bool strict : {false, true}) {
    Builder builder;
    auto piece = builder.schema_text(schema, {.strict = strict, .additional = strict});
    if (!piece.ok()) continue;
    auto grammar = builder.finish(*piece);
    if (grammar.ok()) walk(std::move(*grammar), schema);
  }
  return 0;
}
