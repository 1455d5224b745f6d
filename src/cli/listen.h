// What every command that serves HTTP has: where it listens, who may come in, and how it is
// stopped.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/app.h"
#include "serve/http_server.h"

namespace millrace::cli {

struct ListenOptions {
  std::string host = "127.0.0.1", unix_socket, key_file;
  int port = 8080;
  std::vector<std::string> allow_origins, allow_hosts;
  bool no_keys = false;
};

void add_listen_options(Command& command, ListenOptions& options);

// From the file and from the environment; warnings about them go to stderr.
Result<serve::Keys> read_keys(const ListenOptions& options);
// With a line on stderr for each request that does something.
serve::HttpServerOptions http_options(const ListenOptions& options, serve::Keys keys);
// Where a client on this machine finds it.
std::string url_of(const ListenOptions& options, const serve::HttpServer& server);

// Ctrl-C and SIGTERM, blocked in the caller and its threads from here on: one waits for them.
sigset_t block_stop_signals();

}  // namespace millrace::cli
