// The lexemes of JSON, and those made for one place of a grammar.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "text/grammar/lexeme.h"

namespace millrace::grammar {

// Every one made once and shared by all grammars.
struct Standard {
  // Any JSON string with its quotes: valid UTF-8, every escape, surrogates in pairs.
  Lexeme string;
  Lexeme::State body;    // of `string`, where a character or the closing quote follows
  Lexeme::State closed;  // after it
  // Any JSON string whose characters are spelled in one way (Spelling::json).
  Lexeme plain_string;
  // Between two tokens of JSON: nothing, a space, or a new line with an indent. A model can write
  // no more than that.
  Lexeme space;
  // At most 32 digits before and after the point and two in the exponent, so that a double holds
  // it.
  Lexeme number;
  Lexeme integer;  // at most 18 digits, so that 64 bits hold it
};
const Standard& standard();

inline constexpr uint32_t kNoLimit = UINT32_MAX;

// A JSON string that is none of `names`.
Result<std::optional<Lexeme>> string_without(std::span<const std::string> names);

// What `strings` accepts, JSON strings in Standard::plain_string, with so many characters.
Result<std::optional<Lexeme>> with_length(const Lexeme& strings, uint32_t min, uint32_t max);

// UTF-8 text in which none of `literals` occurs.
Result<std::optional<Lexeme>> text_without(std::span<const std::string> literals);

// A string as JSON writes it, with its quotes, spelled in the one way.
std::string json_string(std::string_view text);

}  // namespace millrace::grammar
