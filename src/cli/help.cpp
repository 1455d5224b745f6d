#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

namespace millrace::cli {
namespace {

constexpr size_t kLineColumns = 80;
constexpr size_t kMostLeftColumns = 28;  // a longer left side has a line of its own
constexpr size_t kIndent = 2, kGap = 2;
constexpr char kFixedSpace = '\x1f';  // no line breaks there

struct Entry {
  std::string left, right;
};

std::vector<std::string> wrap(std::string_view text, size_t columns) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > columns)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  for (std::string& line : lines) std::replace(line.begin(), line.end(), kFixedSpace, ' ');
  return lines;
}

std::string paragraph(std::string_view text) {
  return fmt::format("{}\n", fmt::join(wrap(text, kLineColumns), "\n"));
}

size_t left_columns(const std::vector<Entry>& entries) {
  size_t columns = 0;
  for (const Entry& entry : entries)
    if (entry.left.size() <= kMostLeftColumns) columns = std::max(columns, entry.left.size());
  return columns;
}

std::string section(std::string_view title, const std::vector<Entry>& entries, size_t columns) {
  if (entries.empty()) return "";
  std::string out = fmt::format("\n{}:\n", title);
  const size_t right_at = kIndent + columns + kGap;
  for (const Entry& entry : entries) {
    out += fmt::format("{:{}}{:<{}}", "", kIndent, entry.left, columns + kGap);
    if (entry.left.size() > columns) out += fmt::format("\n{:{}}", "", right_at);
    const auto lines = wrap(entry.right, kLineColumns - right_at);
    for (size_t i = 0; i < lines.size(); ++i)
      out += i == 0 ? lines[i] : fmt::format("\n{:{}}{}", "", right_at, lines[i]);
    out += '\n';
  }
  return out;
}

// What stands for a value, unless a command named it.
std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "INT" || type == "UINT") return "N";
  return type == "FLOAT" ? "X" : type;
}

std::string default_text(const CLI::Option& option) {
  std::string text = option.get_default_str();
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return text.empty() ? "" : fmt::format(" (default:{}{})", kFixedSpace, text);
}

Entry option_entry(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string left =
      fmt::format("{}{}", option.get_snames().empty() ? "    " : "", fmt::join(names, ", "));
  if (option.get_type_size() != 0) left += " " + value_name(option);
  return {left, option.get_description() + default_text(option)};
}

std::string argument_name(const CLI::Option& option) {
  const std::string type = value_name(option);
  return type == "TEXT" ? option.get_name(true) : type;
}

Entry argument_entry(const CLI::Option& option) {
  return {argument_name(option), option.get_description() + default_text(option)};
}

bool is_group(const CLI::App& app) {
  return app.get_parent() != nullptr && app.get_name().empty();
}

// The command's own help option comes last.
std::vector<Entry> options_of(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : app.get_options())
    if (option->nonpositional() && option != app.get_help_ptr())
      entries.push_back(option_entry(*option));
  if (!is_group(app)) entries.push_back({"-h, --help", "Print this help"});
  return entries;
}

// One that has an option's name too is described there.
std::vector<Entry> arguments_of(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && !option->nonpositional())
      entries.push_back(argument_entry(*option));
  return entries;
}

std::vector<Entry> commands_of(const CLI::App& app) {
  std::vector<Entry> entries;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    if (!is_group(*command)) entries.push_back({command->get_name(), command->get_description()});
  return entries;
}

std::string usage_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* at = &app; at->get_parent() != nullptr; at = at->get_parent())
    names = " " + at->get_name() + names;
  std::string out = "Usage: millrace" + names;
  if (!commands_of(app).empty()) return out + " COMMAND [OPTIONS]\n";
  out += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = argument_name(*option);
    const bool repeats =
        option->get_items_expected_max() > 1 && name.find(' ') == std::string::npos;
    const bool bare = option->get_required() || name.starts_with('[');
    const std::string shown = name + (repeats ? " ..." : "");
    out += bare ? " " + shown : fmt::format(" [{}]", shown);
  }
  return out + "\n";
}

}  // namespace

std::string help_text(const CLI::App& app) {
  const auto arguments = arguments_of(app), options = options_of(app), commands = commands_of(app);
  std::vector<Entry> all = arguments;
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), commands.begin(), commands.end());
  std::string groups;
  for (const CLI::App* group : app.get_subcommands(nullptr))
    for (Entry& entry : is_group(*group) ? options_of(*group) : std::vector<Entry>())
      all.push_back(std::move(entry));
  const size_t columns = left_columns(all);
  for (const CLI::App* group : app.get_subcommands(nullptr))
    if (is_group(*group)) groups += section(group->get_group(), options_of(*group), columns);
  std::string out = paragraph(app.get_description()) + "\n" + usage_of(app);
  out += section("Arguments", arguments, columns) + section("Commands", commands, columns) +
         section("Options", options, columns) + groups;
  if (!app.get_footer().empty()) out += "\n" + paragraph(app.get_footer());
  return out;
}

}  // namespace millrace::cli
