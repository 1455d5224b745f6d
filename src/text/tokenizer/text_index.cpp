#include "text/tokenizer/text_index.h"

#include <bit>
#include <functional>

namespace millrace {
namespace {

// Half-full tables of honest texts probe a few dozen slots at the very worst.
constexpr size_t kMaxProbes = 4096;

uint32_t hash_of(std::string_view text) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(text));
}

}  // namespace

TextIndex::TextIndex(size_t n_texts) : slots_(std::bit_ceil(2 * n_texts + 2)) {}

bool TextIndex::insert(std::string_view text, int32_t id) {
  const uint32_t hash = hash_of(text);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (size_t i = 0; i < kMaxProbes; ++i, at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.id < 0) {
      slot = {text, hash, id};
      return true;
    }
    if (slot.hash == hash && slot.text == text) return true;
  }
  return false;
}

int32_t TextIndex::find(std::string_view text) const {
  const uint32_t hash = hash_of(text);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask)
    if (slots_[at].hash == hash && slots_[at].text == text) return slots_[at].id;
  return -1;
}

}  // namespace millrace
