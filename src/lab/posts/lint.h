// The linter of posts: every number in the text is one that the stored samples give today. Digits
// in prose, tables, titles and captions count; dates, names (AVX2, q8_0), section numbers, list
// numbers and code spans that name what was measured do not. It also refuses what must not leave
// the machine, markup that could run or hide something, and plots that the samples do not draw.
// Of a text that is no post, a README or a decision note, it looks at the bound numbers alone.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lab/posts/claims.h"
#include "lab/posts/document.h"

namespace millrace::lab {

struct Finding {
  int line = 0;  // of the file; 0: of the post as a whole
  bool is_error = true;
  std::string what;
};

struct LintOptions {
  // Stale evidence is an error too: what publishing asks for.
  bool strict = false;
  std::set<int64_t> told = {};  // but not of these runs: it was fresh when they were published
  bool only_bound = false;      // the text is no post
  // Where the plots lie, to be held against the samples; empty: they are not looked at.
  std::filesystem::path plots = {};
};

struct LintReport {
  std::vector<Finding> findings;
  int n_numbers = 0;  // bound ones in the text
  std::vector<RunState> runs;

  bool ok() const;
  int n_errors() const;
  bool is_imported() const;  // some of the evidence
  bool is_stale() const;
};

// `text` is the whole file. An error is one of the store; all that is wrong with the post is in the
// report.
Result<LintReport> lint(std::string_view text, Notebook& notebook, const Machine& machine,
                        const LintOptions& options);

// The text with every {{NAME}} made a bound number, and numbers already bound brought up to date.
Result<std::string> fill_numbers(std::string_view text, Notebook& notebook, const Machine& machine,
                                 bool only_bound = false);

// A post, or with only_bound any text that has a claims block, which is all body.
Result<Document> read_document(std::string_view text, bool only_bound);

// "SLUG-PLOT.svg": what a post calls the file of a plot.
std::string plot_file(const Document& document, const PlotLine& plot);
std::string slug_of(const Document& document);  // of its title

}  // namespace millrace::lab
