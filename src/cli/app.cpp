#include "cli/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <type_traits>
#include <utility>

#include "cli/commands.h"
#include "cli/help.h"

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

// Of the innermost command that the line names.
std::string error_text(const CLI::ParseError& e, const CLI::App& command) {
  const std::string text = e.what();
  if (text == "A subcommand is required")
    return fmt::format("{} needs one of its commands: {}", command.get_name(),
                       command_names(command));
  if (dynamic_cast<const CLI::ExtrasError*>(&e) == nullptr) return text;
  return "unexpected argument" + text.substr(std::min(text.find(": "), text.size()));
}

// Validators without a name of their own, which the help would show.
CLI::Validator check_that(std::function<std::string(const std::string&)> check) {
  return {[check = std::move(check)](std::string& value) { return check(value); }, ""};
}

// Whole numbers are decimal: to the parser's own reading 010 would be 8.
template <class T>
std::string read_whole(std::string& text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [read, fault] = std::from_chars(text.data(), end, value);
  if (fault == std::errc::result_out_of_range && read == end)
    return fmt::format("{} is too large", text);
  if (fault != std::errc() || read != end)
    return fmt::format("'{}' is not a whole number{}", text,
                       std::is_signed_v<T> ? "" : " from 0 up");
  text = std::to_string(value);
  return "";
}

std::string check_real(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [read, fault] = std::from_chars(text.data(), end, value);
  return fault == std::errc() && read == end ? "" : fmt::format("'{}' is not a number", text);
}

template <class T>
struct Element {
  using type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using type = T;
};

// Says what is wrong with a number in better words than the parser's.
template <class T>
void check_numbers(CLI::Option& option) {
  using Value = typename Element<T>::type;
  if constexpr (std::is_integral_v<Value>)
    option.transform(CLI::Validator(read_whole<Value>, ""));
  else if constexpr (std::is_floating_point_v<Value>)
    option.check(check_that(check_real));
}

template <class T>
CLI::Validator in_range(T least, T most) {
  return check_that([least, most](const std::string& text) -> std::string {
    T value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (value >= least && value <= most) return "";
    if (most == std::numeric_limits<T>::max())
      return fmt::format("{} is too small; the least is {}", text, least);
    return fmt::format("{} is out of range; it must be from {} to {}", text, least, most);
  });
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
  option_->check(in_range(least, most));
  return *this;
}
Option& Option::at_least(int64_t least) {
  return range(least, std::numeric_limits<int64_t>::max());
}
Option& Option::rewrite(std::function<std::string(std::string&)> rewrite) {
  option_->transform(CLI::Validator(std::move(rewrite), ""));
  return *this;
}
Option& Option::real_range(double least, double most) {
  option_->check(in_range(least, most));
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(check_that([values](const std::string& text) -> std::string {
    if (std::find(values.begin(), values.end(), text) != values.end()) return "";
    return fmt::format("'{}' is not one of {}", text, fmt::join(values, ", "));
  }));
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
  CLI::Option* option = app_->add_option(names, value, help);
  check_numbers<T>(*option);
  return Option(*option);
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
Command Command::add(const std::string& name, const std::string& help) {
  CLI::App* command = app_->add_subcommand(name, help);
  command->footer("");
  app_->require_subcommand(1);
  return {*command, *exit_code_};
}
Command Command::group(const std::string& title) {
  return {*app_->add_option_group(title), *exit_code_};
}
namespace {

// The options of a command and of its groups.
std::vector<CLI::Option*> all_options(CLI::App& app) {
  std::vector<CLI::Option*> out = app.get_options();
  for (CLI::App* group : app.get_subcommands(nullptr))
    for (CLI::Option* option : group->get_options()) out.push_back(option);
  return out;
}

std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::string variable_of(const std::string& prefix, const std::string& long_name) {
  std::string out = prefix + "_";
  for (const char c : long_name)
    out += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// A line of the file becomes the option's variable, where that is not set already: so the parser
// reads both.
void Command::settings(const std::string& prefix) {
  std::vector<std::string> names;
  for (CLI::Option* option : all_options(*app_)) {
    if (long_name(*option).empty() || long_name(*option) == "help") continue;
    names.push_back(long_name(*option));
    option->envname(variable_of(prefix, names.back()));
  }
  const auto read = [prefix, names](const std::string& path) -> std::string {
    std::ifstream file(path);
    std::string line;
    for (int n = 1; std::getline(file, line); ++n) {
      const std::string_view text = trimmed(line);
      if (text.empty() || text.front() == '#') continue;
      const size_t equals = text.find('=');
      const std::string key(trimmed(text.substr(0, equals)));
      if (equals == std::string_view::npos)
        return fmt::format("{}:{}: expected 'option = value'", path, n);
      if (std::find(names.begin(), names.end(), key) == names.end())
        return fmt::format("{}:{}: no option '{}'; a key is an option's long name, like 'port'",
                           path, n, key);
      setenv(variable_of(prefix, key).c_str(),
             std::string(trimmed(text.substr(equals + 1))).c_str(), 0);
    }
    return file.eof() ? "" : fmt::format("cannot read the settings file '{}'", path);
  };
  app_->add_option_function<std::string>(
          "--config",
          [read](const std::string& path) {
            if (const std::string fault = read(path); !fault.empty())
              throw CLI::ValidationError(fault);
          },
          fmt::format("File of settings, a line each: option = value. Every option also has a "
                      "variable, like {}",
                      variable_of(prefix, names.front())))
      ->type_name("FILE")
      ->trigger_on_parse();
}

void Command::footer(const std::string& text) {
  app_->footer(text);
}
void Command::runs(std::function<int()> run) {
  app_->callback([run = std::move(run), exit_code = exit_code_] { *exit_code = run(); });
}

App::App(const std::string& help, const std::string& version, const std::string& footer)
    : app_(std::make_unique<CLI::App>(help)) {
  app_->set_version_flag("--version", version, "Print the version");
  app_->footer(footer);
  app_->require_subcommand(1);
  app_->formatter_fn(
      [](const CLI::App* app, const std::string&, CLI::AppFormatMode) { return help_text(*app); });
}
App::~App() = default;

Command App::add(const std::string& name, const std::string& help) {
  CLI::App* command = app_->add_subcommand(name, help);
  command->footer("");  // and not the program's
  return {*command, exit_code_};
}

int App::run(int argc, char** argv) {
  if (argc < 2 || names_no_command(*app_, argc, argv)) {
    const std::string what =
        argc < 2 ? "no command given" : fmt::format("no command '{}'", argv[1]);
    fmt::print(stderr, "millrace: {}; the commands are {} ('millrace --help' explains them)\n",
               what, command_names(*app_));
    return kUsage;
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app_->exit(e);
    std::string names;
    const CLI::App* command = app_.get();
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      names += command->get_name() + " ";
    }
    fmt::print(stderr, "millrace: {}\nRun 'millrace {}--help' for help.\n", error_text(e, *command),
               names);
    return kUsage;
  }
  return exit_code_;
}

}  // namespace millrace::cli
