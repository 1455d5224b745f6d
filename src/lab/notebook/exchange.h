// The whole notebook as JSON lines, and back. Every line is one record that names others by uid, in
// an order in which each names only those before it; the last line counts them, so a file that was
// cut off is known. An import is all or nothing: digests of runs, outcomes of verdicts and values
// of claims are computed again and must agree, and what came in is marked imported.
#pragma once

#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "lab/notebook/notebook.h"

namespace millrace::lab {

struct Exported {
  int64_t n_records = 0;
  std::vector<std::string> left_out;  // and why: runs that still run, records without evidence
};
// `write` gets a line at a time, with its newline.
Result<Exported> export_notebook(Notebook& notebook,
                                 const std::function<Status(std::string_view line)>& write);

struct Imported {
  int64_t n_runs = 0, n_others = 0, n_known = 0;  // n_known: were here before
};
// `name` is what errors call the text.
Result<Imported> import_notebook(Notebook& notebook, std::istream& text, const std::string& name);

}  // namespace millrace::lab
