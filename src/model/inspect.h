// What a model file holds, gathered for people and programs to read: format, architecture, sizes by
// type, whether it runs here and why not. How much context fits is the engine's to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "files/gguf.h"
#include "files/model_file.h"
#include "model/config.h"
#include "model/tensors.h"

namespace millrace {

struct TypeShare {
  std::string type;
  int64_t n_tensors = 0;
  size_t bytes = 0;
};

struct Inspection {
  std::string format;        // "GGUF 3, 2 files", "safetensors, 1 file"
  std::string architecture;  // as the file says it
  std::string name;
  size_t file_bytes = 0;
  size_t tensor_bytes = 0;
  int64_t n_parameters = 0;
  std::optional<Config> config;  // where it can be read
  bool runs = false;             // what loading it will say
  std::string why_not;           // empty when it runs
  UnusedTensors unused;  // where the config can be read: the unknown ones keep it from running
  std::vector<TypeShare> types;  // the largest first
};

Inspection inspect(const ModelFile& file);

// A metadata value for people: long arrays and texts abbreviated, nothing a terminal trips over.
std::string value_text(const GgufValue& value);
// The same for programs: a scalar as it is, an array as its elements' type, its count and the first
// few elements.
nlohmann::ordered_json value_json(const GgufValue& value);

}  // namespace millrace
