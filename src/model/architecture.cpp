#include "model/architecture.h"

namespace millrace {
namespace {

using Build = void (*)(StepBuilder&);

Build build_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::llama:
      return build_llama;
    case Architecture::qwen2:
      return build_qwen2;
    case Architecture::qwen3:
      return build_qwen3;
    case Architecture::qwen3_moe:
      return build_qwen3_moe;
  }
  return nullptr;
}

}  // namespace

StepSpec build_step(const Config& config, const HasTensor& has) {
  StepBuilder builder(config, has);
  build_of(config.architecture)(builder);
  return builder.take();
}

StepSpec build_step(const Config& config, const ModelFile& file) {
  return build_step(config, [&](const std::string& name) { return file.find(name) != nullptr; });
}

}  // namespace millrace
