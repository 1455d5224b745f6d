// From tokens to text, as they come: valid UTF-8 (a character that is not whole yet waits), without
// what might begin a stop string. Control tokens are no text: a user never sees them, and who
// parses tool calls or reasoning sees them as tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/stop_strings.h"
#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {

class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, const std::vector<std::string>& stops)
      : tokenizer_(tokenizer), stops_(stops) {}

  // The text that this token made certain; before a control token, all that was held back.
  std::string push(int32_t token);
  // What was held back, at the end.
  std::string flush();
  bool is_stopped() const { return stops_.found(); }
  const std::string& stop_string() const { return stops_.which(); }

 private:
  const Tokenizer& tokenizer_;
  StreamDecoder decoder_;
  StopStrings stops_;
};

}  // namespace millrace
