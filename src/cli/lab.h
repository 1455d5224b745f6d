// The commands below 'millrace lab': the notebook of hypotheses, runs, verdicts and learnings. What
// others wrote (a hypothesis, a command line, a file's text) is shown on one line without control
// characters.
#pragma once

#include <filesystem>
#include <string>

#include "cli/app.h"
#include "lab/notebook/notebook.h"

namespace millrace::cli {

// The file named, or the user's own.
Result<std::filesystem::path> lab_database(const std::string& db);
Result<lab::Notebook> open_notebook(const std::string& db, lab::Store::Missing missing);

// --db and --json, which every command of the lab has.
struct LabOptions {
  std::string db;
  bool json = false;
};
void add_lab_options(Command& command, LabOptions& options);

void add_lab_hypothesis(Command& lab);
void add_lab_run(Command& lab, const std::string& command_line);
void add_lab_verdict(Command& lab);
void add_lab_learn(Command& lab);
void add_lab_show(Command& lab);
void add_lab_log(Command& lab);
void add_lab_graph(Command& lab);
void add_lab_export(Command& lab);
void add_lab_import(Command& lab);
void add_lab_cliffs(Command& lab, const std::string& command_line);
void add_lab_serve(Command& lab);
void add_lab_export_site(Command& lab);

}  // namespace millrace::cli
