// A model's tensors as a GGUF file lays them out. Those of a GGUF file are that already; of a
// directory of safetensors, a layer's experts are stacked in one tensor, the rows of llama's q and
// k lie so that the two that rotate together are neighbours, and Llama 3's rope factors are a
// tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "files/model_file.h"

namespace millrace {

// One tensor to write. Its rows are those of `parts`, one part after the other, or `values`.
struct LaidOut {
  std::string name{};
  DType type = DType::f32;       // of the parts; f32 of the values
  std::vector<int64_t> shape{};  // outermost first
  std::vector<const TensorView*> parts{};
  std::vector<float> values{};
  // Of heads whose first rot_dim rows go from halves to pairs; 0: rows stay where they are.
  int64_t head_dim = 0, rot_dim = 0;

  size_t bytes() const;
  // Where the data of row `r` lies; neighbours are not always neighbours there.
  const std::byte* row(int64_t r) const;
};

// `file` must outlive them. Of a directory whose model does not run here: why not.
Result<std::vector<LaidOut>> lay_out(const ModelFile& file);

}  // namespace millrace
