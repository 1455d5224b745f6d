// The memory of K and V. Layers of one kind (those that see everything, those with a window) form a
// group; a page holds page_tokens tokens of all layers of its group in one contiguous record, so a
// page can be copied, moved and written as a whole. Pages are counted references: several sequences
// may read one that is sealed (full, and never written again). How many pages there are is a budget
// in bytes, apart from the longest context and the number of sequences.
//
// Latent attention (one vector a token instead of K and V) will be a group whose page is that
// vector's; recurrent state a group of one page a sequence, copied where a prefix is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "exec/device.h"
#include "model/config.h"
#include "tensor/dtype.h"

namespace millrace {

inline constexpr int64_t kPageTokens = 64;

struct KvGroup {
  int64_t window = 0;           // 0: its layers see everything
  std::vector<int64_t> layers;  // ascending
};

// The first page that the row after n tokens sees.
inline int64_t first_seen_page(int64_t n, int64_t window) {
  return window == 0 || n < window ? 0 : (n - window + 1) / kPageTokens;
}

// Of this model, the layers that see everything first.
std::vector<KvGroup> kv_groups(const Config& config);

// K and V of one token over all layers of the group, and of one page.
int64_t kv_bytes_per_token(const Config& config, const KvGroup& group, DType type);
int64_t kv_bytes_per_token(const Config& config, DType type);  // over all groups

// K and V of a context of n tokens: a layer with a window keeps no more than it sees.
int64_t kv_bytes_of_context(const Config& config, int64_t n, DType type);
// The longest context, at most the model's own, whose K and V are within `bytes`.
int64_t context_within(const Config& config, size_t bytes, DType type);

class KvPages {
 public:
  static Result<KvPages> make(const Config& config, const KvGroup& group, DType type,
                              int64_t n_pages, Device& device);

  const KvGroup& group() const { return group_; }
  int64_t n_pages() const { return static_cast<int64_t>(references_.size()); }
  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }
  size_t page_bytes() const { return page_bytes_; }
  std::byte* page(int32_t id) const {
    return memory_.data() + static_cast<size_t>(id) * page_bytes_;
  }

  // A page for one owner; unavailable when all are in use.
  Result<int32_t> take();
  void retain(int32_t id);
  void release(int32_t id);
  int references(int32_t id) const { return references_[static_cast<size_t>(id)]; }
  void seal(int32_t id) { sealed_[static_cast<size_t>(id)] = true; }
  // For its only owner, who forgets some of its tokens.
  void unseal(int32_t id) { sealed_[static_cast<size_t>(id)] = false; }
  bool is_sealed(int32_t id) const { return sealed_[static_cast<size_t>(id)]; }

  // The first n tokens of a page as a record of its own, without what may lie behind them; of a
  // whole page its bytes as they are.
  size_t packed_bytes(int64_t n) const;
  void pack(const std::byte* page, int64_t n, std::byte* out) const;
  void unpack(const std::byte* packed, int64_t n, std::byte* page) const;  // and zeros behind them

  // Where layer `i` of the group lies, without slots and tables.
  BoundKv layer(int64_t i) const;

 private:
  KvGroup group_;
  DType type_ = DType::f16;
  int64_t n_kv_heads_ = 0, head_dim_ = 0;
  int64_t block_elems_ = 0;  // K of one layer of one page
  size_t page_bytes_ = 0;
  DeviceMemory memory_;
  std::vector<int32_t> free_;  // taken from the back
  std::vector<int> references_;
  std::vector<bool> sealed_;
};

}  // namespace millrace
