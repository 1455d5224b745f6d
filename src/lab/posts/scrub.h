// What must not leave the machine in a post: keys and passwords, names of hosts and users, paths.
// A draft has them removed; a post that has them is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::lab {

struct Private {
  size_t at = 0, n = 0;
  std::string what;  // "a path of this machine"
};

// Every private part, in order, not overlapping.
std::vector<Private> find_private(std::string_view text);
// With "[removed]" in place of each.
std::string scrubbed(std::string_view text);

// What a code span may hold of a name or command from outside: one line, without private parts and
// without signs that could end the span or begin a tag.
std::string code_text(std::string_view text);

}  // namespace millrace::lab
