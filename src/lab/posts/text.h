// Text from outside made fit for a post. What people and agents wrote into the notebook is data: in
// Markdown it comes out as the words it is, without markup, HTML, template tags, front matter or
// characters that hide or turn a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::lab {

// Control characters, marks of direction, zero-width and other unseen characters: U+202E and such.
bool is_unseen(char32_t code);
// The first of them in a text as "U+202E", with newlines and tabs let pass; empty: none.
std::string first_unseen(std::string_view text);

// One line without what is unseen; bytes that are no UTF-8 become U+FFFD.
std::string one_line(std::string_view text);
// `text` as words in a Markdown paragraph, for GitHub, Jekyll and our own pages alike.
std::string inert(std::string_view text);

std::string html_escape(std::string_view text);  // for text and attributes, of XML too
// Lower-case letters, digits and '-', of at most 60; "post" where nothing is left.
std::string slug_of(std::string_view text);

std::vector<std::string_view> split_lines(std::string_view text);
std::string_view trimmed(std::string_view text);
bool is_digit(char c);
bool is_word(char c);  // a letter, a digit or '_'

}  // namespace millrace::lab
