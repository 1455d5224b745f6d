// A model as Hugging Face lays it out: a directory with config.json and its weights in
// model.safetensors or in the shards that model.safetensors.index.json lists, mapped. Links, as in
// Hugging Face's cache, are followed; a shard's name must not leave the directory. Tensors are
// offered by GGUF's names (model/hf_names.h); one that has no such name keeps its own. What
// config.json means is for model/config_hf.h.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "files/hf_names.h"
#include "files/safetensors_parse.h"
#include "files/tensor_view.h"
#include "memory/mapped_file.h"

namespace millrace {

class SafetensorsDir {
 public:
  // names_of: may be null.
  static Result<SafetensorsDir> open(const std::string& directory, HfNamesOf names_of = nullptr);

  const std::string& directory() const { return directory_; }  // where tokenizer.json lies
  size_t file_bytes() const;                                   // of the weights
  size_t n_files() const { return files_.size(); }

  // Those whose type is a DType. A tensor of all experts is offered as one view per expert.
  std::span<const TensorView> tensors() const { return tensors_; }
  // "NAME is TYPE" of a tensor whose type is none; empty when there is none.
  const std::string& strange_tensor() const { return strange_tensor_; }
  // Gives back the memory of the whole pages in a tensor's bytes, or in some of them; they are read
  // again when touched.
  void drop(std::span<const std::byte> bytes) const;
  // Whether a file was cut short or could not be read since; check() says which.
  bool is_damaged() const;
  Status check() const;

  // A small text file of the directory: config.json, tokenizer_config.json.
  Result<std::string> text(std::string_view name) const;
  bool has(std::string_view name) const;

 private:
  SafetensorsDir() = default;
  Status open_files();
  Status open_sharded();
  Result<std::vector<SafetensorsEntry>> open_file(const std::string& name);
  Status add(const SafetensorsEntry& entry, const std::byte* data);
  Status add_experts(const SafetensorsEntry& entry, const std::byte* data);
  void add_view(std::string name, const SafetensorsEntry& entry, std::vector<int64_t> shape,
                const std::byte* data);
  std::string path_of(std::string_view name) const;

  std::string directory_;
  std::span<const HfName> own_names_;
  std::vector<MappedFile> files_;
  std::deque<std::string> names_;  // what the views' names point into
  std::vector<TensorView> tensors_;
  std::string strange_tensor_;
};

// Whether config.json says that the output shares the embedding's weights; it may say nothing.
std::optional<bool> ties_embeddings(const SafetensorsDir& dir);

}  // namespace millrace
