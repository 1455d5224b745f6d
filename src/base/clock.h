// Two clocks: monotonic nanoseconds for measuring, UTC text for records.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

int64_t now_ns();       // monotonic
std::string utc_now();  // "2026-01-31T12:34:56Z"

}  // namespace millrace
