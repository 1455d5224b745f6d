// A model's weights as the kernels want them. Each is taken out of the file when an architecture
// first asks for it by name: checked against the shape it must have, repacked by the lanes of a
// team into the layout of the variant that will read it, and its mapped pages given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "files/model_file.h"
#include "kernels/pick.h"
#include "machine/team.h"
#include "memory/host.h"

namespace millrace {

// A matrix of n outputs and k inputs in some layout of kernels/matmul.
struct Linear {
  const void* data = nullptr;
  int64_t n = 0, k = 0;
  DType type = DType::f32;
  std::string_view layout;

  // What the product reads its rows as.
  DType input_type() const;
};

// Rows as in the file, to be gathered one by one.
struct Table {
  const void* data = nullptr;
  DType type = DType::f32;
};

// Told how many of the file's bytes are ready.
using LoadProgress = std::function<void(size_t done_bytes, size_t total_bytes)>;

class Weights {
 public:
  // All must outlive it.
  Weights(const ModelFile& file, Team& team, const PickFrom& from, LoadProgress progress);

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  Result<Linear> linear(const std::string& name, int64_t n, int64_t k);
  // The experts' matrices {n_experts, n, k} as one of n_experts * n outputs, from STEM.weight or
  // from the tensors STEM.0.weight, STEM.1.weight, ... that a directory has.
  Result<Linear> experts(const std::string& stem, int64_t n_experts, int64_t n, int64_t k);
  // f32 whatever the file has.
  Result<const float*> vector(const std::string& name, int64_t n);
  Result<Table> table(const std::string& name, int64_t n_rows, int64_t k) const;

  size_t packed_bytes() const { return packed_bytes_; }
  size_t expert_bytes() const { return expert_bytes_; }  // of those

 private:
  Result<const TensorView*> tensor(const std::string& name, std::vector<int64_t> shape) const;
  Result<Linear> pack(const std::string& key, const Linear& plain,
                      const std::vector<const TensorView*>& parts);
  Result<std::byte*> allocate(size_t bytes);
  void ready(size_t bytes);

  const ModelFile& file_;
  Team& team_;
  const PickFrom from_;
  const LoadProgress progress_;
  std::map<std::string, Linear> linears_;
  std::map<std::string, const float*> vectors_;
  std::vector<HostBuffer> arenas_;
  size_t arena_used_ = 0;
  size_t packed_bytes_ = 0, expert_bytes_ = 0;
  size_t done_bytes_ = 0;
};

}  // namespace millrace
