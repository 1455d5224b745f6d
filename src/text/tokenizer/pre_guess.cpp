#include "text/tokenizer/pre_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace millrace {
namespace {

constexpr int32_t kAnywhere = -1;

struct Mark {
  std::string_view token;
  int32_t id = kAnywhere;
};

struct Family {
  std::string_view pre;
  std::vector<Mark> marks;  // all of them
};

// The first that fits: those that share tokens stand in the order that tells them apart. Models
// trained further keep the ids of their base.
const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"llama4", {{"<|begin_of_text|>", 200000}, {"<|header_start|>"}}},
      {"llama-bpe", {{"<|begin_of_text|>"}, {"<|start_header_id|>"}, {"<|eot_id|>"}}},
      {"llama-bpe", {{"<｜begin▁of▁sentence｜>", 128000}}},  // DeepSeek R1, distilled to Llama
      {"deepseek-r1-qwen", {{"<｜end▁of▁sentence｜>", 151643}}},
      {"deepseek-v3", {{"<｜begin▁of▁sentence｜>", 0}, {"<｜fim▁hole｜>"}}},
      {"deepseek-llm", {{"<｜begin▁of▁sentence｜>", 100000}}},
      {"deepseek-coder", {{"<｜begin▁of▁sentence｜>", 32013}}},
      {"qwen2", {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}}},
      {"gpt-4o", {{"<|endoftext|>", 199999}, {"<|endofprompt|>"}}},
      {"tekken", {{"<s>", 1}, {"[INST]", 3}, {"[/INST]", 4}, {"[AVAILABLE_TOOLS]"}}},
      {"falcon3", {{">>TITLE<<", 0}, {"<|pad|>"}, {"<|assistant|>"}}},
      {"lfm2", {{"<|pad|>", 0}, {"<|startoftext|>", 1}, {"<|im_start|>", 6}}},
      {"command-r", {{"<BOS_TOKEN>"}, {"<|START_OF_TURN_TOKEN|>"}}},
      {"smollm", {{"<|endoftext|>", 0}, {"<|im_start|>", 1}, {"<repo_name>"}}},
      {"starcoder", {{"<|endoftext|>", 0}, {"<fim_prefix>", 1}}},
      {"olmo", {{"<|padding|>", 1}, {"<|endoftext|>"}}},  // GPT-NeoX and what came of it
      {"gpt-2", {{"<|endoftext|>", 50256}}},
  };
  return kFamilies;
}

bool has(std::span<const std::string> tokens, const Mark& mark) {
  if (mark.id == kAnywhere)
    return std::find(tokens.begin(), tokens.end(), mark.token) != tokens.end();
  const auto id = static_cast<size_t>(mark.id);
  return id < tokens.size() && tokens[id] == mark.token;
}

std::string text_of(const Family& family) {
  std::string out;
  for (const Mark& mark : family.marks) {
    if (!out.empty()) out += ", ";
    out += mark.token;
    if (mark.id != kAnywhere) out += fmt::format(" at {}", mark.id);
  }
  return out;
}

}  // namespace

PreGuess guess_pre_rule(std::span<const std::string> tokens) {
  for (const Family& family : families())
    if (std::all_of(family.marks.begin(), family.marks.end(),
                    [&](const Mark& mark) { return has(tokens, mark); }))
      return {family.pre, text_of(family)};
  return {};
}

}  // namespace millrace
