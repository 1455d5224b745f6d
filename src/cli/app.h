// The command line in our own words. CLI11, which reads it, is known to app.cpp and help.cpp alone:
// it would cost every other file seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace millrace::cli {

// An option, a flag or a positional argument.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  Option& show_default();  // in the help: the value the variable has now
  Option& type_name(const std::string& name);
  Option& range(int64_t least, int64_t most);
  Option& at_least(int64_t least);
  // Gives a value another form before it is read, or says what is wrong with it.
  Option& rewrite(std::function<std::string(std::string& value)> rewrite);
  Option& real_range(double least, double most);
  Option& one_of(const std::vector<std::string>& values);
  Option& excludes(const Option& other);
  Option& delimiter(char c);  // of several values in one argument
  Option& n_values(int n);
  Option& one_value_each();  // of a list: the option is repeated for each of them
  Option& take_all();        // when it is repeated

 private:
  CLI::Option* option_;
};

class Command {
 public:
  Command(CLI::App& app, int& exit_code) : app_(&app), exit_code_(&exit_code) {}

  // `names` as "-t,--threads", or a bare word for a positional. T is a string, a number or a vector
  // of them: those that app.cpp names.
  template <class T>
  Option option(const std::string& names, T& value, const std::string& help);
  Option flag(const std::string& names, bool& value, const std::string& help);
  Option find(const std::string& name);
  Command add(const std::string& name, const std::string& help);  // a command below this one
  Command group(const std::string& title);  // of options, under a title of their own
  // Every option so far can also come from an environment variable, PREFIX_LONG_NAME, and all of
  // them from a file of `long-name = value` lines, given with --config. The command line wins over
  // the environment, and that over the file.
  void settings(const std::string& prefix);
  void footer(const std::string& text);
  // What runs when the command was asked for, and gives the program's exit code.
  void runs(std::function<int()> run);

 private:
  CLI::App* app_;
  int* exit_code_;
};

class App {
 public:
  App(const std::string& help, const std::string& version, const std::string& footer);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  Command add(const std::string& name, const std::string& help);
  // Runs the command that the line names; help, version and errors are printed here. The exit code.
  int run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  int exit_code_ = 0;
};

// The variable that stands for an option: MILLRACE_SERVE and "--kv-memory" give
// MILLRACE_SERVE_KV_MEMORY.
std::string variable_of(const std::string& prefix, const std::string& long_name);

}  // namespace millrace::cli
