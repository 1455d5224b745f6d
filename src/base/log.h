// Structured logging: one line per event, every part a key=value, to stderr. A Log is made in main
// from its configuration and passed to who needs one; there is no global. Lines from several
// threads do not mix. A level that is off costs one comparison.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

enum class LogLevel { debug, info, warning, error, off };

std::string_view name_of(LogLevel level);
Result<LogLevel> parse_log_level(std::string_view name);

class Log {
 public:
  explicit Log(LogLevel least, std::FILE* out = stderr) : least_(least), out_(out) {}

  bool on(LogLevel level) const { return level >= least_; }

  // log.info("model loaded", "path", path, "bytes", n): an event, then keys and values in turn.
  template <class... Fields>
  void debug(std::string_view event, const Fields&... fields) const {
    write(LogLevel::debug, event, fields...);
  }
  template <class... Fields>
  void info(std::string_view event, const Fields&... fields) const {
    write(LogLevel::info, event, fields...);
  }
  template <class... Fields>
  void warning(std::string_view event, const Fields&... fields) const {
    write(LogLevel::warning, event, fields...);
  }
  template <class... Fields>
  void error(std::string_view event, const Fields&... fields) const {
    write(LogLevel::error, event, fields...);
  }

 private:
  template <class... Fields>
  void write(LogLevel level, std::string_view event, const Fields&... fields) const {
    static_assert(sizeof...(fields) % 2 == 0, "keys and values come in pairs");
    if (!on(level)) return;
    std::string line = begin_line(level, event);
    add_fields(line, fields...);
    end_line(line);
  }
  static void add_fields(std::string&) {}
  template <class Value, class... Rest>
  static void add_fields(std::string& line, std::string_view key, const Value& value,
                         const Rest&... rest) {
    add_field(line, key, fmt::format("{}", value));
    add_fields(line, rest...);
  }
  static std::string begin_line(LogLevel level, std::string_view event);
  static void add_field(std::string& line, std::string_view key, std::string_view value);
  void end_line(std::string& line) const;

  LogLevel least_;
  std::FILE* out_;
};

}  // namespace millrace
