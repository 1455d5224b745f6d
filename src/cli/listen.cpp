#include "cli/listen.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdlib>

#include "base/utf8.h"
#include "serve/send.h"

namespace millrace::cli {
namespace {

constexpr char kKeysVariable[] = "MILLRACE_API_KEYS";

// A line for each request that does something; no bodies, no keys.
void log_request(const serve::RequestEnd& end) {
  if (end.request.method != "POST" && end.status < 400) return;
  fmt::print(stderr, "millrace: {} {} {} {} bytes {:.3f} s{} {}{}\n", end.request.method,
             printable(end.request.path, 100), end.status, end.n_bytes, end.seconds,
             end.is_gone ? " (client went away)" : "", end.request.id,
             end.request.tenant.empty() ? "" : " " + end.request.tenant);
}

}  // namespace

void add_listen_options(Command& http, ListenOptions& options) {
  http.option("--host", options.host, "Address to listen on").show_default();
  http.option("--port", options.port, "Port; 0 for any free one").range(0, 65535).show_default();
  http.option("--unix-socket", options.unix_socket, "Listen on this Unix socket too")
      .type_name("PATH");
  http.option("--api-key-file", options.key_file,
              fmt::format("File of API keys, one per line: [admin ][NAME:]KEY (or set {})",
                          kKeysVariable))
      .type_name("FILE");
  http.flag("--no-api-key", options.no_keys, "Let anyone in, even from other machines");
  http.option("--allow-origin", options.allow_origins,
              "Let pages from this origin call the API; repeat for several")
      .take_all();
  http.option("--allow-host", options.allow_hosts,
              "Answer to this host name too, for proxies; repeat for several")
      .take_all();
}

Result<serve::Keys> read_keys(const ListenOptions& options) {
  serve::Keys keys;
  if (!options.key_file.empty()) {
    MILLRACE_ASSIGN(serve::Keys from_file, serve::Keys::from_file(options.key_file));
    MILLRACE_TRY(keys.add(std::move(from_file)));
  }
  if (const char* text = std::getenv(kKeysVariable); text != nullptr && *text != 0) {
    MILLRACE_ASSIGN(serve::Keys from_text, serve::Keys::from_text(text, kKeysVariable));
    MILLRACE_TRY(keys.add(std::move(from_text)));
  }
  for (const std::string& warning : keys.warnings())
    fmt::print(stderr, "millrace: warning: {}\n", warning);
  return keys;
}

serve::HttpServerOptions http_options(const ListenOptions& options, serve::Keys keys) {
  serve::HttpServerOptions out;
  out.address = options.host == "localhost" ? "127.0.0.1" : options.host;
  out.port = options.port;
  out.unix_path = options.unix_socket;
  out.keys = std::move(keys);
  out.allows_anyone = options.no_keys;
  out.allowed_hosts = options.allow_hosts;
  out.allowed_origins = options.allow_origins;
  out.error_body = serve::error_body;
  out.on_request_end = log_request;
  return out;
}

std::string url_of(const ListenOptions& options, const serve::HttpServer& server) {
  std::string host = options.host;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  return fmt::format("http://{}:{}", host, server.port());
}

sigset_t block_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

}  // namespace millrace::cli
