#include "model/tensors.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string>

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

// What the step names, with the number of experts of those that stack some.
using Used = std::map<std::string, int64_t, std::less<>>;

// Whether it is an expert's own tensor, as a directory has them: STEM_exps.7.weight, where the step
// names STEM_exps.weight and stacks more than seven.
bool is_expert(const ModelFile& file, const Used& used, std::string_view name) {
  constexpr std::string_view kStack = "_exps.", kWeight = ".weight";
  const size_t at = name.find(kStack);
  if (at == name.npos || !name.ends_with(kWeight)) return false;
  const size_t first = at + kStack.size();
  if (name.size() < first + kWeight.size()) return false;
  const std::string_view digits = name.substr(first, name.size() - kWeight.size() - first);
  int64_t expert = -1;
  std::from_chars(digits.data(), digits.data() + digits.size(), expert);
  if (digits.empty() || digits != std::to_string(expert)) return false;
  const auto stack = used.find(fmt::format("{}_exps.weight", name.substr(0, at)));
  return stack != used.end() && expert >= 0 && expert < stack->second &&
         file.find(stack->first) == nullptr;
}

}  // namespace

UnusedTensors unused_tensors(const ModelFile& file, const StepSpec& spec) {
  Used used;
  for (const WeightRef& ref : spec.weights)
    used.emplace(ref.name, ref.shape.size() == 3 ? ref.shape[0] : 0);
  UnusedTensors out;
  for (const TensorView& tensor : file.tensors()) {
    if (used.contains(tensor.name) || is_expert(file, used, tensor.name)) continue;
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
