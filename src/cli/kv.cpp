// millrace kv: the contexts that servers keep on disk.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/kv_folder.h"
#include "engine/disk/survey.h"

namespace millrace::cli {
namespace {

struct Options {
  std::string action = "show", folder = default_kv_folder(), model;
  bool json = false;
};

std::string time_text(int64_t seconds) {
  if (seconds == 0) return "-";
  const time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string name_of(const disk::FolderFacts& one) {
  return one.model.empty() ? one.name.substr(0, 8) : printable(one.model, 40);
}

bool is_wanted(const disk::FolderFacts& one, const std::string& model) {
  return model.empty() || one.model == model || one.name.starts_with(model);
}

void print_json(const std::vector<disk::FolderFacts>& folders) {
  auto list = nlohmann::ordered_json::array();
  for (const disk::FolderFacts& one : folders)
    list.push_back({{"model", one.model},
                    {"root", one.name},
                    {"bytes", one.bytes},
                    {"records", one.n_records},
                    {"tokens", one.n_tokens},
                    {"damaged", one.n_damaged},
                    {"oldest", one.oldest_s},
                    {"newest", one.newest_s},
                    {"in_use", one.is_held}});
  cli::print_json(list);
}

void print_table(const std::vector<disk::FolderFacts>& folders) {
  size_t width = 5;
  for (const disk::FolderFacts& one : folders) width = std::max(width, name_of(one).size());
  fmt::print("{:<{}}  {:>10}  {:>8}  {:>10}  {:<16}  {:<16}  {:<8}  {}\n", "model", width, "size",
             "records", "tokens", "oldest (UTC)", "newest (UTC)", "root", "state");
  for (const disk::FolderFacts& one : folders)
    fmt::print("{:<{}}  {:>10}  {:>8}  {:>10}  {:<16}  {:<16}  {:<8}  {}{}\n", name_of(one), width,
               size_text(one.bytes), one.n_records, one.n_tokens, time_text(one.oldest_s),
               time_text(one.newest_s), one.name.substr(0, 8),
               one.is_held ? "a server uses it" : "",
               one.n_damaged > 0 ? fmt::format(" {} damaged", one.n_damaged) : "");
}

Result<int> show(const Options& options) {
  MILLRACE_ASSIGN(auto folders, disk::survey(options.folder));
  std::erase_if(folders, [&](const auto& one) { return !is_wanted(one, options.model); });
  if (options.json) {
    print_json(folders);
    return 0;
  }
  if (folders.empty())
    fmt::print("no contexts in '{}'; 'millrace serve' writes them there\n",
               printable(options.folder));
  else
    print_table(folders);
  return 0;
}

Result<int> clear(const Options& options) {
  MILLRACE_ASSIGN(const auto folders, disk::survey(options.folder));
  int code = 0, n = 0;
  for (const disk::FolderFacts& one : folders) {
    if (!is_wanted(one, options.model)) continue;
    ++n;
    if (const Status removed = disk::remove_folder(options.folder, one.name); removed.ok()) {
      fmt::print("removed {} of contexts of {}\n", size_text(one.bytes), name_of(one));
    } else {
      fmt::print(stderr, "millrace: {} stays: {}{}\n", name_of(one), removed.message(),
                 one.is_held ? "; stop that server first" : "");
      code = kFailed;
    }
  }
  if (n == 0 && !options.model.empty())
    return error(Code::not_found, "no contexts of '{}' in '{}'; 'millrace kv' lists them",
                 options.model, options.folder);
  if (n == 0) fmt::print("no contexts in '{}'\n", printable(options.folder));
  return code;
}

}  // namespace

void add_kv(App& app) {
  auto options = std::make_shared<Options>();
  Command command = app.add("kv", "Show or clear the contexts that servers keep on disk");
  command.footer(
      "A server writes the KV pages of its contexts to disk, so that a conversation goes on after "
      "a pause or a restart without being computed again. There is a folder for each model and "
      "way of computing (root); a record is a page of up to 64 tokens. Contexts hold what was said "
      "in them: the folder is readable by you alone. 'serve --kv-disk off' keeps none, a request "
      "with \"prompt_cache_retention\": \"in-memory\" stays off the disk, and 'millrace kv clear' "
      "removes them.");
  command.option("action", options->action, "show, or clear: remove the contexts")
      .one_of({"show", "clear"})
      .show_default();
  command.option("--kv-disk", options->folder, "Folder that the server was given")
      .type_name("DIR")
      .show_default();
  command.option("-m,--model", options->model, "Only this model, by its name or root");
  command.flag("--json", options->json, "Print JSON");
  command.runs([options] {
    const auto code = options->action == "clear" ? clear(*options) : show(*options);
    return code.ok() ? code.value() : fail(code.status());
  });
}

}  // namespace millrace::cli
