// The two long lists of a tokenizer.json, model.vocab and model.merges, taken out of the JSON while
// it is parsed: a tree of them would take twenty times the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/hf_json.h"

namespace millrace::hf {

class TokenLists {
 public:
  struct Token {
    std::string_view text;
    int64_t id;  // -1: not a number that could be one
  };
  struct Pair {
    std::string_view left, right;
  };

  // To be given to the parser.
  bool visit(int depth, Json::parse_event_t event, const Json& value);
  // What was wrong with an entry, the first one.
  const Status& status() const { return status_; }

  size_t n_tokens() const { return tokens_.size(); }
  Token token(size_t i) const;
  size_t n_merges() const { return merges_.size(); }
  Pair merge(size_t i) const;

 private:
  struct TokenEnd {
    uint32_t end;
    int64_t id;
  };
  struct MergeEnd {
    uint32_t left, right;
  };
  bool in_vocab(int depth, Json::parse_event_t event, const Json& value);
  bool in_merges(int depth, Json::parse_event_t event, const Json& value);
  void add_merge(std::string_view text);
  void end_pair();
  void not_a_pair();

  std::string list_, member_;  // the keys at the first and the second level
  std::string token_text_, merge_text_;
  std::vector<TokenEnd> tokens_;  // where each text ends in token_text_
  std::vector<MergeEnd> merges_;
  std::vector<uint32_t> parts_;  // ends of the strings of the pair being read
  Status status_;
};

}  // namespace millrace::hf
