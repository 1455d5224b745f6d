// millrace serve: a model over HTTP.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/model_session.h"
#include "cli/sampling_options.h"
#include "engine/language_model.h"
#include "serve/http_server.h"
#include "serve/model_sampling.h"
#include "serve/routes.h"
#include "serve/service.h"

namespace millrace::cli {
namespace {

constexpr char kKeysVariable[] = "MILLRACE_API_KEYS";

struct Options {
  ModelOptions model;
  std::string host = "127.0.0.1", unix_socket, key_file, template_date, kv_memory, script;
  int port = 8080;
  int64_t parallel = 64;
  double chunk_ms = 200;
  std::vector<std::string> aliases, allow_origins, allow_hosts;
  bool strict_models = false, no_keys = false;
  double drain_s = 30;
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

// "512M", "8G", "1.5GiB" or a number of bytes.
Result<int64_t> read_size(const std::string& text) {
  size_t n = 0;
  double value = 0;
  try {
    value = std::stod(text, &n);
  } catch (...) {
    n = 0;
  }
  std::string_view unit = std::string_view(text).substr(n);
  for (const std::string_view ending : {"iB", "B"})
    if (unit.ends_with(ending)) unit.remove_suffix(ending.size());
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  if (unit.size() == 1 && kUnits.find(unit[0]) != std::string_view::npos)
    factor = std::exp2(10.0 * static_cast<double>(kUnits.find(unit[0]) + 1));
  else if (!unit.empty())
    n = 0;
  if (n == 0 || !(value * factor >= 1) || value * factor > 1e15)
    return error(Code::invalid_argument, "--kv-memory '{}' is no size; give one like 8G or 512M",
                 text);
  return static_cast<int64_t>(value * factor);
}

Result<serve::Keys> read_keys(const Options& options) {
  serve::Keys keys;
  if (!options.key_file.empty()) {
    MILLRACE_ASSIGN(serve::Keys from_file, serve::Keys::from_file(options.key_file));
    MILLRACE_TRY(keys.add(std::move(from_file)));
  }
  if (const char* text = std::getenv(kKeysVariable); text != nullptr && *text != 0) {
    MILLRACE_ASSIGN(serve::Keys from_text, serve::Keys::from_text(text, kKeysVariable));
    MILLRACE_TRY(keys.add(std::move(from_text)));
  }
  return keys;
}

// Ctrl-C and SIGTERM come to a thread that waits for them.
sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

// A line for each request that does something; no bodies, no keys.
void log_request(const serve::RequestEnd& end) {
  if (end.request.method != "POST" && end.status < 400) return;
  fmt::print(stderr, "millrace: {} {} {} {} bytes {:.3f} s{} {}{}\n", end.request.method,
             printable(end.request.path, 100), end.status, end.n_bytes, end.seconds,
             end.is_gone ? " (client went away)" : "", end.request.id,
             end.request.tenant.empty() ? "" : " " + end.request.tenant);
}

serve::HttpServerOptions http_options(const Options& options, serve::Keys keys) {
  serve::HttpServerOptions out;
  out.address = options.host == "localhost" ? "127.0.0.1" : options.host;
  out.port = options.port;
  out.unix_path = options.unix_socket;
  out.keys = std::move(keys);
  out.allows_anyone = options.no_keys;
  out.allowed_hosts = options.allow_hosts;
  out.allowed_origins = options.allow_origins;
  out.error_body = serve::Api::error_body;
  out.on_request_end = log_request;
  return out;
}

std::string sampling_text(const serve::PrepareOptions& options) {
  const std::string model = serve::text_of(options.from_model);
  const std::string flags = serve::text_of(options.from_flags);
  std::string out = flags.empty() ? "" : flags + " (flags)";
  if (!model.empty()) out += (out.empty() ? "" : ", then ") + model + " (the model's own)";
  return out.empty() ? "temperature 0.8, top-k 40, top-p 0.95, min-p 0.05" : out;
}

// Where a client on this machine finds it.
std::string url_of(std::string host, int port) {
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  return fmt::format("http://{}:{}", host, port);
}

void print_start(const Options& options, const serve::HttpServer& server, ModelSession& session,
                 const serve::Service& service, bool has_keys) {
  const std::string url = url_of(options.host, server.port());
  const char* header = has_keys ? " -H 'Authorization: Bearer KEY'" : "";
  const char* token = has_keys ? "KEY" : "none";
  const char* codex_key = has_keys ? ",env_key=\"MILLRACE_KEY\"" : "";
  const Engine& engine = session.engine();
  fmt::print(stderr,
             "millrace: serving {} at {}\n"
             "  context {} tokens, KV memory {} for {} tokens, up to {} requests at once\n"
             "  tool calls: {}{}\n"
             "  sampling: {}\n"
             "  numerics {}\n\n"
             "  curl {}/v1/chat/completions{} -d '{{\"messages\": [{{\"role\": \"user\", "
             "\"content\": \"Hello\"}}]}}'\n"
             "  Claude Code:  ANTHROPIC_BASE_URL={} ANTHROPIC_AUTH_TOKEN={} claude\n"
             "  Codex:        codex -c model_provider=millrace -c "
             "'model_providers.millrace={{name=\"millrace\",base_url=\"{}/"
             "v1\",wire_api=\"responses\"{}}}'\n",
             session.name(), url, service.preparer().options().max_prompt_tokens,
             size_text(engine.kv_bytes()), engine.n_pages() * kPageTokens,
             engine.options().max_seqs, name_of(service.preparer().format().tools),
             service.preparer().format().needs_instructions
                 ? " (the template has no tools: they are described in the system message)"
                 : "",
             sampling_text(service.preparer().options()), engine.fingerprint(), url, header, url,
             token, url, codex_key);
}

Result<int> run_server(const Options& options) {
  MILLRACE_ASSIGN(serve::Keys keys, read_keys(options));
  const bool has_keys = !keys.empty();
  for (const std::string& warning : keys.warnings())
    fmt::print(stderr, "millrace: warning: {}\n", warning);
  MILLRACE_TRY(validate(serve::overlay({}, sampling_flags(options))));
  MILLRACE_ASSIGN(const std::optional<std::tm> date, read_date(options.template_date));
  std::unique_ptr<serve::Script> script;
  if (!options.script.empty()) {
    MILLRACE_ASSIGN(script, serve::Script::read(options.script));
  }
  int64_t kv_bytes = -1;
  if (!options.kv_memory.empty()) {
    MILLRACE_ASSIGN(kv_bytes, read_size(options.kv_memory));
  }

  // Threads that start before the team are pinned nowhere.
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // So that one long conversation does not hold up all; a script says its lines in order.
  serve::WorkQueue workers(options.script.empty() ? 2 : 1, 4096);
  serve::Api api({.version = MILLRACE_VERSION,
                  .aliases = options.aliases,
                  .strict_models = options.strict_models,
                  .started_s = std::time(nullptr)});
  MILLRACE_ASSIGN(const auto server,
                  serve::HttpServer::start(http_options(options, std::move(keys)), api.routes()));
  std::atomic<serve::Service*> running = nullptr;
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
    server->stop(options.drain_s);
    serve::Service* service = running.load();
    if (service == nullptr) std::_Exit(0);  // still loading, and nothing is half done
    service->stop();
  });

