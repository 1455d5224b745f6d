// What the name of a GGUF file tells by the habits of those who publish them: its quantisation
// (model-Q4_K_M.gguf, model.Q4_1.gguf) and its place in a split model (-00001-of-00003). A name is
// a hint for choosing and listing; the file itself decides what it holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace {

struct GgufName {
  std::string stem;   // without .gguf and without the part
  std::string quant;  // in upper case, "Q4_K_M"; empty when the name holds none
  int part = 1;
  int n_parts = 1;
};

inline constexpr int kMaxParts = 1000;

// Empty for a name that is no GGUF model's: another ending, an image projector, an importance
// matrix, or part numbers that make no sense. Folders before the last slash are ignored.
std::optional<GgufName> parse_gguf_name(std::string_view path);

// `path`, which is a part of a split model, with its part number replaced.
std::string part_path(std::string_view path, int part);

std::string to_lower(std::string_view ascii);

}  // namespace millrace
