// Measurements over all runs, as tables and plots ask for them: the newest first, filtered, a page
// at a time. Every question is an index walk with a limit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lab/store.h"

namespace millrace::lab {

struct ResultFilter {
  int64_t run = 0;      // of one run, in its order; 0: of all
  int64_t subject = 0;  // of one subject, by its id
  // Empty: any. Name and metric are exact, the others shell patterns.
  std::string name = {}, metric = {}, problem = {}, variant = {}, mode = {};
  int64_t before = 0;  // a measurement: those that come after it in the list; 0: from the newest
  int limit = 50;

  bool has_patterns() const { return !(problem.empty() && variant.empty() && mode.empty()); }
};

// [{"id", "run", "subject", "name", ..., "value", "lo", "hi", "gbps", ...}, ...]
Result<nlohmann::ordered_json> read_results(Store& store, const ResultFilter& filter);

// Samples of the measurements of a run, as stored: [{"id", "samples", "twin"}, ...], those after
// `after`, with at most `most` values in all.
Result<nlohmann::ordered_json> read_samples(Store& store, int64_t run, int64_t after, int64_t most);

// What was measured: every name with its kind and number of runs; the subjects of one name.
Result<nlohmann::ordered_json> read_names(Store& store);
Result<nlohmann::ordered_json> read_subjects(Store& store, const std::string& name, int limit);

}  // namespace millrace::lab
