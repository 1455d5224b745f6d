#include "files/gguf_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace millrace {
namespace {

constexpr std::string_view kEnding = ".gguf";
constexpr std::string_view kPartForm = "-00001-of-00001";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string to_upper(std::string_view ascii) {
  std::string out(ascii);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// Whether a word is the name of a tensor type or of a mix of them: q4_0, iq3_xxs, tq1_0, bf16.
bool is_quant(std::string_view word) {
  const std::string text = to_lower(word);
  constexpr std::array<std::string_view, 6> kWhole = {"f32",  "f16",  "bf16",
                                                      "fp16", "fp32", "mxfp4"};
  for (const auto whole : kWhole)
    if (text == whole || text.starts_with(std::string(whole) + "_")) return true;
  const size_t q = text.find('q');
  if (q > 1 || (q == 1 && text[0] != 'i' && text[0] != 't')) return false;
  return q + 1 < text.size() && is_digit(text[q + 1]) &&
         (q + 2 == text.size() || text[q + 2] == '_');
}

// The last word of the stem that names a type. Words are cut at '-' and '.'; an underscore cuts one
// only before a type, for it is also a part of one.
std::string find_quant(std::string_view stem) {
  for (size_t end = stem.size(); end > 0;) {
    const size_t cut = stem.find_last_of("-.", end - 1);
    const size_t begin = cut == std::string_view::npos ? 0 : cut + 1;
    const std::string_view word = stem.substr(begin, end - begin);
    for (size_t at = 0; at < word.size(); at = word.find('_', at) + 1) {
      if (is_quant(word.substr(at))) return to_upper(word.substr(at));
      if (word.find('_', at) == std::string_view::npos) break;
    }
    if (begin == 0) break;
    end = cut;
  }
  return "";
}

// "-00002-of-00003" at the end of a stem.
bool take_part(GgufName& name) {
  const std::string_view stem = name.stem;
  if (stem.size() <= kPartForm.size()) return true;
  const std::string_view tail = stem.substr(stem.size() - kPartForm.size());
  for (size_t i = 0; i < tail.size(); ++i)
    if (is_digit(kPartForm[i]) ? !is_digit(tail[i]) : tail[i] != kPartForm[i]) return true;
  std::from_chars(tail.data() + 1, tail.data() + 6, name.part);
  std::from_chars(tail.data() + 10, tail.data() + 15, name.n_parts);
  name.stem.resize(stem.size() - kPartForm.size());
  return name.part >= 1 && name.part <= name.n_parts && name.n_parts <= kMaxParts;
}

}  // namespace

std::string to_lower(std::string_view ascii) {
  std::string out(ascii);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

std::optional<GgufName> parse_gguf_name(std::string_view path) {
  const std::string_view file = path.substr(path.find_last_of('/') + 1);
  const std::string text = to_lower(file);
  if (text.size() <= kEnding.size() || !text.ends_with(kEnding)) return std::nullopt;
  for (const std::string_view other : {"mmproj", "imatrix"})
    if (text.find(other) != std::string::npos) return std::nullopt;
  GgufName name;
  name.stem = file.substr(0, file.size() - kEnding.size());
  if (!take_part(name)) return std::nullopt;
  name.quant = find_quant(name.stem);
  return name;
}

std::string part_path(std::string_view path, int part) {
  const size_t at = path.size() - kEnding.size() - kPartForm.size() + 1;
  return fmt::format("{}{:05}{}", path.substr(0, at), part, path.substr(at + 5));
}

}  // namespace millrace
