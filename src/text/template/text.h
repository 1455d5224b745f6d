// A template's strings: bytes plus the spans of them that came from a message rather than from the
// template. Every operation on strings carries the spans along, so that the rendered prompt can say
// which of its bytes a user could have chosen; where an operation cannot tell, it says input.
// Positions are bytes in here; Python's code points are counted where a template counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::jinja {

// Live bytes of a render's values against their limit.
struct Meter {
  size_t live = 0;
  size_t limit = SIZE_MAX;
};

// The share of a meter that one value holds, given back with it.
class Charge {
 public:
  Charge() = default;
  Charge(Meter* meter, size_t bytes) { set(meter, bytes); }
  ~Charge() {
    if (meter_ != nullptr) meter_->live -= bytes_;
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  // Once, on an empty one.
  void set(Meter* meter, size_t bytes) {
    meter_ = meter;
    bytes_ = bytes;
    if (meter_ != nullptr) meter_->live += bytes_;
  }

 private:
  Meter* meter_ = nullptr;
  size_t bytes_ = 0;
};

struct Span {
  size_t begin = 0, end = 0;
};

// Grows a string and its spans; stops growing past its limit and remembers that it would have.
class TextBuilder {
 public:
  explicit TextBuilder(size_t limit) : limit_(limit) {}

  void append(std::string_view bytes, bool from_input);
  // A part of a string whose spans are `input`.
  void append(std::string_view bytes, const std::vector<Span>& input, size_t begin, size_t end);
  void append(const TextBuilder& other) { append(other.bytes_, other.input_, 0, other.size()); }
  void repeat(std::string_view bytes, size_t n, bool from_input);

  size_t size() const { return bytes_.size(); }
  bool over() const { return over_; }
  const std::string& bytes() const { return bytes_; }
  const std::vector<Span>& input() const { return input_; }
  std::string take_bytes() { return std::move(bytes_); }
  std::vector<Span> take_input() { return std::move(input_); }

 private:
  bool fits(size_t n);
  std::string bytes_;
  std::vector<Span> input_;  // ascending, apart from each other
  size_t limit_;
  bool over_ = false;
};

struct Text {
  Text(std::string text, std::vector<Span> spans, Meter* meter);

  std::string_view view() const { return bytes; }
  bool ascii() const { return n_points == bytes.size(); }
  // The byte at which code point `i` begins; the end for i past the last.
  size_t byte_of(size_t i) const;
  // Whether any byte, or the byte at `at`, came from input.
  bool any_input() const { return !input.empty(); }
  bool input_at(size_t at) const;

  std::string bytes;
  std::vector<Span> input;
  size_t n_points;
  bool safe = false;  // went through `safe` or `escape`: adding to it escapes what is added
  Charge charge;
};

// One code point, and how many bytes it takes; a byte that begins no UTF-8 counts as itself.
struct Point {
  uint32_t code;
  size_t bytes;
};
Point point_at(std::string_view text, size_t at);
size_t count_points(std::string_view text);

// As Python's str.isspace() and friends see a code point.
bool is_space(uint32_t code);
bool is_alpha(uint32_t code);
bool is_digit(uint32_t code);
bool is_word(uint32_t code);  // \w
bool is_upper(uint32_t code);
bool is_lower(uint32_t code);
bool is_printable(uint32_t code);
// Case mapping into UTF-8; a few characters become two or three (the German sharp s, ligatures).
void append_upper(std::string& out, uint32_t code);
void append_lower(std::string& out, uint32_t code);

// The byte range of `text` without white space (or the code points of `chars`) at its ends.
struct Ends {
  bool left = true, right = true;
};
Span stripped(std::string_view text, Ends ends, const std::string_view* chars = nullptr);

// How Python prints a float: the shortest digits that read back, always with a point or exponent.
std::string float_repr(double value);

}  // namespace millrace::jinja
