// Any text as what a model wrote: what it is taken apart into must not depend on how it was cut.
// The first byte chooses the format, the second how the text is cut; the rest is the text.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/philox.h"
#include "text/output/output_test_support.h"

namespace {

using namespace millrace;
using Kind = OutputEvent::Kind;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

OutputRules rules_for(uint8_t byte, bool with_tools) {
  static const auto kTools = nlohmann::ordered_json::parse(R"([{"name": "f", "parameters": {
    "properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array"}}}}])");
  OutputRules rules;
  rules.format.tools = static_cast<ToolFormat>(byte % kToolFormats);
  rules.format.reasoning =
      rules.format.tools == ToolFormat::cohere ? ReasoningFormat::cohere : ReasoningFormat::think;
  rules.in_reasoning = byte >= 128;
  if (with_tools) rules.tools = ToolSet(kTools);
  return rules;
}

std::vector<size_t> cuts_of(uint8_t byte, size_t size) {
  Rng rng(byte);
  const uint64_t longest = 1 + byte % 16;
  std::vector<size_t> cuts;
  for (size_t at = 1 + rng.below(longest); at < size; at += 1 + rng.below(longest))
    cuts.push_back(at);
  return cuts;
}

// Begin, arguments, end, with nothing between them, numbered from 0 on.
void require_whole_calls(const std::vector<OutputEvent>& events) {
  int n_calls = 0;
  bool is_open = false;
  for (const OutputEvent& event : events) {
    const bool is_call = event.kind != Kind::content && event.kind != Kind::reasoning;
    const bool begins = event.kind == Kind::call_begin;
    require(is_open == (is_call && !begins), "events of calls are out of order");
    if (begins) ++n_calls;
    if (is_call) is_open = event.kind != Kind::call_end;
    require(event.call == (is_call ? n_calls - 1 : -1), "a call has the wrong number");
  }
  require(!is_open, "a call has no end");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const OutputRules rules = rules_for(data[0], true);
  const auto whole = parsed(rules, text);
  require_whole_calls(whole);
  require(joined(parsed(rules, text, cuts_of(data[1], text.size()))) == joined(whole),
          "the result depends on the cuts");
  OutputRules plain = rules_for(data[0], false);
  plain.format.reasoning = ReasoningFormat::none;
  if (plain.format.tools == ToolFormat::cohere) return 0;  // drops markers of its layout
  require(joined(parsed(plain, text)) == (text.empty() ? "" : "C[" + std::string(text) + "]"),
          "text is lost without tools");
  return 0;
}
