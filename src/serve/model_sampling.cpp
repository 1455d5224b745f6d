#include "serve/model_sampling.h"

#include <fmt/format.h>

#include <cmath>

#include "files/gguf.h"
#include "files/json.h"
#include "files/safetensors.h"

namespace millrace::serve {
namespace {

// A recommendation that makes no sense is none.
void take(std::optional<float>& out, double value, double least, double most) {
  if (std::isfinite(value) && value >= least && value <= most) out = static_cast<float>(value);
}
void take(std::optional<int>& out, double value) {
  if (std::isfinite(value) && value >= 0 && value <= 1e6) out = static_cast<int>(value);
}

template <class ValueOf>
AskedSampling read(const ValueOf& value_of, const char* temperature, const char* repeat_penalty) {
  AskedSampling out;
  take(out.temperature, value_of(temperature), 0, 100);
  take(out.top_p, value_of("top_p"), 1e-6, 1);
  take(out.min_p, value_of("min_p"), 0, 1);
  take(out.top_k, value_of("top_k"));
  take(out.repeat_penalty, value_of(repeat_penalty), 1e-3, 100);
  return out;
}

AskedSampling from_gguf(const Gguf& gguf) {
  return read(
      [&](const char* name) {
        return gguf.real_or(fmt::format("general.sampling.{}", name), NAN).ok()
                   ? gguf.real_or(fmt::format("general.sampling.{}", name), NAN).value()
                   : NAN;
      },
      "temp", "penalty_repeat");
}

// A model that asks for no sampling is to be asked for the most likely token.
AskedSampling from_directory(const SafetensorsDir& directory) {
  constexpr char kFile[] = "generation_config.json";
  const auto text =
      directory.has(kFile) ? directory.text(kFile) : Result<std::string>(std::string());
  if (!text.ok() || text.value().empty()) return {};
  const auto json = parse_json(text.value(), kFile);
  if (!json.ok()) return {};
  const JsonFields fields(json.value(), kFile);
  AskedSampling out = read(
      [&](const char* name) {
        const auto value = fields.real_or(name, NAN);
        return value.ok() ? value.value() : NAN;
      },
      "temperature", "repetition_penalty");
  if (const auto* sample = fields.find("do_sample"); sample != nullptr && *sample == false)
    out.temperature = 0;
  return out;
}

}  // namespace

AskedSampling sampling_of(const ModelFile& file) {
  if (file.gguf() != nullptr) return from_gguf(*file.gguf());
  return file.safetensors() != nullptr ? from_directory(*file.safetensors()) : AskedSampling();
}

std::string text_of(const AskedSampling& s) {
  std::string out;
  const auto add = [&](const char* name, const auto& value) {
    if (value) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, *value);
  };
  add("temperature", s.temperature);
  add("top-k", s.top_k);
  add("top-p", s.top_p);
  add("min-p", s.min_p);
  add("repeat penalty", s.repeat_penalty);
  return out;
}

}  // namespace millrace::serve
