// From a token's text to its id: an open-addressed table of views into memory that somebody else
// owns. Built once, then read by any number of threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

class TextIndex {
 public:
  TextIndex() : TextIndex(0) {}
  explicit TextIndex(size_t n_texts);

  // The first of two equal texts stays. False when the texts were made to collide.
  [[nodiscard]] bool insert(std::string_view text, int32_t id);
  int32_t find(std::string_view text) const;  // -1: not there

 private:
  struct Slot {
    std::string_view text;
    uint32_t hash = 0;  // compared first: most neighbours need not be looked at
    int32_t id = -1;
  };
  std::vector<Slot> slots_;
};

}  // namespace millrace
