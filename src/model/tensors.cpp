#include "model/tensors.h"

#include <fmt/format.h>

#include <set>

#include "base/utf8.h"
#include "model/architecture.h"
#include "model/weights.h"

namespace millrace {
namespace {

constexpr size_t kNamed = 4;

// Whole families by a part of their name: none takes part in the logits of text.
constexpr std::string_view kIgnoredBegins[] = {"v.",
                                               "mm.",
                                               "a.",
                                               "vision_tower.",
                                               "model.vision_tower.",
                                               "visual.",
                                               "model.visual.",
                                               "multi_modal_projector.",
                                               "model.multi_modal_projector.",
                                               "mtp.",
                                               "model.mtp."};
constexpr std::string_view kIgnoredEnds[] = {
    ".rotary_emb.inv_freq",          ".nextn.eh_proj.weight", ".nextn.embed_tokens.weight",
    ".nextn.enorm.weight",           ".nextn.hnorm.weight",   ".nextn.shared_head_head.weight",
    ".nextn.shared_head_norm.weight"};

bool is_ignored(std::string_view name) {
  for (const std::string_view begin : kIgnoredBegins)
    if (name.starts_with(begin)) return true;
  for (const std::string_view end : kIgnoredEnds)
    if (name.ends_with(end)) return true;
  return false;
}

// Experts go by one name in the step and by one each in a directory.
std::string without_expert(std::string_view name) {
  const size_t at = name.find("_exps.");
  if (at == name.npos) return std::string(name);
  return std::string(name.substr(0, at)) + "_exps.weight";
}

}  // namespace

UnusedTensors unused_tensors(const ModelFile& file, const StepSpec& spec) {
  std::set<std::string, std::less<>> used;
  for (const WeightRef& ref : spec.weights) used.insert(ref.name);
  UnusedTensors out;
  for (const TensorView& tensor : file.tensors()) {
    if (used.contains(tensor.name)) continue;
    if (used.contains(without_expert(tensor.name)) &&
        file.find(without_expert(tensor.name)) == nullptr)
      continue;
    (is_ignored(tensor.name) ? out.ignored : out.unknown).emplace_back(tensor.name);
  }
  return out;
}

Status check_tensors(const ModelFile& file, const StepSpec& spec) {
  MILLRACE_TRY(weight_types(spec, file, DeviceKind::cpu).status());
  const UnusedTensors unused = unused_tensors(file, spec);
  if (unused.unknown.empty()) return {};
  std::string names;
  for (size_t i = 0; i < std::min(unused.unknown.size(), kNamed); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", printable(unused.unknown[i], 100));
  if (unused.unknown.size() > kNamed)
    names += fmt::format(" and {} more", unused.unknown.size() - kNamed);
  return error(Code::unsupported,
               "{}: this architecture does not use {} of the file's tensors, and ignoring them "
               "could change the answers: {}",
               printable(file.path()), unused.unknown.size(), names);
}

Result<CheckedModel> check_model(const ModelFile& file) {
  MILLRACE_ASSIGN(const Config config, read_config(file));
  CheckedModel out{config, build_step(config, file)};
  MILLRACE_TRY(check_tensors(file, out.spec));
  return out;
}

}  // namespace millrace
