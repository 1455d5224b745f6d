#include "serve/jobs/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_text.h"
#include "serve/jobs/json.h"
#include "serve/json_body.h"
#include "serve/send.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxBodyBytes = size_t{16} << 20, kMaxBodiesBytes = size_t{128} << 20;
constexpr size_t kMaxKeyBytes = 255;
constexpr std::string_view kJobs = "/v1/jobs/", kResponses = "/v1/responses/";
constexpr std::string_view kJobPrefix = "job_", kResponsePrefix = "resp_";
constexpr size_t kIdDigits = 32;
constexpr int64_t kMostListed = 100;

ApiError invalid(std::string message, std::string param) {
  return {.kind = ApiError::Kind::invalid_request,
          .message = std::move(message),
          .param = std::move(param)};
}

ApiError not_found(std::string_view what) {
  return {.kind = ApiError::Kind::not_found, .message = fmt::format("there is no such {}", what)};
}

// What a query says of this name; nothing where it is silent. Numbers and words need no decoding.
std::optional<std::string_view> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const size_t equals = std::min(part.find('='), part.size());
    if (part.substr(0, equals) == name) return part.substr(std::min(equals + 1, part.size()));
  }
  return {};
}

ApiResult<int64_t> whole_number(std::string_view text, std::string name, int64_t least,
                                int64_t most) {
  int64_t out = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc() || end != text.data() + text.size() || out < least || out > most)
    return invalid(fmt::format("'{}' must be a whole number from {} to {}", name, least, most),
                   std::move(name));
  return out;
}

bool is_true(std::optional<std::string_view> word) {
  return word && (*word == "true" || *word == "1" || *word == "True");
}

// A path below `under`: the id without its prefix, and what follows it.
struct Place {
  std::string id, rest;
};
std::optional<Place> place_in(std::string_view path, std::string_view under,
                              std::string_view prefix) {
  path.remove_prefix(std::min(under.size(), path.size()));
  const size_t slash = std::min(path.find('/'), path.size());
  std::string_view name = path.substr(0, slash);
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  const bool is_id = name.size() == kIdDigits &&
                     name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_id) return {};
  return Place{std::string(name), std::string(path.substr(std::min(slash + 1, path.size())))};
}

// Which of the APIs a body is for: its "api" says, or else what it looks like.
ApiResult<std::string> api_of(const Json& body, const HttpRequest& request) {
  if (!body.is_object()) return invalid("the body must be an object", "");
  if (const auto it = body.find("api"); it != body.end() && !it->is_null()) {
    if (it->is_string() && job_dialect(it->get_ref<const std::string&>()) != nullptr)
      return it->get<std::string>();
    return invalid("'api' must be \"chat_completions\", \"responses\" or \"messages\"", "api");
  }
  if (body.contains("input")) return std::string("responses");
  const bool is_anthropic = body.contains("system") || !request.header("anthropic-version").empty();
  return std::string(is_anthropic ? "messages" : "chat_completions");
}

ApiResult<std::string> key_of(const HttpRequest& request) {
  const std::string_view key = request.header("idempotency-key");
  const bool is_good =
      key.size() <= kMaxKeyBytes &&
      std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (is_good) return std::string(key);
  return invalid(
      fmt::format("Idempotency-Key must be at most {} visible ASCII characters", kMaxKeyBytes),
      "Idempotency-Key");
}

}  // namespace

