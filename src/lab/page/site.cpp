#include "lab/page/site.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "lab/page/documents.h"
#include "lab/page/web_files.h"
#include "lab/posts/scrub.h"

namespace millrace::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostListed = 20000;              // of each list: 10 MB of JSON
constexpr const char* kMark = "millrace-lab-site";  // a file that says whose folder it is

// A site goes to others: what somebody typed has paths, and at times keys, of this machine in it.
void scrub_typed(Json& json) {
  constexpr std::array<std::string_view, 6> kTyped = {"command", "text",  "rationale",
                                                      "scope",   "title", "body"};
  for (auto& [key, value] : json.items()) {
    const bool is_typed = std::find(kTyped.begin(), kTyped.end(), key) != kTyped.end();
    if (value.is_structured())
      scrub_typed(value);
    else if (is_typed && value.is_string())
      value = scrubbed(value.get<std::string>());
  }
}

class SiteWriter {
 public:
  SiteWriter(Notebook& notebook, const Machine& machine, const SiteOptions& options)
      : notebook_(notebook), machine_(machine), options_(options) {}

  Result<SiteCounts> write() {
    MILLRACE_TRY(prepare());
    MILLRACE_TRY(write_page());
    MILLRACE_TRY(copy("overview"));
    MILLRACE_TRY(copy("names"));
    MILLRACE_TRY(copy("subjects", "limit=1000"));
    MILLRACE_TRY(copy("graph", "limit=200"));
    MILLRACE_TRY(write_runs());
    MILLRACE_TRY(write_list("results", nullptr));
    MILLRACE_TRY(write_list("experiments", nullptr));
    MILLRACE_TRY(write_list("learnings", nullptr));
    MILLRACE_TRY(write_list("events", nullptr));
    MILLRACE_TRY(write_list(
        "hypotheses", [this](const Json& item) { return copy("hypothesis/" + number_of(item)); }));
    MILLRACE_TRY(
        write_list("posts", [this](const Json& item) { return copy("post/" + number_of(item)); }));
    return counts_;
  }

 private:
  // "hyp:3": "3".
  static std::string number_of(const Json& item) {
    const std::string id = item["id"].get<std::string>();
    return id.substr(id.find(':') + 1);
  }

  Status prepare() {
    std::error_code failure;
    const bool is_ours = fs::exists(options_.folder / kMark, failure);
    if (!is_ours && fs::exists(options_.folder, failure) && !fs::is_empty(options_.folder, failure))
      return error(Code::invalid_argument,
                   "{} has other files in it: name a new folder, or one with an older site",
                   options_.folder.string());
    fs::create_directories(options_.folder / "data", failure);
    if (failure)
      return error(Code::io_error, "cannot create {}: {}", (options_.folder / "data").string(),
                   failure.message());
    return put(kMark, "The files here are made by 'millrace lab export-site'.\n");
  }

  Status put(const std::string& name, std::string_view bytes) {
    const fs::path path = options_.folder / name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return error(Code::io_error, "cannot write {}: is the disk full?", path.string());
    ++counts_.n_files;
    return {};
  }

  // The page as it is, told that its data are files.
  Status write_page() {
    for (const serve::WebFile& file : web_files()) {
      std::string bytes(file.bytes);
      constexpr std::string_view kHtml = "<html lang=\"en\"";
      if (file.path == "/index.html")
        bytes.insert(bytes.find(kHtml) + kHtml.size(),
                     fmt::format(" data-static=\"{}\"", utc_now()));
      MILLRACE_TRY(put(std::string(file.path.substr(1)), bytes));
    }
    return {};
  }

  Result<Json> ask(const std::string& path, const std::string& query = "") {
    MILLRACE_ASSIGN(const Params params, Params::parse(query));
    return read_document(notebook_, machine_, path, params);
  }
  // "run/12" becomes data/run-12.json.
  Status put_document(std::string path, Json document) {
    scrub_typed(document);
    std::replace(path.begin(), path.end(), '/', '-');
    return put("data/" + path + ".json", json_text(document));
  }
  Status copy(const std::string& path, const std::string& query = "") {
    MILLRACE_ASSIGN(Json document, ask(path, query));
    if (path == "overview") document["database"] = "";  // a path of this machine
    return put_document(path, std::move(document));
  }

  // All pages of a list in one file.
  Status write_list(const std::string& name, const std::function<Status(const Json&)>& each) {
    Json all = Json::array(), next = 0;
    while (!next.is_null() && std::ssize(all) < kMostListed) {
      MILLRACE_ASSIGN(Json page,
                      ask(name, fmt::format("limit=500&before={}", next.get<int64_t>())));
      for (Json& item : page["items"]) {
        if (each) MILLRACE_TRY(each(item));
        all.push_back(std::move(item));
      }
      next = page["next"];
    }
    return put_document(name, Json{{"items", std::move(all)}, {"next", Json()}});
  }

  Status write_runs() {
    return write_list("runs", [this](const Json& item) -> Status {
      if (counts_.n_runs >= options_.most_runs) {
        ++counts_.n_runs_left_out;
        return {};
      }
      ++counts_.n_runs;
      MILLRACE_TRY(copy("run/" + number_of(item)));
      return copy("samples/" + number_of(item));
    });
  }

  Notebook& notebook_;
  const Machine& machine_;
  const SiteOptions& options_;
  SiteCounts counts_;
};

}  // namespace

Result<SiteCounts> write_site(Notebook& notebook, const Machine& machine,
                              const SiteOptions& options) {
  return SiteWriter(notebook, machine, options).write();
}

}  // namespace millrace::lab
