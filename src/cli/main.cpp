#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/job.h"
#include "cli/post.h"
#include "cli/recorder.h"

namespace millrace::cli {
namespace {

// MILLRACE_LOG, read here and nowhere else.
Result<LogLevel> wanted_log_level() {
  const char* name = std::getenv("MILLRACE_LOG");
  if (name == nullptr || *name == '\0') return LogLevel::warning;
  return parse_log_level(name);
}

int run(int argc, char** argv) {
  const auto level = wanted_log_level();
  if (!level.ok()) {
    fmt::print(stderr, "millrace: MILLRACE_LOG: {}\n", level.status().message());
    return kUsage;
  }
  const Log log(level.value());
  App app(
      "Millrace: an LLM inference engine, and the lab that measures its kernels",
      "millrace " MILLRACE_VERSION,
      "The environment variable MILLRACE_LOG (debug, info, warning, error or off) sets what is "
      "logged on stderr. MILLRACE_PROFILE names the profile of measured kernels that models run "
      "with, or is off (default: what 'bench --write-profile default' wrote).");
  add_accuracy(app, {.command = command_line(argc, argv)});
  add_bench(app, {.command = command_line(argc, argv)});
  add_chat(app);
  add_serve(app);
  add_detokenize(app);
  add_doctor(app, log);
  add_inspect(app);
  add_job(app);
  add_kv(app);
  add_lab(app, command_line(argc, argv));
  add_logits(app);
  add_make_model(app);
  add_models(app);
  add_perplexity(app);
  add_post(app);
  add_pull(app);
  add_quantize(app);
  add_replay(app, command_line(argc, argv));
  add_run(app);
  add_selftest(app);
  add_template(app);
  add_tokenize(app);
  return app.run(argc, argv);
}

// Output that did not arrive (a full disk) is a failure, also of a command that succeeded.
int flushed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "millrace: cannot write the output: {}\n", std::strerror(errno));
  return exit_code == 0 ? kFailed : exit_code;
}

}  // namespace
}  // namespace millrace::cli

int main(int argc, char** argv) {
  using namespace millrace::cli;
  try {
    return flushed(run(argc, argv));
  } catch (const std::exception& e) {  // what libraries throw: no memory, no place to write
    std::fprintf(stderr, "millrace: %s\n", e.what());
    return kFailed;
  }
}
