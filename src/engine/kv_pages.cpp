#include "engine/kv_pages.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tensor/format.h"

namespace millrace {
namespace {

// A cache below this is not worth huge pages, of which every layer would touch its own at the first
// token.
constexpr size_t kStreamedBytes = size_t{128} << 20;

int64_t block_elems(const Config& config) {
  return config.n_kv_heads * config.head_dim * kPageTokens;
}

}  // namespace

std::vector<KvGroup> kv_groups(const Config& config) {
  std::vector<KvGroup> out;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const int64_t window = config.window_of(layer);
    auto group =
        std::find_if(out.begin(), out.end(), [&](const KvGroup& g) { return g.window == window; });
    if (group == out.end()) group = out.insert(window == 0 ? out.begin() : out.end(), {window, {}});
    group->layers.push_back(layer);
  }
  return out;
}

int64_t kv_bytes_per_token(const Config& config, const KvGroup& group, DType type) {
  const auto n_layers = static_cast<int64_t>(group.layers.size());
  return 2 * n_layers * static_cast<int64_t>(bytes_of(type, config.n_kv_heads * config.head_dim));
}

int64_t kv_bytes_per_token(const Config& config, DType type) {
  int64_t bytes = 0;
  for (const KvGroup& group : kv_groups(config)) bytes += kv_bytes_per_token(config, group, type);
  return bytes;
}

int64_t kv_bytes_of_context(const Config& config, int64_t n, DType type) {
  int64_t bytes = 0;
  for (const KvGroup& group : kv_groups(config))
    bytes += kv_bytes_per_token(config, group, type) *
             (group.window == 0 ? n : std::min(n, group.window));
  return bytes;
}

int64_t context_within(const Config& config, size_t bytes, DType type) {
  int64_t fits = 0, too_long = config.n_ctx + 1;
  while (too_long - fits > 1) {
    const int64_t n = fits + (too_long - fits) / 2;
    if (static_cast<size_t>(kv_bytes_of_context(config, n, type)) <= bytes)
      fits = n;
    else
      too_long = n;
  }
  return fits;
}

Result<KvPages> KvPages::make(const Config& config, const KvGroup& group, DType type,
                              int64_t n_pages, Device& device) {
  KvPages out;
  out.group_ = group;
  out.type_ = type;
  out.n_kv_heads_ = config.n_kv_heads;
  out.head_dim_ = config.head_dim;
  out.block_elems_ = block_elems(config);
  out.page_bytes_ = 2 * group.layers.size() * bytes_of(type, out.block_elems_);
  const size_t bytes = static_cast<size_t>(n_pages) * out.page_bytes_;
  MILLRACE_ASSIGN(out.memory_,
                  device.allocate(bytes, bytes < kStreamedBytes ? Pages::small : Pages::huge));
  out.free_.resize(static_cast<size_t>(n_pages));
  std::iota(out.free_.rbegin(), out.free_.rend(), 0);  // low pages first
  out.references_.assign(static_cast<size_t>(n_pages), 0);
  out.sealed_.assign(static_cast<size_t>(n_pages), false);
  return out;
}

Result<int32_t> KvPages::take() {
  if (free_.empty())
    return error(Code::unavailable, "all {} KV pages of {} tokens are in use", n_pages(),
                 kPageTokens);
  const int32_t id = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(id)] = 1;
  sealed_[static_cast<size_t>(id)] = false;
  return id;
}

void KvPages::retain(int32_t id) {
  MILLRACE_CHECK(references(id) > 0, "page {} belongs to nobody", id);
  ++references_[static_cast<size_t>(id)];
}

void KvPages::release(int32_t id) {
  MILLRACE_CHECK(references(id) > 0, "page {} belongs to nobody", id);
  if (--references_[static_cast<size_t>(id)] == 0) free_.push_back(id);
}

size_t KvPages::packed_bytes(int64_t n) const {
  return page_bytes_ / static_cast<size_t>(kPageTokens) * static_cast<size_t>(n);
}

namespace {

// `n_runs` runs of `from_bytes` each, of which the first bytes of `to_bytes` go to runs of that.
void copy_runs(const std::byte*& from, size_t from_bytes, std::byte*& to, size_t to_bytes,
               int64_t n_runs) {
  const size_t bytes = std::min(from_bytes, to_bytes);
  for (int64_t i = 0; i < n_runs; ++i, from += from_bytes, to += to_bytes) {
    std::memcpy(to, from, bytes);
    std::memset(to + bytes, 0, to_bytes - bytes);
  }
}

}  // namespace

// K is [head][dim][token], V is [head][token][dim].
void KvPages::pack(const std::byte* page, int64_t n, std::byte* out) const {
  if (n == kPageTokens) {
    std::memcpy(out, page, page_bytes_);
    return;
  }
  for (size_t layer = 0; layer < group_.layers.size(); ++layer) {
    copy_runs(page, bytes_of(type_, kPageTokens), out, bytes_of(type_, n), n_kv_heads_ * head_dim_);
    copy_runs(page, bytes_of(type_, kPageTokens * head_dim_), out, bytes_of(type_, n * head_dim_),
              n_kv_heads_);
  }
}

void KvPages::unpack(const std::byte* packed, int64_t n, std::byte* page) const {
  if (n == kPageTokens) {
    std::memcpy(page, packed, page_bytes_);
    return;
  }
  for (size_t layer = 0; layer < group_.layers.size(); ++layer) {
    copy_runs(packed, bytes_of(type_, n), page, bytes_of(type_, kPageTokens),
              n_kv_heads_ * head_dim_);
    copy_runs(packed, bytes_of(type_, n * head_dim_), page,
              bytes_of(type_, kPageTokens * head_dim_), n_kv_heads_);
  }
}

BoundKv KvPages::layer(int64_t i) const {
  const size_t block_bytes = bytes_of(type_, block_elems_);
  std::byte* base = memory_.data() + static_cast<size_t>(2 * i) * block_bytes;
  return {.k_pages = base,
          .v_pages = base + block_bytes,
          .n_pages = n_pages(),
          .page_tokens = kPageTokens,
          .page_stride = 2 * static_cast<int64_t>(group_.layers.size()) * block_elems_,
          .type = type_};
}

}  // namespace millrace
