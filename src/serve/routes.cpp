#include "serve/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/json_text.h"
#include "serve/json_body.h"
#include "serve/messages.h"
#include "serve/model_list.h"
#include "serve/random.h"
#include "serve/send.h"
#include "serve/web_files.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxDetokenize = 1 << 20;
constexpr size_t kReadHere = 64 << 10;  // bytes of a body: about a millisecond
constexpr size_t kMaxWarnings = 8;
constexpr size_t kMostBlocks = 256;  // shown by /debug/kv

// One request of a dialect on its way back to its client. Used by the engine's thread alone, once
// it was asked.
class Answering {
 public:
  Answering(const Dialect& dialect, ApiRequest request, AnswerHead head, std::string path,
            std::shared_ptr<Reply> reply)
      : dialect_(dialect),
        request_(std::move(request)),
        head_(std::move(head)),
        path_(std::move(path)),
        reply_(std::move(reply)) {
    if (request_.stream) writer_ = dialect_.stream(request_, head_);
  }

  void queue(uint64_t seed, const std::vector<std::string>& warnings) {
    warnings_ = warnings;
    if (!request_.stream) return;
    reply_->begin_events(headers(seed));
    has_begun_ = true;
  }

  void take(const AnswerEvent& event) {
    if (request_.stream)
      write(event);
    else
      collect(event);
  }

 private:
  HttpHeaders headers(uint64_t seed) const {
    HttpHeaders out = {{"X-Millrace-Fingerprint", head_.fingerprint},
                       {"X-Millrace-Seed", std::to_string(seed)}};
    for (size_t i = 0; i < std::min(warnings_.size(), kMaxWarnings); ++i)
      out.emplace_back("X-Millrace-Warning", printable(warnings_[i]));
    if (warnings_.size() > kMaxWarnings)
      out.emplace_back("X-Millrace-Warning",
                       fmt::format("and {} more", warnings_.size() - kMaxWarnings));
    return out;
  }
  static std::string printable(std::string text) {
    for (char& c : text)
      if (c < 0x20 || c > 0x7e) c = '?';
    return text.substr(0, 400);
  }

  // Until it is sure that there will be an answer, an error has a status of its own.
  void write(const AnswerEvent& event) {
    using enum AnswerEvent::Kind;
    if (!has_begun_ && event.kind == failed) return send_error(*reply_, path_, event.error);
    std::string piece = writer_->write(event);
    if (!piece.empty()) reply_->write(std::move(piece));
    if (event.kind == done || event.kind == failed) reply_->end();
  }

  void collect(const AnswerEvent& event) {
    using enum AnswerEvent::Kind;
    answer_.add(event);
    if (event.kind == failed) return send_error(*reply_, path_, event.error);
    if (event.kind == done)
      reply_->send(200, headers(answer_.seed), json_text(dialect_.whole(request_, head_, answer_)));
  }

  const Dialect& dialect_;
  const ApiRequest request_;
  const AnswerHead head_;
  const std::string path_;
  const std::shared_ptr<Reply> reply_;
  std::unique_ptr<StreamWriter> writer_;
  bool has_begun_ = false;
  std::vector<std::string> warnings_;
  Answer answer_;
};

}  // namespace

void Api::open(Service& service, Jobs& jobs, std::string model) {
  if (info_.model.empty()) info_.model = std::move(model);
  jobs_.store(&jobs, std::memory_order_release);
  fingerprint_ = service.model().engine().fingerprint();
  service_.store(&service, std::memory_order_release);
}

// The handlers, which need what Api has.
class Routes {
 public:
  explicit Routes(Api& api)
      : api_(api),
        job_routes_([this] { return api_.jobs_.load(std::memory_order_acquire); },
                    [this](const std::string& name) { return check_model(name); }) {}

