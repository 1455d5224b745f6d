// What one step of a model reads and writes besides its weights, at addresses that never change, so
// that a Program is bound to them once. The engine fills in the rows; the KV pages belong to it.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/host.h"
#include "model/config.h"
#include "tensor/dtype.h"

namespace millrace {

struct StepLimits {
  int64_t max_rows = 512;    // tokens of one step
  int64_t max_outputs = 16;  // of them, those whose logits are wanted
  int64_t max_seqs = 1;
  int64_t max_pages = 0;  // of one sequence
  int64_t n_pages = 0;    // of all
  int64_t page_tokens = 64;
  DType kv_type = DType::f16;
};

// Bytes of K and V of one token over all layers.
int64_t kv_bytes_per_token(const Config& config, DType kv_type);

class Step {
 public:
  static Result<Step> make(const Config& config, const StepLimits& limits);

  const StepLimits& limits() const { return limits_; }

  // Of row r: the token, its position in its sequence, which sequence (a row of `tables`), and
  // where its K and V go (page * page_tokens + place).
  int32_t* tokens() const { return ints_[0]; }
  int32_t* positions() const { return ints_[1]; }
  int32_t* sequences() const { return ints_[2]; }
  int32_t* slots() const { return ints_[3]; }
  int32_t* outputs() const { return ints_[4]; }  // the rows whose logits are wanted
  int32_t* tables() const { return ints_[5]; }   // [max_seqs][max_pages]: page ids
  int32_t* table(int64_t seq) const { return tables() + seq * limits_.max_pages; }
  float* logits() const { return logits_; }  // [max_outputs][n_vocab]

  void* k_pages(int64_t layer) const { return pages_.data() + 2 * layer * pool_bytes_; }
  void* v_pages(int64_t layer) const { return pages_.data() + (2 * layer + 1) * pool_bytes_; }

 private:
  StepLimits limits_;
  HostBuffer rows_, pages_;
  std::vector<int32_t*> ints_;
  float* logits_ = nullptr;
  int64_t pool_bytes_ = 0;  // of one layer's K
};

}  // namespace millrace