// A request and the way back, on the jobs' thread.
struct JobRoutes::Call {
  HttpRequest request;
  std::shared_ptr<Reply> reply;
  Jobs* jobs = nullptr;
  bool streams = false;  // of a response in the background
  std::optional<Place> job = {}, response = {};
  // All bodies that wait here or at the writer, this one with them.
  std::shared_ptr<std::atomic<size_t>> n_bytes = {};

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (n_bytes) *n_bytes -= request.body.size();
  }

  void fail(const ApiError& error) const { send_error(*reply, request.path, error); }
  std::optional<std::string_view> query(std::string_view name) const {
    return query_value(request.query, name);
  }
  // Nothing where the client has its error.
  template <class T>
  T* value_of(ApiResult<T>& result) const {
    if (const auto* error = std::get_if<ApiError>(&result)) fail(*error);
    return std::get_if<T>(&result);
  }
  void send(const JobRow& row, int status = 200, HttpHeaders headers = {}) const {
    send_json(*reply, job_json(*jobs, row), status, std::move(headers));
  }
  void send_response(const JobRow& row) const {
    auto made = response_json(*jobs, row);
    if (const Json* json = value_of(made)) send_json(*reply, *json);
  }
  void follow(const JobRow& row, int64_t after) const {
    if (const ApiError error = jobs->follow(row, after, reply); !error.ok()) fail(error);
  }
};

std::vector<Route> JobRoutes::all() {
  const auto route = [&](const char* method, const char* path, Work work) {
    return Route{method, path, Access::key, on_jobs_thread(work)};
  };
  return {route("POST", "/v1/jobs", &JobRoutes::submit),
          route("GET", "/v1/jobs", &JobRoutes::list),
          route("GET", "/v1/jobs/*", &JobRoutes::get),
          route("POST", "/v1/jobs/*", &JobRoutes::post),
          route("DELETE", "/v1/jobs/*", &JobRoutes::remove),
          route("GET", "/v1/responses/*", &JobRoutes::get_response),
          route("POST", "/v1/responses/*", &JobRoutes::cancel_response),
          route("DELETE", "/v1/responses/*", &JobRoutes::remove_response)};
}

Handler JobRoutes::on_jobs_thread(Work work) {
  return [this, work](HttpRequest request, std::shared_ptr<Reply> reply) {
    auto call = std::make_shared<Call>();
    call->request = std::move(request);
    call->reply = std::move(reply);
    run(work, std::move(call));
  };
}

void JobRoutes::run(Work work, std::shared_ptr<Call> call) {
  call->jobs = jobs_();
  if (call->jobs == nullptr) return call->fail(loading());
  const size_t size = call->request.body.size();
  if (size > kMaxBodyBytes)
    return call->fail({.kind = ApiError::Kind::too_large,
                       .message = fmt::format("the body has {} bytes; a job takes at most {}", size,
                                              kMaxBodyBytes)});
  call->n_bytes = n_bytes_;
  if (*n_bytes_ += size; *n_bytes_ > kMaxBodiesBytes) return call->fail(busy());
  const bool taken = call->jobs->later([this, work, call] {
    if (const ApiError error = call->jobs->closed(); !error.ok()) return call->fail(error);
    call->job = place_in(call->request.path, kJobs, kJobPrefix);
    call->response = place_in(call->request.path, kResponses, kResponsePrefix);
    (this->*work)(call);
  });
  if (!taken) call->fail(busy());
}

void JobRoutes::respond_later(const HttpRequest& request, bool streams,
                              const std::shared_ptr<Reply>& reply) {
  auto call = std::make_shared<Call>();
  call->request = request;
  call->reply = reply;
  call->streams = streams;
  run(&JobRoutes::submit_response, std::move(call));
}

namespace {

// What the body asks for, checked; `headers` gets what it was read with.
ApiResult<NewJob> new_job(const HttpRequest& request, std::string api,
                          const JobRoutes::CheckModel& check_model) {
  auto body = parse_body(request.body);
  if (auto* error = std::get_if<ApiError>(&body)) return std::move(*error);
  if (api.empty()) {
    auto found = api_of(std::get<Json>(body), request);
    if (auto* error = std::get_if<ApiError>(&found)) return std::move(*error);
    api = std::move(std::get<std::string>(found));
  }
  auto key = key_of(request);
  if (auto* error = std::get_if<ApiError>(&key)) return std::move(*error);
  Json headers = Json::object();
  auto parsed = job_dialect(api)->parse(std::get<Json>(body), [&](std::string_view name) {
    const std::string_view value = request.header(name);
    if (!value.empty()) headers[std::string(name)] = value;
    return value;
  });
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  if (ApiError error = check_model(std::get<ApiRequest>(parsed).model); !error.ok()) return error;
  return NewJob{.tenant = request.tenant,
                .api = std::move(api),
                .key = std::move(std::get<std::string>(key)),
                .body = request.body,
                .headers = json_text(headers)};
}

}  // namespace