  std::vector<Route> all() {
    std::vector<Route> out;
    for (const Dialect& dialect : dialects())
      out.push_back({"POST", std::string(dialect.path), Access::key, ask(dialect)});
    const auto add = [&](const char* method, const char* path, auto handler,
                         Access access = Access::key) {
      out.push_back({method, path, access, with_service(std::move(handler))});
    };
    add("GET", "/v1/models", [this](Service& service, const HttpRequest& request, Reply& reply) {
      models(service, request, reply);
    });
    add("GET", "/v1/models/*", [this](Service& service, const HttpRequest& request, Reply& reply) {
      model(service, request, reply);
    });
    out.push_back(
        {"GET", "/openapi.json", Access::key, [this](HttpRequest, std::shared_ptr<Reply> reply) {
           reply->send(200, {}, openapi_document(api_.info_.version, api_.info_.mounted));
         }});
    add(
        "GET", "/health",
        [](auto&, const auto&, Reply& reply) {
          send_json(reply, {{"status", "ok"}});
        },
        Access::open);
    add(
        "GET", "/metrics",
        [this](Service& service, const auto&, Reply& reply) { metrics(service, reply); },
        Access::admin);
    add(
        "GET", "/debug/engine",
        [this](Service& service, const auto&, Reply& reply) { debug(service, reply); },
        Access::admin);
    out.push_back({"GET", "/debug/kv", Access::admin,
                   [this](HttpRequest request, std::shared_ptr<Reply> reply) {
                     Service* service = api_.service_.load(std::memory_order_acquire);
                     if (service == nullptr) return send_error(*reply, request.path, loading());
                     service->on_engine([service, reply](Scheduler&) {
                       send_json(*reply, kv_json(service->model().engine()));
                     });
                   }});
    out.push_back(
        {"GET", "/version", Access::key, [this](HttpRequest, std::shared_ptr<Reply> reply) {
           send_json(*reply, {{"version", api_.info_.version}});
         }});
    slow(out, "/tokenize", tokenize);
    slow(out, "/detokenize", detokenize);
    slow(out, "/apply-template", apply_template);
    slow(out, "/v1/messages/count_tokens", count_tokens);
    for (Route& route : job_routes_.all()) out.push_back(std::move(route));
    for (const char* path : {"/v1/embeddings", "/v1/rerank", "/v1/audio/*", "/v1/images/*"})
      out.push_back({"POST", path, Access::key, not_here});
    page(out);
    return out;
  }

 private:
  template <class Work>
  Handler with_service(Work work) {
    return [this, work](HttpRequest request, std::shared_ptr<Reply> reply) {
      Service* service = api_.service_.load(std::memory_order_acquire);
      if (service == nullptr) return send_error(*reply, request.path, loading());
      work(*service, request, *reply);
    };
  }

  static void not_here(HttpRequest request, const std::shared_ptr<Reply>& reply) {
    send_error(*reply, request.path,
               {.kind = ApiError::Kind::not_supported,
                .message = fmt::format("this server does not do {}", request.path)});
  }

  ApiError check_model(const std::string& name) const {
    const ServerInfo& info = api_.info_;
    if (!info.strict_models || name == info.model ||
        std::find(info.aliases.begin(), info.aliases.end(), name) != info.aliases.end())
      return {};
    return {
        .kind = ApiError::Kind::not_found,
        .message = fmt::format("the model '{}' is not served here; this is '{}'", name, info.model),
        .param = "model"};
  }

  // A large body takes long to read: not on a thread that others' sockets need.
  Handler ask(const Dialect& dialect) {
    return [this, &dialect](HttpRequest request, std::shared_ptr<Reply> reply) {
      Service* service = api_.service_.load(std::memory_order_acquire);
      if (service == nullptr) return send_error(*reply, request.path, loading());
      if (request.body.size() <= kReadHere) return ask(dialect, *service, request, reply);
      const auto shared = std::make_shared<HttpRequest>(std::move(request));
      const bool taken = service->later([this, &dialect, service, shared, reply] {
        if (!reply->is_gone()) ask(dialect, *service, *shared, reply);
      });
      if (!taken) send_error(*reply, shared->path, busy());
    };
  }

