// MILLRACE_CHECK(cond, "format", values...): always on; prints the site, the condition and the
// values, and aborts. For bugs only: no file, socket or user may be able to reach one.
#pragma once

#include <fmt/format.h>

#include <string>

namespace millrace {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& detail);

}  // namespace millrace

#define MILLRACE_CHECK(cond, ...)                                                      \
  do {                                                                                 \
    if (!(cond)) [[unlikely]]                                                          \
      ::millrace::check_failed(__FILE__, __LINE__, #cond, ::fmt::format(__VA_ARGS__)); \
  } while (0)
