// JSON byte by byte, for text that is still being written: where a value ends, what a string says.
// Nothing is parsed or checked beyond strings, escapes and depth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Where one value ends.
class JsonScan {
 public:
  enum class Found : unsigned char {
    more,
    last,  // this byte ends the value
    past,  // the value (a number, say) ended before this byte
  };
  Found push(char c);
  bool in_string() const { return in_string_; }

 private:
  Found push_in_string(char c);

  int64_t depth_ = 0;
  bool in_string_ = false, escaped_ = false, scalar_ = false;
};

// What a string literal says: takes the bytes after the opening quote. An escape that is none stays
// as it is.
class JsonUnescape {
 public:
  // False: this byte is the closing quote.
  bool push(char c, std::string& out);

 private:
  bool push_escape(char c, std::string& out);
  bool push_digit(char c, std::string& out);
  void push_code(uint32_t code, std::string& out);
  void give_up(std::string& out);

  std::string escape_;      // from the backslash on
  uint32_t surrogate_ = 0;  // the first of a pair, whose escape is in `pair_`
  std::string pair_;
};

// `text` within the quotes of a JSON string.
void append_escaped(std::string& out, std::string_view text);

// The value of "arguments": a JSON value as it is written, or a string that holds one. Null and
// the empty string become {}.
class ArgumentsScan {
 public:
  enum class Found : unsigned char {
    more,
    last,
    past,
    broken,  // this byte cannot be part of JSON: the value was never finished
  };
  Found push(char c, std::string& out);
  // Markers there are part of the arguments.
  bool in_string() const { return mode_ == Mode::text || scan_.in_string(); }

 private:
  enum class Mode : unsigned char { start, json, text, null };
  Found push_json(char c, std::string& out);

  Mode mode_ = Mode::start;
  JsonScan scan_;
  JsonUnescape unescape_;
  bool is_empty_ = true;
};

}  // namespace millrace
