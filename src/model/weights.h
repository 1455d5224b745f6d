// A model's weights as the calls of a lowered step read them, in a device's memory: each checked
// against the shape it must have, repacked by the lanes of a team into the layout that was chosen
// for it, and its mapped pages given back. What is packed is hashed on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "exec/device.h"
#include "exec/lower.h"
#include "exec/step.h"
#include "files/model_file.h"
#include "machine/team.h"

namespace millrace {

// Told how many of the file's bytes are ready.
using LoadProgress = std::function<void(size_t done_bytes, size_t total_bytes)>;

// The type that each weight of the step will have on the device; an error names a tensor that the
// file lacks, or has in another shape.
Result<std::vector<DType>> weight_types(const StepSpec& spec, const ModelFile& file,
                                        DeviceKind device);

class Weights {
 public:
  // All must outlive it; the lanes of `team` pack.
  Weights(const ModelFile& file, Device& device, Team& team, LoadProgress progress);

  // All weights of the step; afterwards bound()[i] is where weight i lies.
  Status load(const StepSpec& spec, const Lowered& lowered, std::span<const DType> types);

  const std::vector<BoundWeight>& bound() const { return bound_; }
  size_t bytes() const { return bytes_; }
  size_t expert_bytes() const { return expert_bytes_; }  // of those
  size_t table_bytes() const { return table_bytes_; }    // of those, read row by row
  // Of every tensor's name, type, shape and bytes, as the file has them.
  std::string hash() const;

 private:
  struct Source;
  Result<BoundWeight> load_one(const WeightRef& ref, std::string_view layout, DType type);
  Result<BoundWeight> load_matrix(const WeightRef& ref, const Source& source,
                                  std::string_view layout, DType type);
  Result<BoundWeight> load_table(const WeightRef& ref, DType type);
  Result<BoundWeight> load_vector(const WeightRef& ref);
  Result<BoundWeight> load_turns(const WeightRef& ref);
  Result<BoundWeight> put(const void* bytes, size_t n, DType type);
  Result<std::byte*> allocate(size_t bytes);
  void ready(const TensorView& tensor, uint64_t hash);

  const ModelFile& file_;
  Device& device_;
  Team& team_;
  const LoadProgress progress_;
  std::vector<BoundWeight> bound_;
  std::vector<DeviceMemory> arenas_;
  size_t arena_used_ = 0;
  size_t bytes_ = 0, expert_bytes_ = 0, table_bytes_ = 0, done_bytes_ = 0;
  std::map<std::string, uint64_t> hashes_;  // by tensor
};

}  // namespace millrace
