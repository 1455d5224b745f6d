// millrace serve: a model over HTTP.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "cli/commands.h"
#include "cli/kv_folder.h"
#include "cli/lab.h"
#include "cli/listen.h"
#include "cli/model_session.h"
#include "cli/read_size.h"
#include "cli/sampling_options.h"
#include "cli/state_file.h"
#include "engine/language_model.h"
#include "lab/page/page.h"
#include "serve/http_server.h"
#include "serve/jobs/jobs.h"
#include "serve/model_sampling.h"
#include "serve/routes.h"
#include "serve/send.h"
#include "serve/service.h"

namespace millrace::cli {
namespace {

struct Options {
  ModelOptions model;
  ListenOptions listen;
  std::string template_date, kv_memory, kv_policy = "value", script, lab_db;
  KvDiskOptions kv_disk;
  int64_t parallel = 64;
  double chunk_ms = 200;
  std::vector<std::string> aliases;
  bool strict_models = false, no_lab = false;
  double drain_s = 30;
  std::string jobs, jobs_size = "1G";
  double jobs_keep_days = 7;
  int jobs_parallel = 4;
  // Not given unless set: NaN, -1.
  float temperature = NAN, top_p = NAN, min_p = NAN, repeat_penalty = NAN;
  int top_k = -1;
};

serve::AskedSampling sampling_flags(const Options& options) {
  serve::AskedSampling out;
  const auto take = [](std::optional<float>& to, float value) {
    if (!std::isnan(value)) to = value;
  };
  take(out.temperature, options.temperature);
  take(out.top_p, options.top_p);
  take(out.min_p, options.min_p);
  take(out.repeat_penalty, options.repeat_penalty);
  if (options.top_k >= 0) out.top_k = options.top_k;
  return out;
}

// 2026-11-16
Result<std::optional<std::tm>> read_date(const std::string& text) {
  if (text.empty()) return std::optional<std::tm>();
  std::tm out{};
  const char* end = strptime(text.c_str(), "%Y-%m-%d", &out);
  if (end == nullptr || *end != 0)
    return error(Code::invalid_argument,
                 "--template-date '{}' is no date; give one like 2026-01-31", text);
  mktime(&out);
  return std::optional(out);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<serve::JobsOptions> jobs_options(const Options& options) {
  serve::JobsOptions out;
  out.folder = options.jobs.empty() ? state_path("jobs") : options.jobs;
  if (options.jobs == "off") {
    out.folder.clear();
    out.why_off = "it was started with --jobs off";
  } else if (out.folder.empty()) {
    out.why_off = "XDG_STATE_HOME and HOME are not set, so there is no place for them; use --jobs";
  }
  MILLRACE_ASSIGN(out.max_bytes, read_size("--jobs-size", options.jobs_size));
  out.keep_s = static_cast<int64_t>(options.jobs_keep_days * 86400);
  out.n_parallel = options.jobs_parallel;
  return out;
}

std::string sampling_text(const serve::PrepareOptions& options) {
  const std::string model = serve::text_of(options.from_model);
  const std::string flags = serve::text_of(options.from_flags);
  std::string out = flags.empty() ? "" : flags + " (flags)";
  if (!model.empty()) out += (out.empty() ? "" : ", then ") + model + " (the model's own)";
  return out.empty() ? "temperature 0.8, top-k 40, top-p 0.95, min-p 0.05" : out;
}

std::string jobs_text(const Options& options, const serve::Jobs& jobs) {
  if (options.jobs == "off") return "off";
  if (!jobs.opening_failure().empty())
    return fmt::format("none are taken: {}", jobs.opening_failure());
  return fmt::format("kept in {}{}", jobs.folder(),
                     jobs.n_unfinished_at_start() == 0
                         ? ""
                         : fmt::format(", {} unfinished", jobs.n_unfinished_at_start()));
}

// Where what outlives the process is kept, in words.
struct Kept {
  std::string contexts, jobs;
};

void print_start(const Options& options, const serve::HttpServer& server, ModelSession& session,
                 const serve::Service& service, const Kept& kept, bool has_keys) {
  const std::string url = url_of(options.listen, server);
  const char* header = has_keys ? " -H 'Authorization: Bearer KEY'" : "";
  const char* token = has_keys ? "KEY" : "none";
  const char* codex_key = has_keys ? ",env_key=\"MILLRACE_KEY\"" : "";
  const Engine& engine = session.engine();
  fmt::print(stderr,
             "millrace: serving {} at {}\n"
             "  context {} tokens, KV memory {} for {} tokens, up to {} requests at once\n"
             "  contexts on disk: {}\n"
             "  tool calls: {}{}\n"
             "  sampling: {}\n"
             "  jobs: {}\n"
             "  numerics {}\n\n"
             "  curl {}/v1/chat/completions{} -d '{{\"messages\": [{{\"role\": \"user\", "
             "\"content\": \"Hello\"}}]}}'\n"
             "  Claude Code:  ANTHROPIC_BASE_URL={} ANTHROPIC_AUTH_TOKEN={} claude\n"
             "  Codex:        codex -c model_provider=millrace -c "
             "'model_providers.millrace={{name=\"millrace\",base_url=\"{}/"
             "v1\",wire_api=\"responses\"{}}}'\n",
             session.name(), url, service.preparer().options().max_prompt_tokens,
             size_text(engine.kv_bytes()), engine.n_pages() * kPageTokens,
             engine.options().max_seqs, kept.contexts, name_of(service.preparer().format().tools),
             service.preparer().format().needs_instructions
                 ? " (the template has no tools: they are described in the system message)"
                 : "",
             sampling_text(service.preparer().options()), kept.jobs, engine.fingerprint(), url,
             header, url, token, url, codex_key);
}

// Null where it is not wanted, or where there is no place for a database.
std::unique_ptr<lab::LabPage> open_lab_page(const Options& options) {
  if (options.no_lab) return nullptr;
  const auto database = lab_database(options.lab_db);
  if (database.ok()) return std::make_unique<lab::LabPage>(lab::PageOptions{database.value()});
  fmt::print(stderr, "millrace: warning: no lab page: {}\n", database.status().message());
  return nullptr;
}

std::vector<serve::Route> all_routes(serve::Api& api, lab::LabPage* lab_page) {
  std::vector<serve::Route> out = api.routes();
  if (lab_page == nullptr) return out;
  for (serve::Route& route : lab_page->routes()) out.push_back(std::move(route));
  return out;
}

Result<int> run_server(const Options& options) {
  MILLRACE_ASSIGN(serve::Keys keys, read_keys(options.listen));
  const bool has_keys = !keys.empty();
  MILLRACE_TRY(validate(serve::overlay({}, sampling_flags(options))));
  MILLRACE_ASSIGN(const std::optional<std::tm> date, read_date(options.template_date));
  std::unique_ptr<serve::Script> script;
  if (!options.script.empty()) {
    MILLRACE_ASSIGN(script, serve::Script::read(options.script));
  }
  int64_t kv_bytes = -1;
  if (!options.kv_memory.empty()) {
    MILLRACE_ASSIGN(kv_bytes, read_size("--kv-memory", options.kv_memory));
  }
  MILLRACE_ASSIGN(const KvDisk kv_disk,
                  read_kv_disk(options.kv_disk, is_loopback(options.listen.host)));
  MILLRACE_ASSIGN(const serve::JobsOptions job_options, jobs_options(options));

  // Threads that start before the team are pinned nowhere.
  const sigset_t signals = block_stop_signals();
  // So that one long conversation does not hold up all; a script says its lines in order.
  serve::WorkQueue workers(options.script.empty() ? 2 : 1, 4096);
  const auto lab_page = open_lab_page(options);
  serve::Api api(
      {.version = MILLRACE_VERSION,
       .aliases = options.aliases,
       .strict_models = options.strict_models,
       .started_s = std::time(nullptr),
       .mounted = lab_page ? lab::LabPage::described() : std::vector<serve::MountedRoute>()});
  MILLRACE_ASSIGN(const auto server,
                  serve::HttpServer::start(http_options(options.listen, std::move(keys)),
                                           all_routes(api, lab_page.get())));
  std::atomic<serve::Service*> running = nullptr;
  std::atomic<serve::Jobs*> running_jobs = nullptr;
  std::atomic<bool> stopping = false;
  std::thread waiter([&]() noexcept {
    int signal = 0;
    sigwait(&signals, &signal);
    if (stopping.exchange(true)) return;
    fmt::print(stderr, "millrace: stopping; running requests get {:g} s\n", options.drain_s);
    // A second Ctrl-C ends it at once.
    sigset_t ctrl_c;
    sigemptyset(&ctrl_c);
    sigaddset(&ctrl_c, SIGINT);
    std::signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &ctrl_c, nullptr);
    // First the jobs: they go on at the next start, and who follows them need not be waited for.
    if (serve::Jobs* jobs = running_jobs.load(); jobs != nullptr) jobs->stop();
    if (lab_page) lab_page->stop();
    server->stop(options.drain_s);
    serve::Service* service = running.load();
    if (service == nullptr) std::_Exit(0);  // still loading, and nothing is half done
    service->stop();
  });

  const auto serve_model = [&]() -> Status {
    MILLRACE_ASSIGN(const auto session,
                    ModelSession::load(options.model, {.max_seqs = options.parallel,
                                                       .max_outputs = options.parallel,
                                                       .kv_bytes = kv_bytes,
                                                       .kv_policy = options.kv_policy == "lru"
                                                                        ? KvPolicy::lru
                                                                        : KvPolicy::value}));
    MILLRACE_ASSIGN(const std::string disk,
                    keep_on_disk(session->engine(), session->machine(), session->name(), kv_disk));
    MILLRACE_ASSIGN(LanguageModel model, session->language_model());
    serve::ServiceOptions service_options;
    service_options.prepare.from_flags = sampling_flags(options);
    service_options.prepare.from_model = serve::sampling_of(session->engine().file());
    service_options.prepare.date = date;
    service_options.scheduler.chunk_s = options.chunk_ms * 1e-3;
    service_options.script = script.get();
    serve::Service service(model, workers, service_options);
    serve::Jobs jobs(service, session->name(), job_options);
    running_jobs = &jobs;
    running = &service;
    if (!stopping) api.open(service, jobs, session->name());
    if (model.chat_template().needs_date() && !date)
      fmt::print(stderr,
                 "millrace: warning: the chat template prints a date: it gets 2025-01-01 unless "
                 "--template-date sets another\n");
    if (!stopping)
      print_start(options, *server, *session, service, {disk, jobs_text(options, jobs)}, has_keys);
    service.run();  // until the waiter stops it
    return {};
  };
  const Status status = serve_model();
  if (!stopping.exchange(true)) {  // loading failed, and the waiter waits
    pthread_kill(waiter.native_handle(), SIGTERM);
    waiter.join();
    server->stop(0);
  } else {
    waiter.join();
  }
  MILLRACE_TRY(status);
  return 0;
}

int serve_command(const Options& options) {
  auto code = run_server(options);
  return code.ok() ? code.value() : fail(code.status());
}

}  // namespace

void add_serve(App& app) {
  auto options = std::make_shared<Options>();
  Command command =
      app.add("serve", "Serve a model over HTTP: OpenAI and Anthropic APIs, web page");
  add_model_options(command, options->model);
  Command http = command.group("HTTP");
  add_listen_options(http, options->listen);
  Command engine = command.group("Engine");
  engine
      .option("--kv-memory", options->kv_memory,
              "Memory for all contexts together, like 8G (default: what is left)")
      .type_name("SIZE");
  add_kv_disk_options(engine, options->kv_disk);
  engine
      .option(
          "--kv-policy", options->kv_policy,
          "Which contexts are forgotten first: those worth least to keep, or the least recently "
          "used")
      .one_of({"value", "lru"})
      .show_default();
  engine.option("--parallel", options->parallel, "Requests computed at once; more wait")
      .range(1, 1024)
      .show_default();
  engine
      .option("--chunk-ms", options->chunk_ms,
              "Milliseconds that a step with new prompts may take while others decode: shorter "
              "keeps their tokens coming, longer starts new answers sooner")
      .real_range(1, 60000)
      .show_default();
  engine.option("--drain", options->drain_s, "Seconds that running requests get when it stops")
      .real_range(0, 86400)
      .show_default();
  Command jobs = command.group("Jobs: answers made in the background that survive a restart");
  jobs.option("--jobs", options->jobs,
              "Folder for jobs, or off (default: the user's own, under ~/.local/state/millrace)")
      .type_name("DIR");
  jobs.option("--jobs-keep", options->jobs_keep_days, "Days that a finished job is kept")
      .real_range(0, 36500)
      .show_default();
  jobs.option("--jobs-size", options->jobs_size,
              "Size of all jobs together; finished ones of who has most go first")
      .type_name("SIZE")
      .show_default();
  jobs.option("--jobs-parallel", options->jobs_parallel, "Jobs computed at once; more wait")
      .range(1, 1024)
      .show_default();
  Command sampling = command.group("Sampling, where a request does not say");
  sampling.option("--temperature,--temp", options->temperature,
                  "Sampling temperature; 0 always takes the most likely token");
  sampling.option("--top-k", options->top_k, "Top-k sampling: keep the N most likely tokens")
      .at_least(0);
  sampling.option("--top-p", options->top_p,
                  "Nucleus sampling: keep the smallest set of tokens with this probability");
  sampling.option("--min-p", options->min_p,
                  "Drop tokens that are less likely than this fraction of the most likely one");
  sampling.option("--repeat-penalty", options->repeat_penalty,
                  "Divide the score of tokens that already occurred by this");
  engine
      .option("--template-date", options->template_date,
              "Date for chat templates that print one (default: what the template falls back to)")
      .type_name("YYYY-MM-DD");
  Command names = command.group("Models");
  names.option("--alias", options->aliases, "Another name of the model; repeat for several")
      .take_all();
  names.flag("--strict-models", options->strict_models,
             "Answer 404 to other model names (default: any name is answered)");
  names
      .option("--script", options->script,
              "For tests of clients: say what this file says instead of what the model would")
      .type_name("FILE");
  Command lab = command.group("Lab");
  lab.option("--lab-db", options->lab_db,
             "Database that the page at /lab shows (default: the user's own)")
      .type_name("FILE");
  lab.flag("--no-lab", options->no_lab, "No page at /lab");
  command.settings("MILLRACE_SERVE");
  command.runs([options] { return serve_command(*options); });
}

}  // namespace millrace::cli