  void ask(const Dialect& dialect, Service& service, const HttpRequest& request,
           const std::shared_ptr<Reply>& reply) {
    const auto header = [&](std::string_view name) { return request.header(name); };
    auto body = parse_body(request.body);
    if (auto* error = std::get_if<ApiError>(&body)) return send_error(*reply, request.path, *error);
    auto parsed = dialect.parse(std::get<Json>(body), header);
    if (auto* error = std::get_if<ApiError>(&parsed))
      return send_error(*reply, request.path, *error);
    ApiRequest& asked = std::get<ApiRequest>(parsed);
    if (const ApiError error = check_model(asked.model); !error.ok())
      return send_error(*reply, request.path, error);
    if (asked.background) return job_routes_.respond_later(request, asked.stream, reply);
    if (asked.model.empty()) asked.model = api_.info_.model;
    // One tenant must not put itself before the others.
    if (!request.tenant.empty() && !request.is_admin) asked.priority = std::max(asked.priority, 0);
    AnswerHead head{.id = random_hex(32),
                    .model = asked.model,
                    .created_s = std::time(nullptr),
                    .fingerprint = api_.fingerprint_};
    const auto answering =
        std::make_shared<Answering>(dialect, asked, std::move(head), request.path, reply);
    const Service::Id id = service.ask(
        std::move(asked), request.body.size(), request.tenant,
        {[answering](uint64_t seed, const auto& warnings) { answering->queue(seed, warnings); },
         [answering](const AnswerEvent& event) { answering->take(event); }});
    reply->on_gone([&service, id] { service.cancel(id); });
  }

  // What takes time goes to the service's own threads.
  using Slow = ApiResult<Json> (*)(const Service& service, const Json& body);
  void slow(std::vector<Route>& out, const char* path, Slow work) {
    out.push_back({"POST", path, Access::key,
                   [this, work](HttpRequest request, std::shared_ptr<Reply> reply) {
                     Service* service = api_.service_.load(std::memory_order_acquire);
                     if (service == nullptr) return send_error(*reply, request.path, loading());
                     const auto shared = std::make_shared<HttpRequest>(std::move(request));
                     const bool taken = service->later([service, work, shared, reply] {
                       auto body = parse_body(shared->body);
                       ApiResult<Json> result = body;
                       if (auto* json = std::get_if<Json>(&body)) result = work(*service, *json);
                       if (auto* error = std::get_if<ApiError>(&result))
                         return send_error(*reply, shared->path, *error);
                       send_json(*reply, std::get<Json>(result));
                     });
                     if (!taken) send_error(*reply, shared->path, busy());
                   }});
  }

  static ApiError invalid(std::string message, std::string param) {
    return {.kind = ApiError::Kind::invalid_request,
            .message = std::move(message),
            .param = std::move(param)};
  }

  static ApiResult<Json> tokenize(const Service& service, const Json& body) {
    if (!body.is_object() || !body.contains("content") || !body["content"].is_string())
      return invalid("'content' must be a string", "content");
    const size_t n_bytes = body["content"].get_ref<const std::string&>().size();
    if (const size_t most = service.preparer().max_text_bytes(); n_bytes > most)
      return ApiError{.kind = ApiError::Kind::too_large,
                      .message = fmt::format("'content' has {} bytes; at most {} are taken, which "
                                             "is what the context can hold",
                                             n_bytes, most),
                      .param = "content"};
    const bool wrap = body.contains("add_special") && body["add_special"] == true;
    const bool special = body.contains("parse_special") && body["parse_special"] == true;
    const std::string content = body["content"].get<std::string>();
    const TextPart part{content, special};
    auto tokens = service.model().tokenizer().encode({&part, 1}, wrap);
    if (!tokens.ok()) return api_error(tokens.status());
    return Json{{"tokens", tokens.value()}, {"count", tokens->size()}};
  }

