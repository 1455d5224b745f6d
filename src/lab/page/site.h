// The page with its data as files: a folder that any plain file server can show.
#pragma once

#include <filesystem>

#include "lab/notebook/notebook.h"

namespace millrace::lab {

struct SiteOptions {
  std::filesystem::path folder;
  int64_t most_runs = 1000;  // with all that was measured; older ones are in the list alone
};

struct SiteCounts {
  int64_t n_files = 0, n_runs = 0, n_runs_left_out = 0;
};

// Writes into a folder that is empty, missing, or has an older site in it.
Result<SiteCounts> write_site(Notebook& notebook, const Machine& machine,
                              const SiteOptions& options);

}  // namespace millrace::lab
