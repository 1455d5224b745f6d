// Writes a model as GGUF with its weights in another type: decode, encode, slab by slab on several
// threads. A GGUF file's metadata is carried over; a directory of safetensors gets what its
// config.json, tokenizer.json and template say. From a type that is quantised already it works too,
// and loses what both lose; the report says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "files/model_file.h"
#include "files/quant_type.h"
#include "files/tensor_stream.h"

namespace millrace {

struct QuantizeReport {
  size_t bytes_in = 0, bytes_out = 0;  // of tensors
  std::map<DType, int64_t> n_tensors;  // written, by type
  int64_t n_fallbacks = 0;             // whose rows do not divide into the wanted blocks
  int64_t n_requantised = 0;           // that were quantised before, in another type
  bool has_tokenizer = false;
};

Result<QuantizeReport> quantize_model(const ModelFile& in, const std::string& out,
                                      const QuantType& type, const StreamOptions& options);

}  // namespace millrace
