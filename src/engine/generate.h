// One prompt answered: computed, then sampled token by token until the model, a stop string, a
// limit or the caller ends it. The text comes as valid UTF-8, without control tokens.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {

struct Generation {
  Sampling sampling;
  int64_t max_tokens = -1;  // -1: as many as the context holds
  std::vector<std::string> stops;
  bool ignore_end = false;  // goes on where the model would end
};

enum class Finish : unsigned char { end, stop_string, length, cancelled };

std::string_view name_of(Finish finish);

struct Generated {
  Finish finish = Finish::end;
  int64_t n_prompt = 0, n_cached = 0, n_tokens = 0;
  double prompt_s = 0, tokens_s = 0;  // until the first token, and from it on
};

// What a generation runs on; the sequence keeps its tokens for the next prompt that shares them.
struct Generator {
  Engine& engine;
  Sampler& sampler;
  const Tokenizer& tokenizer;
  int seq;
};

// Told of every token with the text it made certain, which is often empty and once more at the end.
using OnToken = std::function<void(std::string_view text, const Sampled* token)>;

Result<Generated> generate(const Generator& with, std::vector<int32_t> prompt,
                           const Generation& how, const OnToken& on_token,
                           const std::atomic<bool>& cancel);

}  // namespace millrace
