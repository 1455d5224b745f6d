// Reads a template's tokens into a tree, with jinja2's grammar and precedence. A tree nests to a
// fixed depth at most, so that neither walking nor freeing it can run out of stack.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/template/ast.h"

namespace millrace::jinja {

// Templates past these are refused. The largest known ones have 20 KB and nest a dozen deep.
inline constexpr size_t kMaxSourceBytes = 1 << 20;  // which parses to 150 MB at worst, in 0.4 s
inline constexpr uint32_t kMaxTreeDepth = 120;

Result<Ast> parse(std::string_view source);

}  // namespace millrace::jinja
