#include "text/tokenizer/stream_decoder.h"

#include "base/utf8.h"

namespace millrace {

std::string StreamDecoder::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Char c = decode_utf8(held_, at);
    if (c.state == Utf8Char::State::incomplete) break;
    append_utf8(out, c.code);
    at += c.bytes;
  }
  held_.erase(0, at);
  return out;
}

std::string StreamDecoder::flush() {
  std::string out;
  if (!held_.empty()) append_utf8(out, kReplacement);
  held_.clear();
  return out;
}

}  // namespace millrace