  static ApiResult<Json> detokenize(const Service& service, const Json& body) {
    if (!body.is_object() || !body.contains("tokens") || !body["tokens"].is_array() ||
        body["tokens"].size() > kMaxDetokenize)
      return invalid("'tokens' must be an array of token ids", "tokens");
    std::vector<int32_t> ids;
    for (const Json& id : body["tokens"]) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
          id.get<int64_t>() >= service.model().tokenizer().size())
        return invalid(fmt::format("tokens[{}] is no token id", ids.size()), "tokens");
      ids.push_back(id.get<int32_t>());
    }
    return Json{{"content", service.model().tokenizer().decode(ids, true)}};
  }

  // The prompt that a request would have; what headers say does not change it.
  using Parse = decltype(Dialect::parse);
  static ApiResult<Preparer::Rendered> rendered(const Service& service, const Json& body,
                                                Parse parse) {
    auto parsed = parse(body, [](std::string_view) { return std::string_view(); });
    if (auto* error = std::get_if<ApiError>(&parsed)) return *error;
    auto out = service.preparer().render(std::get<ApiRequest>(parsed), true, nullptr);
    if (!out.ok()) return render_error(out.status());
    return std::move(out).value();
  }

  static ApiResult<Json> apply_template(const Service& service, const Json& body) {
    const auto prompt = rendered(service, body, dialects().front().parse);
    if (auto* error = std::get_if<ApiError>(&prompt)) return *error;
    const auto& [text, tokens] = std::get<Preparer::Rendered>(prompt);
    return Json{{"prompt", text}, {"n_tokens", tokens.size()}};
  }

  static ApiResult<Json> count_tokens(const Service& service, const Json& body) {
    const auto prompt = rendered(service, body, messages::parse_count_tokens);
    if (auto* error = std::get_if<ApiError>(&prompt)) return *error;
    return messages::count_tokens(std::ssize(std::get<Preparer::Rendered>(prompt).tokens));
  }

  ModelShown shown(const Service& service, const std::string& id) const {
    const Engine& engine = service.model().engine();
    return {.id = id,
            .created_s = api_.info_.started_s,
            .max_context = service.preparer().options().max_prompt_tokens,
            .trained_context = engine.config().n_ctx,
            .n_vocab = engine.config().n_vocab,
            .n_params = n_params(engine.file()),
            .file_bytes = static_cast<int64_t>(engine.file().file_bytes())};
  }
  static int64_t n_params(const ModelFile& file) {
    int64_t n = 0;
    for (const TensorView& tensor : file.tensors()) {
      int64_t elements = 1;
      for (const int64_t size : tensor.shape) elements *= size;
      n += elements;
    }
    return n;
  }
  static ListShape shape_for(const HttpRequest& request) {
    return request.header("anthropic-version").empty() ? ListShape::openai : ListShape::anthropic;
  }
  void models(const Service& service, const HttpRequest& request, Reply& reply) const {
    std::vector<ModelShown> all = {shown(service, api_.info_.model)};
    for (const std::string& alias : api_.info_.aliases) all.push_back(shown(service, alias));
    send_json(reply, model_list(all, shape_for(request)));
  }
  void model(const Service& service, const HttpRequest& request, Reply& reply) const {
    const std::string id = request.path.substr(std::string_view("/v1/models/").size());
    if (id.empty())
      return send_error(reply, request.path,
                        {.kind = ApiError::Kind::not_found, .message = "this names no model"});
    if (const ApiError error = check_model(id); !error.ok())
      return send_error(reply, request.path, error);
    send_json(reply, model_body(shown(service, id), shape_for(request)));
  }

  static std::string_view name_of(Scheduler::Phase phase) {
    constexpr std::string_view kNames[] = {"queued", "restoring", "prefill", "decode"};
    return kNames[static_cast<size_t>(phase)];
  }
  static Json disk_json(const EngineView& view) {
    if (!view.disk) return nullptr;
    const disk::Store::Counts& store = view.disk->disk.store;
    return {{"bytes", store.bytes},
            {"records", store.n_records},
            {"segments", store.n_segments},
            {"waiting", view.disk->tree.n_unsaved},
            {"is_off", view.disk->disk.is_off},
            {"restores", view.disk->restores.n_restores},
            {"restored_tokens", view.disk->restores.n_tokens}};
  }
  void debug(const Service& service, Reply& reply) const {
    const EngineView view = service.view();
    Json running = Json::array(), waiting = Json::array(), steps = Json::array();
    for (const Scheduler::Shown& one : view.requests)
      (one.phase <= Scheduler::Phase::restoring ? waiting : running)
          .push_back({{"id", one.id},
                      {"session", one.session},
                      {"phase", name_of(one.phase)},
                      {"n_prompt", one.n_prompt},
                      {"n_cached", one.n_cached},
                      {"n_done", one.n_done},
                      {"n_tokens", one.n_tokens},
                      {"age_s", one.age_s}});
    for (const double step_s : view.step_s) steps.push_back(step_s * 1e3);
    send_json(
        reply,
        {{"model", api_.info_.model},
         {"fingerprint", api_.fingerprint_},
         {"disk", disk_json(view)},
         {"uptime_s", std::time(nullptr) - api_.info_.started_s},
         {"running", running},
         {"waiting", waiting},
         {"step_ms", steps},
         {"tokens_per_s", view.tokens_per_s},
         {"pages",
          {{"total", view.n_pages},
           {"free", view.n_free_pages},
           {"cached", view.n_cached_pages},
           {"in_use", view.n_pages - view.n_free_pages - view.n_cached_pages}}},
         {"tree",
          {{"nodes", view.tree.n_nodes},
           {"tokens", view.tree.n_tokens},
           {"depth", view.tree.depth},
           {"top", Json::array()}}},
         {"hit_rate",
          {{"tokens_cached", view.counts.n_cached}, {"tokens_prompt", view.counts.n_prompt}}}});
  }

  // Why each end of a context is kept, what would go first in front. No text and no names of
  // sessions: lines have numbers.
  static Json kv_json(const Engine& engine) {
    const Retention& retention = engine.retention();
    Json blocks = Json::array();
    for (const PrefixTree::Shown& block : engine.tree().shown(kMostBlocks)) {
      Json uses = Json::array();
      for (const Use& use : block.uses) {
        const Retention::Shown line = retention.shown(use);
        uses.push_back({{"line", use.line},
                        {"turn", use.turn},
                        {"state", line.state},
                        {"after", line.after},
                        {"idle_s", line.idle_s},
                        {"hint_s", line.hint_s},
                        {"back_within_a_minute", line.p_minute}});
      }
      blocks.push_back({{"tokens", block.n_tokens},
                        {"position", (block.depth - 1) * kPageTokens},
                        {"in_use", block.is_held},
                        {"on_disk", block.is_on_disk},
                        {"age_s", block.age_s},
                        {"returns_per_s", block.rate},
                        {"cost", block.cost},
                        {"value", block.rate * block.cost},
                        {"uses", std::move(uses)}});
    }
    return {{"policy", retention.by_value() ? "value" : "lru"}, {"blocks", std::move(blocks)}};
  }

  void metrics(const Service& service, Reply& reply) const {
    const EngineView view = service.view();
    const auto n_waiting =
        std::count_if(view.requests.begin(), view.requests.end(),
                      [](const auto& r) { return r.phase <= Scheduler::Phase::restoring; });
    const Metrics::Now now{
        .model = api_.info_.model,
        .counts = view.counts,
        .n_running = std::ssize(view.requests) - n_waiting,
        .n_waiting = n_waiting,
        .n_pages = view.n_pages,
        .n_free_pages = view.n_free_pages,
        .n_cached_pages = view.n_cached_pages,
        .n_dropped_nodes = view.tree.n_dropped,
        .uptime_s = static_cast<double>(std::time(nullptr) - api_.info_.started_s),
        .disk = view.disk,
        .retention = view.retention,
        .jobs = &api_.jobs_.load(std::memory_order_acquire)->metrics()};
    reply.send(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
               service.metrics().text(now));
  }

  static void page(std::vector<Route>& out) {
    for (const WebFile& file : web_files()) {
      const auto send = [&file](HttpRequest, const std::shared_ptr<Reply>& reply) {
        reply->send(200,
                    {{"Content-Type", std::string(file.type)},
                     {"Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-cache"}},
                    std::string(file.bytes));
      };
      out.push_back({"GET", std::string(file.path), Access::open, send});
      if (file.path == "/index.html") out.push_back({"GET", "/", Access::open, send});
    }
  }

  Api& api_;
  JobRoutes job_routes_;
};

std::vector<Route> Api::routes() {
  // Lives as long as the handlers.
  const auto routes = std::make_shared<Routes>(*this);
  std::vector<Route> out = routes->all();
  for (Route& route : out)
    route.handler = [routes, handler = std::move(route.handler)](HttpRequest request,
                                                                 std::shared_ptr<Reply> reply) {
      handler(std::move(request), std::move(reply));
    };
  return out;
}

}  // namespace millrace::serve
