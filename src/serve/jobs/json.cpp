#include "serve/jobs/json.h"

#include "serve/openai_shapes.h"
#include "serve/responses.h"

namespace millrace::serve {
namespace {

Json time_or_null(int64_t seconds) {
  return seconds == 0 ? Json() : Json(seconds);
}

}  // namespace

std::string job_name(const JobRow& row) {
  return "job_" + row.id;
}

Json job_json(const Jobs& jobs, const JobRow& row) {
  const JobProgress& now = row.progress;
  const bool is_over = has_ended(now.state);
  const JobEnd end = read_end(now.end);
  const auto read = read_terms(row.how);
  const JobTerms terms = read.ok() ? read.value() : JobTerms();
  Json out = {{"id", job_name(row)},
              {"object", "job"},
              {"api", row.api},
              {"status", jobs.status_of(row)},
              {"model", terms.model},
              {"created_at", row.created_s},
              {"started_at", time_or_null(now.started_s)},
              {"ended_at", time_or_null(now.ended_s)},
              {"expires_at", is_over ? Json(now.ended_s + jobs.keep_s()) : Json()},
              {"seed", terms.how.sampling.seed},
              {"max_tokens", terms.how.max_tokens},
              {"prompt_tokens", row.n_prompt},
              {"tokens", now.n_tokens},
              {"runs", now.n_runs},
              {"system_fingerprint", fingerprint_of(row.root)},
              {"stale_because", jobs.why_stale(row)}};
  out["finish_reason"] = is_over ? Json(name_of(end.finish)) : Json();
  out["error"] = end.error.ok() ? Json() : openai_error(end.error)["error"];
  out["idempotency_key"] = row.key.empty() ? Json() : Json(row.key);
  return out;
}

ApiResult<Json> job_answer(const Jobs& jobs, const JobRow& row) {
  if (!has_ended(row.progress.state) || row.progress.state == JobState::failed) return Json();
  auto told = jobs.told(row);
  if (auto* failed = std::get_if<ApiError>(&told)) return std::move(*failed);
  const auto& [replay, answer] = std::get<Jobs::Told>(told);
  return replay->dialect().whole(replay->request(), replay->head(), answer);
}

ApiResult<Json> response_json(const Jobs& jobs, const JobRow& row) {
  auto told = jobs.told(row);
  if (auto* failed = std::get_if<ApiError>(&told)) return std::move(*failed);
  const auto& [replay, answer] = std::get<Jobs::Told>(told);
  const ApiRequest& request = replay->request();
  if (row.progress.state == JobState::failed)
    return responses::failed(request, replay->head(), answer.error);
  if (has_ended(row.progress.state)) return responses::whole(request, replay->head(), answer);
  const bool has_begun = row.progress.n_runs > 0;
  return responses::unfinished(request, replay->head(), has_begun ? "in_progress" : "queued");
}

}  // namespace millrace::serve
