#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace millrace::cli;
  CLI::App app{"Millrace: an inference engine, and the lab that measures its kernels"};
  app.require_subcommand(1);
  int exit_code = 0;
  add_bench(app, exit_code);
  add_selftest(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  }
  return exit_code;
}
