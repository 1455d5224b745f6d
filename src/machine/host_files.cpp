#include "machine/host_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace millrace {
namespace {

// Parses a number at the front of `text` and drops it.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

bool HostFiles::exists(std::string_view path) const {
  std::error_code ignored;
  return std::filesystem::exists(at(path), ignored);
}

std::optional<std::string> HostFiles::text(std::string_view path) const {
  std::ifstream file(at(path));
  if (!file) return std::nullopt;
  std::ostringstream all;
  all << file.rdbuf();
  std::string out = all.str();
  while (!out.empty() && (out.back() == '\n' || out.back() == '\0')) out.pop_back();
  return out;
}

std::optional<int64_t> HostFiles::number(std::string_view path) const {
  const auto all = text(path);
  if (!all) return std::nullopt;
  std::string_view rest = *all;
  return take_number(rest);
}

std::optional<size_t> HostFiles::size(std::string_view path) const {
  const auto all = text(path);
  if (!all) return std::nullopt;
  std::string_view rest = *all;
  const auto value = take_number(rest);
  if (!value || *value < 0) return std::nullopt;
  const char unit = rest.empty() ? ' ' : rest.front();
  const int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
  return static_cast<size_t>(*value) << shift;
}

std::vector<int> HostFiles::cpu_list(std::string_view path) const {
  return parse_cpu_list(text(path).value_or(""));
}

std::vector<std::string> HostFiles::names(std::string_view path) const {
  std::vector<std::string> out;
  std::error_code problem;
  for (std::filesystem::directory_iterator it(at(path), problem), end; !problem && it != end;
       it.increment(problem))
    out.push_back(it->path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> out;
  while (!text.empty()) {
    const auto first = take_number(text);
    auto last = first;
    if (!text.empty() && text.front() == '-') {
      text.remove_prefix(1);
      last = take_number(text);
    }
    if (!first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) out.push_back(static_cast<int>(cpu));
    if (text.empty()) break;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
  return out;
}

std::optional<std::string> value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const size_t begin = line.find_first_not_of(" \t:");
    if (begin == 0) continue;  // a longer key that starts the same
    return std::string(begin == std::string_view::npos ? "" : line.substr(begin));
  }
  return std::nullopt;
}

int64_t number_of(std::string_view text, std::string_view key) {
  const std::string value = value_of(text, key).value_or("");
  std::string_view rest = value;
  return take_number(rest).value_or(0);
}

}  // namespace millrace
