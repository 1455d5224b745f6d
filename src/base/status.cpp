#include "base/status.h"

namespace millrace {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid argument";
    case Code::not_found:
      return "not found";
    case Code::unavailable:
      return "unavailable";
    case Code::unsupported:
      return "unsupported";
    case Code::out_of_memory:
      return "out of memory";
    case Code::io_error:
      return "i/o error";
    case Code::corrupt:
      return "corrupt";
    case Code::cancelled:
      return "cancelled";
    case Code::device_lost:
      return "device lost";
    case Code::wrong_result:
      return "wrong result";
  }
  return "unknown";
}

Status::Status(Code code, std::string message) {
  MILLRACE_CHECK(code != Code::ok, "an error Status needs an error code: {}", message);
  rep_ = std::make_unique<Rep>(Rep{code, std::move(message)});
}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

}  // namespace millrace
