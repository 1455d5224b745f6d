// The small text files below /proc and /sys that describe a host, read below a root that tests
// replace by a made-up one. A file that is missing or malformed is an absent value, never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

inline constexpr int kMaxCpus = 1 << 16;

class HostFiles {
 public:
  explicit HostFiles(std::string root) : root_(std::move(root)) {}

  bool exists(std::string_view path) const;
  // The whole file without its trailing newline.
  std::optional<std::string> text(std::string_view path) const;
  std::optional<int64_t> number(std::string_view path) const;
  // A size as sysfs writes it: "48K", "32M", plain bytes.
  std::optional<size_t> size(std::string_view path) const;
  std::vector<int> cpu_list(std::string_view path) const;
  // Names in a folder, sorted.
  std::vector<std::string> names(std::string_view path) const;

 private:
  std::string at(std::string_view path) const { return root_ + "/" + std::string(path); }
  std::string root_;
};

// "0-3,8,10-11" as numbers; empty when malformed.
std::vector<int> parse_cpu_list(std::string_view text);

// The value after "key:" or "key " at the start of a line, trimmed: /proc/meminfo, /proc/cpuinfo.
std::optional<std::string> value_of(std::string_view text, std::string_view key);
// The number that value begins with; 0 when there is none.
int64_t number_of(std::string_view text, std::string_view key);

}  // namespace millrace
