// The commands of `millrace`, one file each. add_<command> registers it on the app. Exit codes: 0
// done, 1 failed, 2 asked for something that does not exist, 130 interrupted.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/json_text.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/app.h"

namespace millrace::cli {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;

struct Recording;

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

void add_accuracy(App& app, const Recording& recording);
void add_bench(App& app, const Recording& recording);
void add_chat(App& app);
void add_serve(App& app);
void add_detokenize(App& app);
void add_doctor(App& app, const Log& log);
void add_inspect(App& app);
void add_kv(App& app);
void add_lab(App& app, const std::string& command_line);
void add_logits(App& app);
void add_make_model(App& app);
void add_models(App& app);
void add_perplexity(App& app);
void add_pull(App& app);
void add_quantize(App& app);
void add_replay(App& app, const std::string& command_line);
void add_run(App& app);
void add_selftest(App& app);
void add_template(App& app);
void add_tokenize(App& app);

}  // namespace millrace::cli
