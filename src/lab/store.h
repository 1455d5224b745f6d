// The record of runs: one SQLite file with every sample, the machine, the build and the ceilings.
// A case is one transaction, so what was measured before a Ctrl-C, a crash or a full disk stays. A
// file that is damaged, foreign or of a newer schema is left as it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/row.h"

struct sqlite3;

namespace millrace::lab {

struct RunHead {
  std::string device, machine, machine_json, commit, build_json, command;
};

struct RunSummary {
  int64_t id = 0;
  std::string started, ended, state;  // running, done, interrupted, failed
  std::string device, machine, commit, command;
  int64_t n_results = 0;
};

class Store {
 public:
  enum class Missing { make, refuse };  // the file, its folder and its tables
  static Result<Store> open(const std::filesystem::path& path, Missing missing = Missing::make);
  // $XDG_DATA_HOME/millrace/lab.db, or below $HOME/.local/share.
  static Result<std::filesystem::path> default_path();

  Result<int64_t> begin_run(const RunHead& head);
  Status add_ceilings(int64_t run, std::string_view when, const std::string& json);
  Status add_rows(int64_t run, const std::vector<Row>& rows);
  Status end_run(int64_t run, std::string_view state);

  Result<std::vector<RunSummary>> runs(int limit);  // newest first
  Result<RunSummary> run(int64_t id);
  // With all samples. The columns that depend on ceilings are as they were stored.
  Result<std::vector<Row>> rows(int64_t run);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  Status open_file(Missing missing);
  Status prepare_schema(Missing missing);

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

}  // namespace millrace::lab
