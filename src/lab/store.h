// The record of runs: one SQLite file with every sample, the machine, the build and the ceilings.
// A case is one transaction, so what was measured before a Ctrl-C, a crash or a full disk stays. A
// run that ends is sealed by a digest of all of it; after that it does not change. A file that is
// damaged, foreign or of a newer schema is left as it is; one of an older schema is brought up to
// date. What is thought about runs is in lab/notebook.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/metric.h"
#include "lab/row.h"

struct sqlite3;

namespace millrace::lab {

struct RunHead {
  std::string device, machine, machine_json, commit, build_json, command;
  std::string kind = "op";  // of what is measured: see Subject
  std::optional<int64_t> experiment = {};
};

struct RunSummary {
  int64_t id = 0;
  std::string started, ended;
  std::string state;  // running, done, failed, or interrupted: also when its process is gone
  std::string device, machine, commit, command;
  int64_t n_results = 0;
  std::string kind, uid, digest;  // no digest: the run has not ended
  std::string origin;             // empty: measured here; else where it was imported from
  std::optional<int64_t> experiment = {};

  bool is_sealed() const { return !digest.empty(); }
};

struct StoredCeilings {
  std::string at, when, json;
};

// All of a run: what is exported, and what its digest is of.
struct RunRecord {
  RunSummary head;
  std::string machine_json, build_json;
  std::vector<StoredCeilings> ceilings;
  std::vector<Metric> metrics;
};

struct RunFilter {
  std::string name = {};   // of an op, a model, ...: those that measured it
  int64_t before = 0;      // a run: older ones; 0: from the newest
  int64_t experiment = 0;  // those of one
  int limit = 20;
};

class Store {
 public:
  enum class Missing { make, refuse };  // the file, its folder and its tables
  static Result<Store> open(const std::filesystem::path& path, Missing missing = Missing::make);
  // For those that only look, beside others that write: nothing is made, migrated or changed.
  static Result<Store> open_to_read(const std::filesystem::path& path);
  // $XDG_DATA_HOME/millrace/lab.db, or below $HOME/.local/share.
  static Result<std::filesystem::path> default_path();

  Result<int64_t> begin_run(const RunHead& head);
  Status add_ceilings(int64_t run, std::string_view when, const std::string& json);
  Status add_rows(int64_t run, const std::vector<Row>& rows);
  Status add_metrics(int64_t run, const std::vector<Metric>& metrics);
  Status end_run(int64_t run, std::string_view state);  // and seals it

  Result<std::vector<RunSummary>> runs(const RunFilter& filter);  // newest first
  Result<std::vector<RunSummary>> runs(int limit) { return runs({.limit = limit}); }
  Result<RunSummary> run(int64_t id);
  // By the first digits of its uid, eight at least: the name that it has in every database.
  Result<int64_t> run_of_uid(std::string_view digits);
  // With all samples. Shares of ceilings are as they were stored.
  Result<std::vector<Row>> rows(int64_t run);
  Result<std::vector<Metric>> metrics(int64_t run);
  Result<RunRecord> record(int64_t run);
  // Empty when a sealed run still is what its digest says; else what is wrong with it as evidence.
  Result<std::string> problem_of(int64_t run);
  // As it is, with its digest, which the caller has checked; inside the caller's transaction.
  Result<int64_t> insert_record(const RunRecord& record, std::optional<int64_t> experiment);

  // For the other tables of the same file.
  sqlite3* connection() const { return db_.get(); }
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  Status open_file(Missing missing);
  Status prepare_schema(Missing missing);
  Status insert_metrics(int64_t run, const std::vector<Metric>& metrics);
  Status seal(int64_t run);
  Status seal_ended();
  Status add_event(std::string_view type, int64_t run, std::string_view text);

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

}  // namespace millrace::lab
