// Any text as a chat template, rendered over one conversation within small budgets.
#include "text/template/template.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace {

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße <s> {{ x }}"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function",
      "function": {"name": "f", "arguments": {"x": [1, 2.5, null, true, "y"]}}}]},
    {"role": "tool", "content": [{"type": "text", "text": "21"}], "tool_call_id": "a"}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
  "add_generation_prompt": true, "bos_token": "<s>", "n": 7, "l": [3, 1, 2], "s": "text\n  more \n"})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace::jinja;
  static const auto variables = nlohmann::ordered_json::parse(kVariables);
  const auto parsed = Template::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  const Limits limits = {.steps = 100'000, .output_bytes = 1 << 20, .memory_bytes = 8 << 20};
  (void)parsed.value().render(variables, limits);
  return 0;
}
