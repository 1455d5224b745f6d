// Makes the data of a file's tensors in slabs of rows, on several threads, and writes it as it
// comes: the memory needed does not grow with the model.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string_view>

#include "base/status.h"
#include "files/gguf_write.h"

namespace millrace {

struct StreamOptions {
  int n_threads = 1;
  std::function<void(double share, std::string_view what)> progress;  // may be empty
  const std::atomic<bool>* stop = nullptr;                            // set: cancelled
};

// Rows [first, first + n) of a tensor, encoded.
struct RowRange {
  size_t tensor = 0;  // index among the writer's
  int64_t first = 0;
  int64_t n = 0;
};
// Fills `out` with the range's bytes; called from several threads, on ranges of a few thousand
// rows.
using FillRows = std::function<void(const RowRange& rows, std::byte* out)>;
// Called when a tensor's data was written.
using TensorDone = std::function<void(size_t tensor)>;

// After writer.begin(); leaves finish() to the caller.
Status stream_tensors(GgufWriter& writer, const FillRows& fill, const StreamOptions& options,
                      const TensorDone& done = {});

}  // namespace millrace
