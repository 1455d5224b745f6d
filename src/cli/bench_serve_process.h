// This very program as a child: a server on a free port that ends with its owner, or a command that
// is run for what it prints.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace millrace::cli {

class ServerProcess {
 public:
  // `args` follow `millrace serve --port 0`. Returns when it serves.
  static Result<std::unique_ptr<ServerProcess>> start(const std::vector<std::string>& args);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& url() const { return url_; }
  void kill_now();  // SIGKILL: nothing is flushed, nobody is told
  double resident_mb() const;
  double cpu_seconds() const;  // of all its threads, since it started

 private:
  ServerProcess() = default;
  Status wait_until_it_serves();
  void end(int signal);

  pid_t pid_ = -1;
  int said_ = -1;  // its standard error, in memory
  std::string url_;
};

// What `millrace ARGS` writes to standard output.
Result<std::string> output_of(const std::vector<std::string>& args);

}  // namespace millrace::cli
