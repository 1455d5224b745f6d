#include "files/model_file.h"
#include "files/safetensors.h"
#include "files/small_file.h"
#include "text/tokenizer/tokenizer.h"

namespace millrace {
namespace {

constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;
constexpr size_t kMaxConfigBytes = size_t{16} << 20;

// A file that need not be there.
Result<std::string> read_optional(const std::string& path) {
  auto text = read_small_file(path, kMaxConfigBytes);
  if (!text.ok() && text.status().code() == Code::not_found) return std::string();
  return text;
}

Status in_file(const std::string& path, const Status& status) {
  return Status(status.code(), fmt::format("{}: {}", path, status.message()));
}

Result<Vocab> vocab_from_directory(const std::string& directory) {
  HfFiles files;
  MILLRACE_ASSIGN(files.tokenizer,
                  read_small_file(directory + "/tokenizer.json", kMaxTokenizerBytes));
  MILLRACE_ASSIGN(files.tokenizer_config, read_optional(directory + "/tokenizer_config.json"));
  MILLRACE_ASSIGN(files.config, read_optional(directory + "/config.json"));
  MILLRACE_ASSIGN(files.generation, read_optional(directory + "/generation_config.json"));
  auto vocab = vocab_from_tokenizer_json(files);
  return vocab.ok() ? std::move(vocab) : in_file(directory, vocab.status());
}

}  // namespace

Result<Vocab> load_vocab(const ModelFile& file) {
  if (file.gguf() != nullptr) return vocab_from_gguf(*file.gguf());
  return vocab_from_directory(file.safetensors()->directory());
}

Result<Tokenizer> load_tokenizer(const ModelFile& file) {
  MILLRACE_ASSIGN(Vocab vocab, load_vocab(file));
  auto tokenizer = Tokenizer::make(std::move(vocab));
  return tokenizer.ok() ? std::move(tokenizer) : in_file(file.path(), tokenizer.status());
}

}  // namespace millrace
