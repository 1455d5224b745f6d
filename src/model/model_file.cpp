#include "model/model_file.h"

#include <filesystem>

#include "model/config_gguf.h"
#include "model/gguf.h"
#include "model/safetensors.h"

namespace millrace {

ModelFile::ModelFile() = default;
ModelFile::~ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;

Result<ModelFile> ModelFile::open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return error(Code::unsupported, "{}: a directory; a .gguf file can be read", path);
  ModelFile file;
  file.path_ = path;
  MILLRACE_ASSIGN(Gguf gguf, Gguf::open(path));
  file.gguf_ = std::make_unique<Gguf>(std::move(gguf));
  file.view_gguf();
  file.by_name_ = NameIndex<TensorView, &TensorView::name>(file.tensors_);
  return file;
}

void ModelFile::view_gguf() {
  for (const GgufTensor& t : gguf_->tensors())
    if (const auto type = dtype_of_gguf(t.type_id))
      tensors_.push_back({t.name, *type, t.shape, t.data, t.bytes});
}

size_t ModelFile::file_bytes() const {
  return gguf_->file_bytes();
}

Result<Config> ModelFile::config() const {
  return read_config(*gguf_);
}

const TensorView* ModelFile::find(std::string_view name) const {
  return by_name_.find(tensors_, name);
}

void ModelFile::drop(const TensorView& tensor) const {
  if (const GgufTensor* t = gguf_->find_tensor(tensor.name)) gguf_->drop(*t);
}

std::string ModelFile::chat_template() const {
  const auto text = gguf_->string("tokenizer.chat_template");
  return text.ok() ? std::string(text.value()) : std::string();
}

}  // namespace millrace
