// What the commands share about stored runs: opening the store, naming a run, and recording one
// while it is measured. The first failure to store is kept; measuring goes on without.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/store.h"

namespace millrace::cli {

// The file named, or the user's own when the name is empty; one that is to be read must exist.
Result<lab::Store> open_store(const std::string& path, lab::Store::Missing missing);
// "run:12" or "12".
Result<int64_t> parse_run(std::string_view text);

// Where a run goes and what it was asked for as.
struct Recording {
  std::string db = {};       // empty: the user's own
  std::string command = {};  // the command line
  bool no_store = false;
  // Of 'lab run': the run is an experiment on this hypothesis.
  int64_t hypothesis = 0;
  std::string role = {};  // candidate or baseline
};

class Recorder {
 public:
  // kind: of what is measured, as lab::Subject has it.
  Status begin(const Recording& recording, std::string_view kind, std::string_view device,
               const Machine& machine);
  void add_ceilings(std::string_view when, const lab::Roof& roof);
  void add_rows(const std::vector<lab::Row>& rows);
  void add_metrics(const std::vector<lab::Metric>& metrics);
  void end(std::string_view state);
  // Says on stderr when the run was not stored whole, else (`say`) under which number it was.
  bool report(bool say) const;

  int64_t id() const { return id_; }  // 0: not recording
  const Status& status() const { return status_; }

 private:
  std::optional<lab::Store> store_;
  int64_t id_ = 0;
  Status status_;
};

}  // namespace millrace::cli
