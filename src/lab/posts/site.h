// The static site of published posts: an index, a page each, feeds in Atom and JSON, plots, and the
// Markdown as Jekyll wants it. No script, no outside host. Files are written beside their names and
// moved into place, pages before what links to them: a crash leaves the old site or the new one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/posts/claims.h"
#include "lab/posts/document.h"

namespace millrace::lab {

struct SiteFile {
  std::string path, text;  // relative
};

struct SitePost {
  std::string slug;
  Document document = {};
  std::vector<SiteFile> plots = {};  // by their names
  std::vector<RunState> runs = {};   // behind it; metrics are not needed

  bool is_retracted() const { return document.find("retracted") != nullptr; }
};

struct SiteOptions {
  std::string title = "Millrace lab";
  std::string url;  // of the site, for feeds; empty: links are relative
  // Made from exports, where no notebook knows what was published: a post's own word counts.
  bool is_rebuilt = false;
};

// Newest first; the files in the order in which they are to be written.
std::vector<SiteFile> build_site(std::vector<SitePost> posts, const SiteOptions& options);

Status write_site(const std::filesystem::path& folder, const std::vector<SiteFile>& files);
// One file, whole or not at all, with the folders above it.
Status write_whole(const std::filesystem::path& path, std::string_view text);

}  // namespace millrace::lab
