// Finding the numbers of a text, and telling them from names that have digits in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/posts/claims.h"

namespace millrace::lab {

struct Unbound {
  size_t at = 0, n = 0;
  std::string text;  // the number with a word around it, for the message
};

// Every number that is no date, name, section or list number: digits of any script, and words such
// as "three times" or "twice".
std::vector<Unbound> unbound_numbers(std::string_view text);

// With "[...]" in place of each: of what people typed, no number is bound to anything.
std::string without_numbers(std::string_view text);

// A code span or line of code that gives no number: it has no digit, names what the runs name, or
// every word of it is an identifier (avx2, q8_0, AVX-512).
bool names_something(std::string_view code, const Claims& claims);
bool is_identifier(std::string_view word);
// One that prose may use without a claim: of a type, a processor or a model.
bool is_name(std::string_view word);

// Whether a number can begin here: not inside another one, and not behind a sign that would turn
// it.
bool begins_number(std::string_view text, size_t at);
// Where the number with its unit begins that ends before `end`; for one that may be out of date.
size_t begin_of_number(std::string_view text, size_t end, const ClaimValue& value);

// What stands behind a bound number and makes another one of it: "x" behind a count of rows, " %",
// " million", further digits, also on the next line or in code. Empty: nothing.
std::string turned_by(std::string_view after);
// What stands before a number that is no ratio and makes one of it: "factor of". Empty: nothing.
std::string turned_from(std::string_view before);

// https, or a file beside the post.
bool is_safe_link(std::string_view to);

}  // namespace millrace::lab
