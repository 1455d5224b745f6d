// What a model file holds, gathered for people and programs to read: format, architecture, sizes by
// type, whether it runs here and why not, and how much context fits beside its weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "files/gguf.h"
#include "files/model_file.h"

namespace millrace {

struct TypeShare {
  std::string type;
  int64_t n_tensors = 0;
  size_t bytes = 0;
};

struct ContextFit {
  size_t available_bytes = 0;     // of the machine's memory
  size_t kv_bytes_per_token = 0;  // K and V in f16
  int64_t made_for = 0;           // tokens, by the model
  int64_t fits = 0;               // tokens, beside the weights; at most made_for
};

struct Inspection {
  std::string format;        // "GGUF 3, 2 files", "safetensors, 1 file"
  std::string architecture;  // as the file says it
  std::string name;
  size_t file_bytes = 0;
  size_t tensor_bytes = 0;
  int64_t n_parameters = 0;
  bool runs = false;
  std::string why_not;           // empty when it runs
  std::vector<TypeShare> types;  // the largest first
  ContextFit context;            // zeros when it does not run
};

Inspection inspect(const ModelFile& file, size_t available_bytes);

// A metadata value for people: long arrays and texts abbreviated, nothing a terminal trips over.
std::string value_text(const GgufValue& value);
// The same for programs: a scalar as it is, an array as its elements' type, its count and the first
// few elements.
nlohmann::ordered_json value_json(const GgufValue& value);

}  // namespace millrace
