#include "base/log.h"

#include <algorithm>

#include "base/clock.h"

namespace millrace {
namespace {

constexpr LogLevel kLevels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error,
                                LogLevel::off};

bool is_plain(std::string_view text) {
  const auto plain = [](char c) { return c > ' ' && c != '"' && c != '=' && c != 0x7f; };
  return !text.empty() && std::all_of(text.begin(), text.end(), plain);
}

// Quoted so that no value can start a line or a key of its own.
void append_quoted(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (line += '\\') += c;
    else if (c == '\n')
      line += "\\n";
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      line += c;
  }
  line += '"';
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
    case LogLevel::off:
      return "off";
  }
  return "unknown";
}

Result<LogLevel> parse_log_level(std::string_view name) {
  for (LogLevel level : kLevels)
    if (name == name_of(level)) return level;
  return millrace::error(Code::invalid_argument,
                         "no log level '{}'; the levels are debug, info, warning, error and off",
                         name);
}

std::string Log::begin_line(LogLevel level, std::string_view event) {
  std::string line = fmt::format("time={} level={}", utc_now(), name_of(level));
  add_field(line, "event", event);
  return line;
}

void Log::add_field(std::string& line, std::string_view key, std::string_view value) {
  ((line += ' ') += key) += '=';
  // UTF-8 beyond ASCII is quoted, not escaped: its bytes are negative as char.
  if (is_plain(value))
    line += value;
  else
    append_quoted(line, value);
}

void Log::end_line(std::string& line) const {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), out_);  // one call: stdio locks around it
  std::fflush(out_);
}

}  // namespace millrace
