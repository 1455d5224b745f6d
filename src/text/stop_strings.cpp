#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace millrace {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

size_t StopStrings::possible_beginning() const {
  size_t longest = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n)
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n))
        longest = n;
  return longest;
}

std::string StopStrings::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_)
    if (const size_t at = held_.find(stop); at < first) {
      first = at;
      which_ = stop;
    }
  found_ = first != std::string::npos;
  const size_t n = found_ ? first : held_.size() - possible_beginning();
  std::string out = held_.substr(0, n);
  held_.erase(0, n);
  return out;
}

std::string StopStrings::flush() {
  return found_ ? std::string() : std::exchange(held_, {});
}

}  // namespace millrace
