// A model's text on its way to a person. A terminal gets it without control characters, which could
// move its cursor or change its state, and wrapped at words where that is wanted; a pipe or a file
// gets every byte as it is.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace millrace::cli {

// `text` without what could move a terminal's cursor or change its state; newlines and tabs stay.
std::string without_controls(std::string_view text);

// Characters of several bytes are known by the C library (wcwidth, libedit): LC_CTYPE of the
// environment, or C.UTF-8 where that has single bytes alone.
void use_utf8_locale();

// Breaks text that comes in parts into lines of a width, between words where it can: a word longer
// than a line breaks at the edge, and East Asian characters break anywhere.
class WordWrap {
 public:
  // What can be shown now. The last word is held until its end is known. `width` is in columns; 0:
  // nothing is broken or held.
  std::string push(std::string_view text, int width);
  std::string flush();  // the word held

 private:
  void add(std::string_view character, int columns);
  void add_space(char space);
  void place_word();

  int width_ = 0, column_ = 0;
  std::string word_, shown_;
  int word_columns_ = 0;
};

class TextOutput {
 public:
  struct Style {
    bool is_terminal = false;
    bool wraps = false;  // on a terminal
    int columns = 0;     // 0: the terminal is asked each time, it can change
  };
  TextOutput(std::FILE* out, Style style);

  void put(std::string_view text);
  void flush();  // what is held of it: at the end of a text

 private:
  int columns() const;
  void write(std::string_view text);

  std::FILE* out_;
  Style style_;
  WordWrap wrap_;
};

// `out` as `run` and others use it: filtered where it is a terminal, never wrapped.
void print_text(std::FILE* out, std::string_view text);

}  // namespace millrace::cli
