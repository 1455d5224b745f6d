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

// The file named, or the user's own when the name is empty.
Result<lab::Store> open_store(const std::string& path);
// "run:12" or "12".
Result<int64_t> parse_run(std::string_view text);

class Recorder {
 public:
  Status begin(const std::string& path, const lab::Target& target, const Machine& machine);
  void add_ceilings(std::string_view when, const lab::Roof& roof);
  void add_rows(const std::vector<lab::Row>& rows);
  void end(std::string_view state);

  int64_t id() const { return id_; }  // 0: not recording
  const Status& status() const { return status_; }

 private:
  std::optional<lab::Store> store_;
  int64_t id_ = 0;
  Status status_;
};

}  // namespace millrace::cli
