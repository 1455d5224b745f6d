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

#include "text/template/budget.h"

namespace millrace::jinja {

struct Span {
  size_t begin = 0, end = 0;
};

// Says of bytes asked for in ascending order whether they came from input.
class Origins {
 public:
  explicit Origins(const std::vector<Span>& input) : input_(input) {}
  bool at(size_t byte) {
    while (next_ < input_.size() && input_[next_].end <= byte) ++next_;
    return next_ < input_.size() && input_[next_].begin <= byte;
  }

 private:
  const std::vector<Span>& input_;
  size_t next_ = 0;
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
  // The byte at which code point `i` begins; the end for i past the last, and where the budget is
  // used up.
  size_t byte_of(size_t i, Budget& budget) const;
  bool any_input() const { return !input.empty(); }

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
bool is_ascii(std::string_view text);
size_t count_points(std::string_view text);

// Where `wanted` begins at or behind `from`, or the last place before `end` where it lies whole;
// npos when there is none, and when the budget is used up. Costs what is compared, because a search
// takes from one look a character up to the product of both lengths.
size_t find_in(std::string_view text, std::string_view wanted, size_t from, Budget& budget);
size_t rfind_in(std::string_view text, std::string_view wanted, size_t end, Budget& budget);

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

// The byte range of `text` without white space (or the code points of `chars`) at its ends. Costs
// what is stripped.
struct Ends {
  bool left = true, right = true;
};
Span stripped(std::string_view text, Ends ends, Budget& budget,
              const std::string_view* chars = nullptr);

// How Python prints a float: the shortest digits that read back, always with a point or exponent.
std::string float_repr(double value);

}  // namespace millrace::jinja
