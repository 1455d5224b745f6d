#include "files/model_file.h"

#include <filesystem>

#include "base/utf8.h"
#include "files/gguf.h"
#include "files/json.h"
#include "files/safetensors.h"

namespace millrace {
namespace {

// tokenizer_config.json has one template, or a list of them by name.
std::string template_of(const nlohmann::json& config) {
  const JsonFields fields(config, "tokenizer_config.json");
  const nlohmann::json* value = fields.find("chat_template");
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array()) return "";
  for (const nlohmann::json& entry : *value) {
    const JsonFields named(entry, "tokenizer_config.json");
    const auto name = named.string_or("name", ""), text = named.string_or("template", "");
    if (name.ok() && name.value() == "default" && text.ok()) return text.value();
  }
  return "";
}

std::string template_of(const SafetensorsDir& dir) {
  if (dir.has("chat_template.jinja")) {
    auto text = dir.text("chat_template.jinja");
    return text.ok() ? std::move(text).value() : "";
  }
  const auto text = dir.text("tokenizer_config.json");
  if (!text.ok()) return "";
  const auto json = parse_json(text.value(), "tokenizer_config.json");
  return json.ok() ? template_of(json.value()) : "";
}

}  // namespace

ModelFile::ModelFile() = default;
ModelFile::~ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;

Result<ModelFile> ModelFile::open(const std::string& path, HfNamesOf names_of) {
  ModelFile file;
  file.path_ = path;
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  MILLRACE_TRY(is_directory ? file.open_safetensors(names_of) : file.open_gguf());
  file.by_name_ = NameIndex<TensorView, &TensorView::name>(file.tensors_);
  if (const TensorView* twice = file.by_name_.duplicate(file.tensors_))
    return error(Code::corrupt, "{}: tensor '{}' is there twice", printable(path),
                 printable(twice->name, 200));
  return file;
}

Status ModelFile::open_gguf() {
  MILLRACE_ASSIGN(Gguf gguf, Gguf::open(path_));
  gguf_ = std::make_unique<Gguf>(std::move(gguf));
  for (const GgufTensor& t : gguf_->tensors())
    if (const auto type = dtype_of_gguf(t.type_id))
      tensors_.push_back({t.name, *type, t.shape, t.data, t.bytes});
  return {};
}

Status ModelFile::open_safetensors(HfNamesOf names_of) {
  MILLRACE_ASSIGN(SafetensorsDir dir, SafetensorsDir::open(path_, names_of));
  safetensors_ = std::make_unique<SafetensorsDir>(std::move(dir));
  // Some publishers store a tied output beside the embedding; it is the embedding that counts.
  const bool tied = ties_embeddings(*safetensors_).value_or(false);
  for (const TensorView& tensor : safetensors_->tensors())
    if (!tied || tensor.name != "output.weight") tensors_.push_back(tensor);
  return {};
}

size_t ModelFile::file_bytes() const {
  return gguf_ ? gguf_->file_bytes() : safetensors_->file_bytes();
}

const TensorView* ModelFile::find(std::string_view name) const {
  return by_name_.find(tensors_, name);
}

void ModelFile::drop(std::span<const std::byte> bytes) const {
  safetensors_ ? safetensors_->drop(bytes) : gguf_->drop(bytes);
}

bool ModelFile::is_damaged() const {
  return safetensors_ ? safetensors_->is_damaged() : gguf_->is_damaged();
}

Status ModelFile::check() const {
  return safetensors_ ? safetensors_->check() : gguf_->check();
}

std::string ModelFile::chat_template() const {
  if (safetensors_) return template_of(*safetensors_);
  const auto text = gguf_->string("tokenizer.chat_template");
  return text.ok() ? std::string(text.value()) : std::string();
}

}  // namespace millrace
