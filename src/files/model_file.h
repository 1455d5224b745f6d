// A model on disk, whatever its format: GGUF (one file or split) or a Hugging Face directory of
// safetensors. Weights stay mapped; tensors go by GGUF's names (blk.0.attn_q.weight), into which a
// directory's are translated. Opening reads and checks the headers alone.
//
// Experts: GGUF stacks a layer's experts in one tensor, blk.0.ffn_gate_exps.weight of
// {n_experts, n_ff, n_embd}; a directory has each for itself, here blk.0.ffn_gate_exps.7.weight of
// {n_ff, n_embd} for expert 7. So for gate, up and down.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "files/hf_names.h"
#include "files/name_index.h"
#include "files/tensor_view.h"

namespace millrace {

class Gguf;
class SafetensorsDir;

class ModelFile {
 public:
  // `path` is a .gguf file (the first of a split model: the rest are found beside it) or a
  // directory with config.json and *.safetensors. An architecture this house does not run still
  // opens: read_config (model/) says why not.
  // names_of: how architectures name tensors in a directory; open_model_file (model/) knows.
  static Result<ModelFile> open(const std::string& path, HfNamesOf names_of = nullptr);
  ~ModelFile();
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;

  const std::string& path() const { return path_; }
  size_t file_bytes() const;

  // Tensors of a type that no DType covers are left out here; gguf() knows them, and
  // read_config (model/) says that the model cannot run.
  std::span<const TensorView> tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;
  // Gives back the mapped memory of a tensor, or of a piece of one, once it was repacked elsewhere.
  void drop(std::span<const std::byte> bytes) const;
  // Whether bytes of it could not be read: those of tensors are zeros then. To be asked after they
  // were used; is_damaged() takes nanoseconds, check() says which file it is.
  bool is_damaged() const;
  Status check() const;

  // Jinja source; empty when the model brings none.
  std::string chat_template() const;

  // What it was opened from, exactly one of them: for the tokenizer and for `inspect`.
  const Gguf* gguf() const { return gguf_.get(); }
  const SafetensorsDir* safetensors() const { return safetensors_.get(); }

 private:
  ModelFile();
  Status open_gguf();
  Status open_safetensors(HfNamesOf names_of);

  std::string path_;
  std::unique_ptr<Gguf> gguf_;
  std::unique_ptr<SafetensorsDir> safetensors_;
  std::vector<TensorView> tensors_;
  NameIndex<TensorView, &TensorView::name> by_name_;
};

}  // namespace millrace
