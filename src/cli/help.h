// The help of the program and of its commands: usage, arguments and options in two columns.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace millrace::cli {

std::string help_text(const CLI::App& app);

}  // namespace millrace::cli
