// Cuts a template into tokens with the settings that chat templates are written for: the first
// newline after a block goes, and so does the white space before a block on its own line
// (trim_blocks and lstrip_blocks); `-` and `+` at a tag's ends override that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace::jinja {

enum class TokenKind : unsigned char {
  data,
  print_begin,  // {{
  print_end,
  block_begin,  // {%
  block_end,
  name,
  string,   // text holds what it says, not how it was written
  integer,  // text holds the digits without underscores
  real,
  op,
  end,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;
};

Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace millrace::jinja
