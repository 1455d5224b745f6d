// Server-sent events out of bytes as they come. Comments and names of events are skipped; an event
// that is too long to be one is refused, since nobody knows who is at the other end.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::cli {

class SseReader {
 public:
  static constexpr size_t kMaxEventBytes = size_t{16} << 20;
  struct Event {
    int64_t id = -1;  // -1: it has none
    std::string data = {};
  };

  // False where an event is too long: nothing more is read then.
  bool take(std::string_view bytes, const std::function<void(const Event&)>& give) {
    size_t at = 0, from = in_.size();  // what was there before has no end of a line
    in_ += bytes;
    for (size_t end; (end = in_.find('\n', from)) != std::string::npos; at = from = end + 1)
      take_line(std::string_view(in_).substr(at, end - at), give);
    in_.erase(0, at);
    return in_.size() + event_.data.size() <= kMaxEventBytes;
  }

 private:
  void take_line(std::string_view line, const std::function<void(const Event&)>& give) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      if (has_data_) give(event_);
      event_ = {};
      has_data_ = false;
      return;
    }
    std::string_view value = line.substr(std::min(line.find(':'), line.size()));
    const std::string_view name = line.substr(0, line.size() - value.size());
    value.remove_prefix(std::min<size_t>(value.starts_with(": ") ? 2 : 1, value.size()));
    if (name == "data") {
      if (std::exchange(has_data_, true)) event_.data += '\n';
      event_.data += value;
    } else if (name == "id") {
      std::from_chars(value.data(), value.data() + value.size(), event_.id);
    }
  }

  std::string in_;
  Event event_;
  bool has_data_ = false;
};

}  // namespace millrace::cli
