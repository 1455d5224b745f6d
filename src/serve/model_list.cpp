#include "serve/model_list.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace millrace::serve {
namespace {

std::string rfc3339(int64_t unix_s) {
  const std::time_t seconds = unix_s;
  std::tm utc{};
  if (gmtime_r(&seconds, &utc) == nullptr) return "1970-01-01T00:00:00Z";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

Json anthropic_model(const ModelShown& model) {
  return {{"type", "model"},
          {"id", model.id},
          {"display_name", model.id},
          {"created_at", rfc3339(model.created_s)},
          {"lifecycle", "active"},
          {"max_input_tokens", model.max_context},
          {"max_tokens", model.max_context}};
}

Json openai_model(const ModelShown& model) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created_s},
          {"owned_by", "millrace"},
          {"max_model_len", model.max_context},
          {"meta",
           {{"n_ctx_train", model.trained_context},
            {"n_vocab", model.n_vocab},
            {"n_params", model.n_params},
            {"size", model.file_bytes}}}};
}

}  // namespace

Json model_body(const ModelShown& model, ListShape shape) {
  return shape == ListShape::openai ? openai_model(model) : anthropic_model(model);
}

Json model_list(std::span<const ModelShown> models, ListShape shape) {
  Json data = Json::array();
  for (const ModelShown& model : models) data.push_back(model_body(model, shape));
  if (shape == ListShape::openai) return {{"object", "list"}, {"data", std::move(data)}};
  Json out = {{"data", std::move(data)}, {"has_more", false}};
  out["first_id"] = models.empty() ? Json() : Json(models.front().id);
  out["last_id"] = models.empty() ? Json() : Json(models.back().id);
  return out;
}

}  // namespace millrace::serve
