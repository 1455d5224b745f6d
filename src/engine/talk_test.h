// What tests need to let the small trained model talk.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/fixture_test.h"
#include "engine/language_model.h"

namespace millrace {

struct Talk {
  std::unique_ptr<Loaded> loaded;
  std::unique_ptr<LanguageModel> model;

  static Talk with(int n_lanes, const EngineOptions& options,
                   const std::string& path = tiny_model()) {
    Talk out;
    out.loaded = load(path, n_lanes, options);
    if (out.loaded == nullptr) return out;
    auto model = LanguageModel::make(*out.loaded->engine, out.loaded->pick_from());
    EXPECT_TRUE(model.ok()) << model.status().message();
    out.model = std::make_unique<LanguageModel>(std::move(model).value());
    return out;
  }
};

struct Said {
  std::string text;
  std::vector<int32_t> tokens;
  bool operator==(const Said&) const = default;
};

inline OnToken into(Said& said) {
  return [&said](const TokenEvent& event) {
    said.text += event.text;
    if (event.token != nullptr) said.tokens.push_back(event.token->token);
  };
}

inline std::vector<int32_t> tokens_of(const LanguageModel& model, const std::string& text) {
  return model.tokenizer().encode(text, true).value();
}

inline Generation how(uint64_t seed, int64_t n) {
  Generation out;
  out.sampling.seed = seed;
  out.sampling.repeat_penalty = seed % 2 == 0 ? 1.1f : 1.0f;
  out.max_tokens = n;
  return out;
}

}  // namespace millrace
