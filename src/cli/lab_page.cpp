// millrace lab serve, export-site: the lab's page, live or as files.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/lab.h"
#include "cli/listen.h"
#include "lab/page/page.h"
#include "lab/page/site.h"

namespace millrace::cli {

Result<std::filesystem::path> lab_database(const std::string& db) {
  if (!db.empty()) return std::filesystem::path(db);
  return lab::Store::default_path();
}

namespace {

struct ServeOptions {
  ListenOptions listen;
  std::string db;
};

Result<int> serve_page(const ServeOptions& options) {
  MILLRACE_ASSIGN(const auto database, lab_database(options.db));
  MILLRACE_ASSIGN(serve::Keys keys, read_keys(options.listen));
  const sigset_t signals = block_stop_signals();
  lab::LabPage page({.database = database});
  auto routes = page.routes();
  routes.push_back({"GET", "/", serve::Access::open, [](auto, const auto& reply) {
                      reply->send(307, {{"Location", "lab/"}}, "");
                    }});
  MILLRACE_ASSIGN(
      const auto server,
      serve::HttpServer::start(http_options(options.listen, std::move(keys)), std::move(routes)));
  fmt::print(stderr, "millrace: the lab of {} at {}/lab/\n", printable(database.string()),
             url_of(options.listen, *server));
  int signal = 0;
  sigwait(&signals, &signal);
  page.stop();
  server->stop(1);
  return 0;
}

struct SiteCommand {
  LabOptions lab;
  lab::SiteOptions site;
  std::string folder;
};

int export_site(SiteCommand& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  options.site.folder = options.folder;
  const auto counts = lab::write_site(*notebook, find_machine(), options.site);
  if (!counts.ok()) return fail(counts.status());
  const lab::SiteCounts& c = counts.value();
  if (options.lab.json) {
    print_json(nlohmann::ordered_json{{"folder", options.folder},
                                      {"files", c.n_files},
                                      {"runs", c.n_runs},
                                      {"runs_left_out", c.n_runs_left_out}});
    return 0;
  }
  fmt::print("{} files with {} runs in {}\n", c.n_files, c.n_runs, printable(options.folder));
  if (c.n_runs_left_out > 0)
    fmt::print("{} older runs are in the list without their measurements; --runs takes more\n",
               c.n_runs_left_out);
  fmt::print("To look at it: python3 -m http.server -d {}\n", printable(options.folder));
  return 0;
}

}  // namespace

void add_lab_serve(Command& lab) {
  auto options = std::make_shared<ServeOptions>();
  options->listen.port = 8090;
  Command command = lab.add("serve", "Serve the lab's page alone, without a model");
  command.option("--db", options->db, "Database of the lab (default: the user's own)")
      .type_name("FILE");
  Command http = command.group("HTTP");
  add_listen_options(http, options->listen);
  command.footer("'millrace serve' has the same page at /lab, beside its model.");
  command.runs([options] {
    const auto code = serve_page(*options);
    return code.ok() ? code.value() : fail(code.status());
  });
}

void add_lab_export_site(Command& lab) {
  auto options = std::make_shared<SiteCommand>();
  Command command =
      lab.add("export-site", "Write the lab's page and its data as files for any web server");
  command.option("folder", options->folder, "A new folder, or one with an older site in it")
      .type_name("DIR")
      .required();
  command
      .option("--runs", options->site.most_runs,
              "Write the measurements of so many runs, the newest first")
      .range(0, 1000000)
      .show_default();
  add_lab_options(command, options->lab);
  command.runs([options] { return export_site(*options); });
}

}  // namespace millrace::cli
