// Bytes of tokens in, valid UTF-8 out, as they come. A character that is not complete yet is held
// back; what cannot become one turns into U+FFFD, once for each longest part that could have begun
// a character.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

class StreamDecoder {
 public:
  std::string push(std::string_view bytes);
  // What is still held back, as U+FFFD: the stream has ended.
  std::string flush();

 private:
  std::string held_;
};

}  // namespace millrace
