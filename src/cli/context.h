// How much context a model runs with where the command line does not say: all that it was trained
// for, or as much as memory holds of K and V beside the weights.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cli {

struct ContextMemory {
  size_t available_bytes = 0;
  size_t weight_bytes = 0;  // and what else does not grow with the context
  size_t kv_bytes_per_token = 0;
};

int64_t default_context(int64_t n_trained, const ContextMemory& memory);

}  // namespace millrace::cli
