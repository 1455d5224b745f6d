#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "base/log.h"
#include "cli/commands.h"

namespace millrace::cli {
namespace {

// MILLRACE_LOG, read here and nowhere else.
Result<LogLevel> wanted_log_level() {
  const char* name = std::getenv("MILLRACE_LOG");
  if (name == nullptr || *name == '\0') return LogLevel::warning;
  return parse_log_level(name);
}

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// A first argument that is no option and no command; the parser would only say that one is missing.
bool names_no_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  const auto commands = app.get_subcommands(nullptr);
  return std::none_of(commands.begin(), commands.end(),
                      [&](const CLI::App* command) { return command->check_name(argv[1]); });
}

int run(int argc, char** argv) {
  const auto level = wanted_log_level();
  if (!level.ok()) {
    fmt::print(stderr, "millrace: MILLRACE_LOG: {}\n", level.status().message());
    return kUsage;
  }
  const Log log(level.value());
  CLI::App app{"Millrace: an inference engine, and the lab that measures its kernels"};
  app.set_version_flag("--version", "millrace " MILLRACE_VERSION);
  app.footer("MILLRACE_LOG=debug, info, warning, error or off sets what is logged on stderr.");
  app.require_subcommand(1);
  int exit_code = 0;
  add_bench(app, command_line(argc, argv), exit_code);
  add_chat(app, exit_code);
  add_detokenize(app, exit_code);
  add_doctor(app, log, exit_code);
  add_inspect(app, exit_code);
  add_logits(app, exit_code);
  add_make_model(app, exit_code);
  add_models(app, exit_code);
  add_pull(app, exit_code);
  add_perplexity(app, exit_code);
  add_quantize(app, exit_code);
  add_run(app, exit_code);
  add_runs(app, exit_code);
  add_selftest(app, exit_code);
  add_template(app, exit_code);
  add_tokenize(app, exit_code);
  if (names_no_command(app, argc, argv)) {
    fmt::print(stderr, "millrace: no command '{}'; there are: {}\n", argv[1], command_names(app));
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  return exit_code;
}

// Output that did not arrive (a full disk) is a failure, whatever the command thought of it.
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
