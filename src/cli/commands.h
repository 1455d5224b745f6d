// The commands of `millrace`, one file each. add_<command> registers it on the app; when it was
// asked for, it runs while the command line is parsed and leaves the program's exit code: 0 done,
// 1 failed, 2 asked for something that does not exist, 130 interrupted.
#pragma once

#include <CLI/CLI.hpp>

#include "base/json_text.h"
#include "base/log.h"
#include "base/status.h"

namespace millrace::cli {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;

// Prints the error; the exit code that fits it.
int fail(const Status& status);

// "16 KiB", "93.8 MiB", "4.1 GiB".
std::string size_text(size_t bytes);

// A document on standard output: what every --json prints.
template <class Json>
void print_json(const Json& document) {
  fmt::print("{}\n", json_text(document, 2));
}

// The command line as a shell would take it again.
std::string command_line(int argc, char** argv);

void add_bench(CLI::App& app, const std::string& command_line, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_detokenize(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, const Log& log, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_logits(CLI::App& app, int& exit_code);
void add_make_model(CLI::App& app, int& exit_code);
void add_models(CLI::App& app, int& exit_code);
void add_pull(CLI::App& app, int& exit_code);
void add_perplexity(CLI::App& app, int& exit_code);
void add_quantize(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_runs(CLI::App& app, int& exit_code);
void add_selftest(CLI::App& app, int& exit_code);
void add_template(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);

}  // namespace millrace::cli