void JobRoutes::submit(const CallPtr& call) {
  auto asked = new_job(call->request, "", check_model_);
  NewJob* job = call->value_of(asked);
  if (job == nullptr) return;
  call->jobs->submit(std::move(*job), [call](ApiResult<Jobs::Submitted> made) {
    const Jobs::Submitted* submitted = call->value_of(made);
    if (submitted == nullptr) return;
    HttpHeaders headers = {{"Location", "/v1/jobs/" + job_name(submitted->row)}};
    if (submitted->was_there) headers.emplace_back("Idempotent-Replayed", "true");
    call->send(submitted->row, 202, std::move(headers));
  });
}

void JobRoutes::submit_response(const CallPtr& call) {
  auto asked = new_job(call->request, "responses", check_model_);
  NewJob* job = call->value_of(asked);
  if (job == nullptr) return;
  call->jobs->submit(std::move(*job), [call](ApiResult<Jobs::Submitted> made) {
    const Jobs::Submitted* submitted = call->value_of(made);
    if (submitted == nullptr) return;
    if (call->streams)
      call->follow(submitted->row, -1);
    else
      call->send_response(submitted->row);
  });
}

void JobRoutes::list(const CallPtr& call) {
  auto limit = whole_number(call->query("limit").value_or("20"), "limit", 1, kMostListed);
  const int64_t* most = call->value_of(limit);
  if (most == nullptr) return;
  int64_t before = INT64_MAX;
  if (const auto after = call->query("after"); after && !after->empty()) {
    const auto place = place_in(*after, "", kJobPrefix);
    auto found = place ? call->jobs->find(call->request.tenant, place->id)
                       : ApiResult<JobRow>(invalid("'after' must be the id of a job", "after"));
    const JobRow* row = call->value_of(found);
    if (row == nullptr) return;
    before = row->n;
  }
  auto listed = call->jobs->list(call->request.tenant, before, *most + 1);
  const std::vector<JobRow>* rows = call->value_of(listed);
  if (rows == nullptr) return;
  Json data = Json::array();
  for (size_t i = 0; i < std::min(rows->size(), static_cast<size_t>(*most)); ++i)
    data.push_back(job_json(*call->jobs, (*rows)[i]));
  const Json first = data.empty() ? Json() : data.front()["id"];
  const Json last = data.empty() ? Json() : data.back()["id"];
  send_json(*call->reply, {{"object", "list"},
                           {"data", std::move(data)},
                           {"first_id", first},
                           {"last_id", last},
                           {"has_more", std::ssize(*rows) > *most}});
}

void JobRoutes::get(const CallPtr& call) {
  const bool is_events = call->job && call->job->rest == "events";
  if (!call->job || (!is_events && !call->job->rest.empty())) return call->fail(not_found("job"));
  auto found = call->jobs->find(call->request.tenant, call->job->id);
  const JobRow* row = call->value_of(found);
  if (row == nullptr) return;
  if (is_events) {
    const std::string_view last = call->request.header("last-event-id");
    const auto after = call->query("after");
    if (last.empty() && (!after || after->empty())) return call->follow(*row, -1);
    auto from = last.empty() ? whole_number(*after, "after", 0, INT64_MAX)
                             : whole_number(last, "Last-Event-ID", 0, INT64_MAX);
    if (const int64_t* number = call->value_of(from)) call->follow(*row, *number);
    return;
  }
  Json out = job_json(*call->jobs, *row);
  auto answer = job_answer(*call->jobs, *row);
  // One whose tokens cannot be read here is still shown.
  out["response"] = std::holds_alternative<Json>(answer) ? std::get<Json>(answer) : Json();
  if (call->query("include") == "token_ids") {
    auto ids = call->jobs->tokens(*row);
    const auto* tokens = call->value_of(ids);
    if (tokens == nullptr) return;
    out["prompt_token_ids"] = row->prompt;
    out["token_ids"] = *tokens;
  }
  send_json(*call->reply, out);
}

