// Status and Result<T>: how expected failures (a bad file, a bad request, no memory, a lost device)
// travel. Both are values that ride queues and threads; neither throws. A bug is not a Status: it
// is a MILLRACE_CHECK (base/check.h).
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace millrace {

enum class Code {
  ok,
  invalid_argument,  // the caller asked for something that cannot be
  not_found,
  unavailable,  // the thing exists, but not here or not now
  unsupported,  // well formed, and not something this build does
  out_of_memory,
  io_error,
  corrupt,  // bytes that are not what they claim to be
  cancelled,
  device_lost,
  wrong_result,  // a kernel's output failed its verification
};

std::string_view name_of(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::ok; }
  // What was wrong, where, and what to do; empty when ok.
  std::string_view message() const { return rep_ ? std::string_view(rep_->message) : ""; }

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;  // null is ok, so the happy path costs one pointer
};

template <class... A>
Status error(Code code, fmt::format_string<A...> format, A&&... args) {
  return Status(code, fmt::format(format, std::forward<A>(args)...));
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Status status) : held_(std::move(status)) {
    MILLRACE_CHECK(!std::get<Status>(held_).ok(), "a Result was built from an ok Status");
  }

  bool ok() const { return std::holds_alternative<T>(held_); }
  Status status() const { return ok() ? Status() : std::get<Status>(held_); }
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  T& operator*() & { return checked(); }
  T&& operator*() && { return std::move(checked()); }

 private:
  T& checked() {
    MILLRACE_CHECK(ok(), "value() of a failed Result: {}", std::get<Status>(held_).message());
    return std::get<T>(held_);
  }
  std::variant<Status, T> held_;
};

// Returns from the enclosing function with the Status of `expr` unless it is ok.
#define MILLRACE_TRY(expr)                                                    \
  do {                                                                        \
    if (::millrace::Status millrace_status_ = (expr); !millrace_status_.ok()) \
      return millrace_status_;                                                \
  } while (0)

// Declares `decl` from a Result's value, or returns its Status.
#define MILLRACE_JOIN_(a, b) a##b
#define MILLRACE_JOIN(a, b) MILLRACE_JOIN_(a, b)
#define MILLRACE_ASSIGN_(name, decl, expr) \
  auto name = (expr);                      \
  if (!name.ok()) return name.status();    \
  decl = std::move(name).value()
#define MILLRACE_ASSIGN(decl, expr) \
  MILLRACE_ASSIGN_(MILLRACE_JOIN(millrace_result_, __LINE__), decl, expr)

}  // namespace millrace