  const auto serve_model = [&]() -> Status {
    MILLRACE_ASSIGN(const auto session,
                    ModelSession::load(options.model, {.max_seqs = options.parallel,
                                                       .max_outputs = options.parallel,
                                                       .kv_bytes = kv_bytes}));
    MILLRACE_ASSIGN(LanguageModel model, session->language_model());
    serve::ServiceOptions service_options;
    service_options.prepare.from_flags = sampling_flags(options);
    service_options.prepare.from_model = serve::sampling_of(session->engine().file());
    service_options.prepare.date = date;
    service_options.scheduler.chunk_s = options.chunk_ms * 1e-3;
    service_options.script = script.get();
    serve::Service service(model, workers, service_options);
    running = &service;
    if (!stopping) api.open(service, session->name());
    if (model.chat_template().needs_date() && !date)
      fmt::print(stderr,
                 "millrace: warning: the chat template prints a date: it gets 2025-01-01 unless "
                 "--template-date sets another\n");
    if (!stopping) print_start(options, *server, *session, service, has_keys);
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
  http.option("--host", options->host, "Address to listen on").show_default();
  http.option("--port", options->port, "Port; 0 for any free one").range(0, 65535).show_default();
  http.option("--unix-socket", options->unix_socket, "Listen on this Unix socket too")
      .type_name("PATH");
  http.option("--api-key-file", options->key_file,
              fmt::format("File of API keys, one per line: [admin ][NAME:]KEY (or set {})",
                          kKeysVariable))
      .type_name("FILE");
  http.flag("--no-api-key", options->no_keys, "Let anyone in, even from other machines");
  http.option("--allow-origin", options->allow_origins,
              "Let pages from this origin call the API; repeat for several")
      .take_all();
  http.option("--allow-host", options->allow_hosts,
              "Answer to this host name too, for proxies; repeat for several")
      .take_all();
  Command engine = command.group("Engine");
  engine
      .option("--kv-memory", options->kv_memory,
              "Memory for all contexts together, like 8G (default: what is left)")
      .type_name("SIZE");
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
  command.settings("MILLRACE_SERVE");
  command.runs([options] { return serve_command(*options); });
}

}  // namespace millrace::cli
