#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/commands.h"

namespace millrace::cli {
namespace {

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

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}
Option& Option::range(int64_t least, int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::real_range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}
Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}
Option& Option::delimiter(char c) {
  option_->delimiter(c);
  return *this;
}
Option& Option::n_values(int n) {
  option_->expected(n);
  return *this;
}
Option& Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}
Option& Option::take_all() {
  option_->take_all();
  return *this;
}

template <class T>
Option Command::option(const std::string& names, T& value, const std::string& help) {
  return Option(*app_->add_option(names, value, help));
}
template Option Command::option(const std::string&, std::string&, const std::string&);
template Option Command::option(const std::string&, int&, const std::string&);
template Option Command::option(const std::string&, int64_t&, const std::string&);
template Option Command::option(const std::string&, uint64_t&, const std::string&);
template Option Command::option(const std::string&, float&, const std::string&);
template Option Command::option(const std::string&, double&, const std::string&);
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::option(const std::string&, std::vector<int32_t>&, const std::string&);
template Option Command::option(const std::string&, std::vector<int64_t>&, const std::string&);

Option Command::flag(const std::string& names, bool& value, const std::string& help) {
  return Option(*app_->add_flag(names, value, help));
}
Option Command::find(const std::string& name) {
  return Option(*app_->get_option(name));
}
Command Command::group(const std::string& title) {
  return {*app_->add_option_group(title), *exit_code_};
}
void Command::footer(const std::string& text) {
  app_->footer(text);
}
void Command::runs(std::function<int()> run) {
  app_->callback([run = std::move(run), exit_code = exit_code_] { *exit_code = run(); });
}

App::App(const std::string& help, const std::string& version, const std::string& footer)
    : app_(std::make_unique<CLI::App>(help)) {
  app_->set_version_flag("--version", version);
  app_->footer(footer);
  app_->require_subcommand(1);
}
App::~App() = default;

Command App::add(const std::string& name, const std::string& help) {
  return {*app_->add_subcommand(name, help), exit_code_};
}

int App::run(int argc, char** argv) {
  if (names_no_command(*app_, argc, argv)) {
    fmt::print(stderr, "millrace: no command '{}'; there are: {}\n", argv[1], command_names(*app_));
    return kUsage;
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app_->exit(e) == 0 ? 0 : kUsage;
  }
  return exit_code_;
}

}  // namespace millrace::cli
