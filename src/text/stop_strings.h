// Text as it is generated, up to the first of some strings that end it. What could be the beginning
// of one is held back until it is known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class StopStrings {
 public:
  // Empty strings are left out.
  explicit StopStrings(std::vector<std::string> stops);

  // What of the text so far is now certain; nothing once a stop string was found.
  std::string push(std::string_view text);
  // The rest, where no stop string came.
  std::string flush();
  bool found() const { return found_; }
  const std::string& which() const { return which_; }  // the one that was found

 private:
  // How much of the end of held_ could begin a stop string.
  size_t possible_beginning() const;

  std::vector<std::string> stops_;
  std::string held_, which_;
  bool found_ = false;
};

}  // namespace millrace
