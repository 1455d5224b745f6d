// millrace lab export, import: the notebook as JSON lines.
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/lab.h"
#include "lab/notebook/exchange.h"

namespace millrace::cli {
namespace {

struct ExchangeOptions {
  LabOptions lab;
  std::string file;                // to write
  std::vector<std::string> files;  // to read
};

// To the file beside its final name, so that a full disk leaves no half export behind.
class ExportFile {
 public:
  explicit ExportFile(const std::string& name) : name_(name), part_(name + ".part") {
    file_ = name.empty() ? stdout : std::fopen(part_.c_str(), "wb");
  }
  ~ExportFile() {
    if (file_ == nullptr || file_ == stdout) return;
    std::fclose(file_);
    std::remove(part_.c_str());
  }
  ExportFile(const ExportFile&) = delete;
  ExportFile& operator=(const ExportFile&) = delete;

  Status write(std::string_view line) {
    if (file_ != nullptr && std::fwrite(line.data(), 1, line.size(), file_) == line.size())
      return {};
    return failure();
  }
  Status finish() {
    if (file_ == nullptr || std::fflush(file_) != 0) return failure();
    if (file_ == stdout) return {};
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (closed && std::rename(part_.c_str(), name_.c_str()) == 0) return {};
    const Status status = failure();
    std::remove(part_.c_str());
    return status;
  }

 private:
  Status failure() const {
    return error(Code::io_error, "cannot write {}: {}", name_.empty() ? "the output" : name_,
                 std::strerror(errno));
  }
  std::string name_, part_;
  std::FILE* file_ = nullptr;
};

int export_all(const ExchangeOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  ExportFile file(options.file);
  const auto exported =
      lab::export_notebook(*notebook, [&](std::string_view line) { return file.write(line); });
  if (!exported.ok()) return fail(exported.status());
  if (const Status status = file.finish(); !status.ok()) return fail(status);
  for (const std::string& what : exported.value().left_out)
    fmt::print(stderr, "millrace: left out {}\n", printable(what));
  if (options.file.empty()) return 0;
  if (options.lab.json)
    print_json(nlohmann::ordered_json{{"file", options.file},
                                      {"records", exported.value().n_records},
                                      {"left_out", exported.value().left_out}});
  else
    fmt::print("{} records in {}\n", exported.value().n_records, printable(options.file));
  return 0;
}

Result<lab::Imported> import_file(lab::Notebook& notebook, const std::string& name) {
  if (name == "-") return lab::import_notebook(notebook, std::cin, "the input");
  std::error_code failure;
  if (std::filesystem::is_directory(name, failure))
    return error(Code::invalid_argument, "{} is a folder", name);
  std::ifstream file(name, std::ios::binary);
  if (!file) return error(Code::not_found, "cannot read {}: {}", name, std::strerror(errno));
  return lab::import_notebook(notebook, file, name);
}

int import_all(const ExchangeOptions& options) {
  for (const std::string& name : options.files)  // before a database is made for nothing
    if (name != "-" && access(name.c_str(), R_OK) != 0)
      return fail(error(Code::not_found, "cannot read {}: {}", name, std::strerror(errno)));
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::make);
  if (!notebook.ok()) return fail(notebook.status());
  lab::Imported all;
  for (const std::string& name : options.files) {
    auto imported = import_file(*notebook, name);
    if (!imported.ok()) return fail(imported.status());
    all.n_runs += imported->n_runs;
    all.n_others += imported->n_others;
    all.n_known += imported->n_known;
  }
  if (options.lab.json)
    print_json(nlohmann::ordered_json{
        {"runs", all.n_runs}, {"others", all.n_others}, {"known", all.n_known}});
  else
    fmt::print("{} runs and {} other records imported, {} were here already\n", all.n_runs,
               all.n_others, all.n_known);
  return 0;
}

}  // namespace

void add_lab_export(Command& lab) {
  auto options = std::make_shared<ExchangeOptions>();
  Command command = lab.add("export", "Write the whole notebook as JSON lines");
  command.option("file", options->file, "The file (default: standard output)").type_name("FILE");
  add_lab_options(command, options->lab);
  command.runs([options] { return export_all(*options); });
}

void add_lab_import(Command& lab) {
  auto options = std::make_shared<ExchangeOptions>();
  Command command =
      lab.add("import", "Read what 'lab export' wrote, checked; all of a file or nothing of it");
  command.option("file", options->files, "Files; - for standard input")
      .type_name("FILE")
      .required();
  add_lab_options(command, options->lab);
  command.footer(
      "Digests of runs, outcomes of verdicts and values of claims are computed again and must "
      "agree. What comes in is marked imported for good.");
  command.runs([options] { return import_all(*options); });
}

}  // namespace millrace::cli
