// Progress of a long run, on stderr: on a terminal one line that is rewritten, elsewhere a line
// every few seconds. It estimates the time left from the share that is done.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // share: of the whole work, 0 to 1; what: what is being done now.
  void at(double share, std::string_view what);
  // Clears the line, so that ordinary output can follow.
  void clear();

 private:
  const std::string title_;
  const int64_t start_ns_;
  const bool on_terminal_;
  int64_t shown_ns_;
  size_t shown_width_ = 0;
};

// "45 s", "3 min 20 s", "1 h 5 min".
std::string duration_text(double seconds);

}  // namespace millrace
