#include "model/tokenizer/text_index.h"

#include <bit>
#include <functional>

namespace millrace {
namespace {

// Half-full tables of honest texts probe a few dozen slots at the very worst.
constexpr size_t kMaxProbes = 4096;

}  // namespace

TextIndex::TextIndex(size_t n_texts) : slots_(std::bit_ceil(2 * n_texts + 2)) {}

size_t TextIndex::slot_of(std::string_view text) const {
  return std::hash<std::string_view>()(text) & (slots_.size() - 1);
}

bool TextIndex::insert(std::string_view text, int32_t id) {
  size_t at = slot_of(text);
  for (size_t i = 0; i < kMaxProbes; ++i, at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].id < 0) {
      slots_[at] = {text, id};
      return true;
    }
    if (slots_[at].text == text) return true;
  }
  return false;
}

int32_t TextIndex::find(std::string_view text) const {
  for (size_t at = slot_of(text); slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].text == text) return slots_[at].id;
  return -1;
}

}  // namespace millrace
