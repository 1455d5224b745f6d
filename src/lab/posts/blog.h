// Posts from beginning to end: drafted from what the notebook knows, linted, published, retracted.
// What is published passed the strict linter at that moment; its claims and what it was written
// about are noted in the notebook.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/posts/lint.h"
#include "lab/posts/model_writer.h"
#include "lab/posts/site.h"
#include "lab/posts/triage.h"

namespace millrace::lab {

struct DraftOptions {
  std::string date;                          // "2026-11-18"
  std::optional<ModelServer> triage, write;  // by a model; else by rules and by a template
};

struct Drafted {
  std::vector<Candidate> candidates;  // all that were looked at
  int64_t post = 0;                   // 0: none of them was worth a post
  std::string text;
  LintReport report;
};
// A post about what is named, all in one; without names, about the best learning that no post
// tells.
Result<Drafted> draft_post(Notebook& notebook, const Machine& machine,
                           const std::vector<NodeRef>& refs, const DraftOptions& options);

struct Published {
  int64_t post = 0;   // 0: it was not published, and the notebook has none of that name
  LintReport report;  // of the post; where it has errors nothing was published
  size_t n_files = 0;
  std::vector<std::string> left_out = {};  // imported posts that are not fit to be shown, and why
};
// Writes the site with this post and all that were published before into `folder`.
Result<Published> publish_post(Notebook& notebook, const Machine& machine, int64_t post,
                               const std::filesystem::path& folder, const SiteOptions& options);
// The same of a file's text: a new post, or another text for the one of that title. A text that is
// refused leaves no trace in the notebook.
Result<Published> publish_text(Notebook& notebook, const Machine& machine, const std::string& text,
                               const std::filesystem::path& folder, const SiteOptions& options);
// Keeps the post, with a note, and takes it out of the feeds; writes the site where a folder is
// named.
Status retract_post(Notebook& notebook, const Machine& machine, int64_t post,
                    const std::string& why, const std::filesystem::path& folder,
                    const SiteOptions& options);

// The plots of a post, drawn.
Result<std::vector<SiteFile>> plots_of(const Document& document, const Claims& claims);

}  // namespace millrace::lab
