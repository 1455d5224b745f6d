#include "engine/text_stream.h"

namespace millrace {

std::string TextStream::push(int32_t token) {
  if (tokenizer_.is_control(token)) return flush();  // nothing continues across it
  return stops_.push(decoder_.push(tokenizer_.piece(token)));
}

std::string TextStream::flush() {
  std::string out = stops_.push(decoder_.flush());
  return out + stops_.flush();
}

}  // namespace millrace
