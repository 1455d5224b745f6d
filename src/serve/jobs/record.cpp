#include "serve/jobs/record.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/json_text.h"
#include "serve/json_body.h"
#include "serve/responses.h"

namespace millrace::serve {
namespace {

// Null where it is no object.
Json object_of(const std::string& text) {
  Json out = Json::parse(text, nullptr, false);
  return out.is_object() ? out : Json();
}

template <class T>
bool take(const Json& from, const char* name, T& to) {
  const auto it = from.find(name);
  if (it == from.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!it->is_string()) return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!it->is_boolean()) return false;
  } else if (std::is_integral_v<T> ? !it->is_number_integer() : !it->is_number()) {
    return false;
  }
  to = it->get<T>();
  return true;
}

Json json_of(const Sampling& s) {
  Json biases = Json::array();
  for (const TokenBias& bias : s.biases) biases.push_back(Json::array({bias.token, bias.value}));
  return {{"temperature", s.temperature},
          {"top_k", s.top_k},
          {"top_p", s.top_p},
          {"min_p", s.min_p},
          {"repeat_penalty", s.repeat_penalty},
          {"presence_penalty", s.presence_penalty},
          {"frequency_penalty", s.frequency_penalty},
          {"penalty_tokens", s.penalty_tokens},
          {"seed", s.seed},
          {"biases", std::move(biases)}};
}

bool read_sampling(const Json& json, Sampling& s) {
  if (!json.is_object()) return false;
  const bool all = take(json, "temperature", s.temperature) && take(json, "top_k", s.top_k) &&
                   take(json, "top_p", s.top_p) && take(json, "min_p", s.min_p) &&
                   take(json, "repeat_penalty", s.repeat_penalty) &&
                   take(json, "presence_penalty", s.presence_penalty) &&
                   take(json, "frequency_penalty", s.frequency_penalty) &&
                   take(json, "penalty_tokens", s.penalty_tokens) && take(json, "seed", s.seed);
  for (const Json& bias : json.value("biases", Json::array())) {
    if (!bias.is_array() || bias.size() != 2 || !bias[0].is_number_integer() ||
        !bias[1].is_number())
      return false;
    s.biases.push_back({bias[0].get<int32_t>(), bias[1].get<float>()});
  }
  return all;
}

std::string vocabulary_hash(const Tokenizer& tokenizer) {
  std::string all;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    all += tokenizer.piece(id);
    all += '\0';
  }
  return hash128(all);
}

}  // namespace

std::string text_of(const JobTerms& terms) {
  return json_text(Json{{"sampling", json_of(terms.how.sampling)},
                        {"max_tokens", terms.how.max_tokens},
                        {"stops", terms.how.stops},
                        {"ignore_end", terms.how.ignore_end},
                        {"in_reasoning", terms.in_reasoning},
                        {"dictated", terms.dictated},
                        {"model", terms.model}});
}

Result<JobTerms> read_terms(const std::string& text) {
  const Json json = object_of(text);
  JobTerms out;
  Generation& how = out.how;
  bool good = json.is_object() && json.contains("sampling") &&
              read_sampling(json["sampling"], how.sampling) &&
              take(json, "max_tokens", how.max_tokens) &&
              take(json, "ignore_end", how.ignore_end) &&
              take(json, "in_reasoning", out.in_reasoning) && take(json, "model", out.model);
  if (good)
    for (const Json& stop : json.value("stops", Json::array())) {
      good &= stop.is_string();
      if (stop.is_string()) how.stops.push_back(stop.get<std::string>());
    }
  if (good)
    for (const Json& id : json.value("dictated", Json::array())) {
      good &= id.is_number_integer();
      if (id.is_number_integer()) out.dictated.push_back(id.get<int32_t>());
    }
  if (!good) return error(Code::corrupt, "the record of how its tokens are drawn is damaged");
  return out;
}

std::string root_text(const LanguageModel& model, const std::string& name, int64_t n_ctx) {
  const Engine& engine = model.engine();
  return json_text(Json{{"model", name},
                        {"model_hash", engine.network().model_hash()},
                        {"numerics", engine.fingerprint()},
                        {"kv_root", engine.root()},
                        {"vocabulary", vocabulary_hash(model.tokenizer())},
                        {"context", n_ctx}});
}