void JobRoutes::post(const CallPtr& call) {
  using Change = Jobs::Change;
  constexpr std::array<std::pair<std::string_view, Change>, 3> kChanges = {
      {{"pause", Change::pause}, {"resume", Change::resume}, {"cancel", Change::cancel}}};
  if (!call->job) return call->fail(not_found("job"));
  const auto& [id, action] = *call->job;
  const auto then = [call](ApiResult<JobRow> made) {
    if (const JobRow* row = call->value_of(made)) call->send(*row);
  };
  for (const auto& [name, change] : kChanges)
    if (action == name) return call->jobs->change(call->request.tenant, id, change, then);
  if (action != "restart")
    return call->fail(
        not_found("action; there are pause, resume, cancel "
                  "and restart"));
  call->jobs->restart(call->request.tenant, id, [call](ApiResult<JobRow> made) {
    if (const JobRow* row = call->value_of(made)) call->send(*row, 202);
  });
}

void JobRoutes::remove(const CallPtr& call) {
  if (!call->job || !call->job->rest.empty()) return call->fail(not_found("job"));
  call->jobs->remove(call->request.tenant, call->job->id, [call](ApiResult<JobRow> made) {
    if (const JobRow* row = call->value_of(made))
      send_json(*call->reply,
                {{"id", job_name(*row)}, {"object", "job.deleted"}, {"deleted", true}});
  });
}

namespace {

ApiResult<JobRow> response_at(const Jobs& jobs, const std::string& tenant,
                              const std::optional<Place>& place, std::string_view rest) {
  const ApiError none = not_found("response: only those in the background are stored");
  if (!place || place->rest != rest) return none;
  auto found = jobs.find(tenant, place->id);
  if (const auto* row = std::get_if<JobRow>(&found); row != nullptr && row->api != "responses")
    return none;
  return found;
}

}  // namespace

void JobRoutes::get_response(const CallPtr& call) {
  auto found = response_at(*call->jobs, call->request.tenant, call->response, "");
  const JobRow* row = call->value_of(found);
  if (row == nullptr) return;
  if (!is_true(call->query("stream"))) return call->send_response(*row);
  const auto after = call->query("starting_after");
  if (!after || after->empty()) return call->follow(*row, -1);
  auto from = whole_number(*after, "starting_after", 0, INT64_MAX);
  if (const int64_t* number = call->value_of(from)) call->follow(*row, *number);
}

// One that has ended already is given as it is.
void JobRoutes::cancel_response(const CallPtr& call) {
  auto found = response_at(*call->jobs, call->request.tenant, call->response, "cancel");
  const JobRow* row = call->value_of(found);
  if (row == nullptr) return;
  const auto answer = [call](const ApiResult<JobRow>& made) {
    const auto* error = std::get_if<ApiError>(&made);
    if (error != nullptr && error->kind != ApiError::Kind::conflict) return call->fail(*error);
    auto now = call->jobs->find(call->request.tenant, call->response->id);
    if (const JobRow* stored = call->value_of(now)) call->send_response(*stored);
  };
  if (has_ended(row->progress.state)) return call->send_response(*row);
  call->jobs->change(call->request.tenant, row->id, Jobs::Change::cancel, answer);
}

void JobRoutes::remove_response(const CallPtr& call) {
  auto found = response_at(*call->jobs, call->request.tenant, call->response, "");
  const JobRow* row = call->value_of(found);
  if (row == nullptr) return;
  call->jobs->remove(call->request.tenant, row->id, [call](ApiResult<JobRow> made) {
    if (const JobRow* gone = call->value_of(made))
      send_json(*call->reply,
                {{"id", "resp_" + gone->id}, {"object", "response"}, {"deleted", true}});
  });
}

}  // namespace millrace::serve