std::vector<std::string> differences(const std::string& was_text, const std::string& now_text) {
  const Json was = object_of(was_text), now = object_of(now_text);
  std::vector<std::string> out;
  const auto text = [](const Json& json, const char* name) {
    std::string value;
    if (json.is_object()) take(json, name, value);
    return value;
  };
  const auto compare = [&](const char* name, const char* what) {
    if (text(was, name) != text(now, name))
      out.push_back(fmt::format("{}: it ran with {}, this server has {}", what, text(was, name),
                                text(now, name)));
  };
  if (text(was, "model_hash") != text(now, "model_hash"))
    out.push_back(fmt::format("model: it ran with {} ({}), this server has {} ({})",
                              text(was, "model"), text(was, "model_hash"), text(now, "model"),
                              text(now, "model_hash")));
  compare("numerics", "numerics");
  if (out.empty()) compare("kv_root", "KV type or page size");
  int64_t n_was = 0, n_now = 0;
  if (was.is_object()) take(was, "context", n_was);
  if (now.is_object()) take(now, "context", n_now);
  if (n_now < n_was)
    out.push_back(fmt::format("context: it was given {} tokens, this server has {}", n_was, n_now));
  return out;
}

bool same_vocabulary(const std::string& was, const std::string& now) {
  const Json a = object_of(was), b = object_of(now);
  return a.is_object() && b.is_object() && a.contains("vocabulary") &&
         a["vocabulary"] == b.value("vocabulary", Json());
}

std::string fingerprint_of(const std::string& root) {
  std::string out;
  const Json json = object_of(root);
  if (json.is_object()) take(json, "numerics", out);
  return out;
}

std::string text_of(const JobEnd& end) {
  Json out = {{"finish", static_cast<int>(end.finish)},
              {"stop_string", end.stop_string},
              {"prompt_s", end.prompt_s},
              {"tokens_s", end.tokens_s}};
  if (!end.error.ok())
    out["error"] = {{"kind", static_cast<int>(end.error.kind)}, {"message", end.error.message}};
  return json_text(out);
}

JobEnd read_end(const std::string& text) {
  JobEnd out{.finish = Finish::cancelled};
  const Json json = object_of(text);
  if (!json.is_object()) return out;
  int finish = 0, kind = 0;
  if (take(json, "finish", finish) && finish >= 0 && finish <= static_cast<int>(Finish::failed))
    out.finish = static_cast<Finish>(finish);
  take(json, "stop_string", out.stop_string);
  take(json, "prompt_s", out.prompt_s);
  take(json, "tokens_s", out.tokens_s);
  if (const auto it = json.find("error"); it != json.end() && it->is_object()) {
    take(*it, "message", out.error.message);
    const bool known =
        take(*it, "kind", kind) && kind > 0 && kind <= static_cast<int>(ApiError::Kind::overloaded);
    out.error.kind = known ? static_cast<ApiError::Kind>(kind) : ApiError::Kind::internal;
  }
  return out;
}

const Dialect* job_dialect(std::string_view api) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kApis = {{
      {"chat_completions", "/v1/chat/completions"},
      {"responses", "/v1/responses"},
      {"messages", "/v1/messages"},
  }};
  for (const auto& [name, path] : kApis) {
    if (name != api) continue;
    for (const Dialect& dialect : dialects())
      if (dialect.path == path) return &dialect;
  }
  return nullptr;
}

ApiResult<ApiRequest> request_of(const JobRow& row) {
  const Dialect* dialect = job_dialect(row.api);
  const auto damaged = [](const char* what) {
    return ApiError{.kind = ApiError::Kind::internal,
                    .message = fmt::format("the job's record is damaged: {}", what)};
  };
  if (dialect == nullptr) return damaged("it names an API that is not known");
  auto body = parse_body(row.body);
  if (std::holds_alternative<ApiError>(body)) return damaged("its request is no JSON");
  const Json headers = object_of(row.headers);
  const auto header = [&](std::string_view name) -> std::string_view {
    const auto it = headers.find(std::string(name));
    if (it == headers.end() || !it->is_string()) return {};
    return it->get_ref<const std::string&>();
  };
  auto out = dialect->parse(std::get<Json>(body), header);
  if (auto* request = std::get_if<ApiRequest>(&out); request != nullptr && row.api == "responses")
    responses::mark_stored(*request);
  return out;
}

}  // namespace millrace::serve
