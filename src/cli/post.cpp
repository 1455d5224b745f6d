// Below it: draft, lint, publish, retract, list, show.
#include "cli/post.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/lab.h"
#include "lab/notebook/exchange.h"
#include "lab/notebook/json.h"
#include "lab/posts/blog.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct PostOptions {
  LabOptions lab;
  std::vector<std::string> what;
  std::string runs, to, out, why;
  std::string server, model, key, title = "Millrace lab", url, date;
  std::string triage = "rules", write = "template";
  bool fix = false, only_bound = false, rebuild = false;
  int limit = 50;
};

// A folder that goes away with everything in it.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

Status import_file(lab::Notebook& notebook, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::not_found, "cannot read {}", path.string());
  return lab::import_notebook(notebook, file, path.string()).status();
}

// The files of a folder, or one; in the order of their names.
Status import_all(lab::Notebook& notebook, const std::string& from) {
  std::error_code failed;
  if (!fs::is_directory(from, failed)) return import_file(notebook, from);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(from, failed))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  if (failed || files.empty())
    return error(Code::not_found, "{} holds no exports (*.jsonl) of 'millrace lab export'", from);
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) MILLRACE_TRY(import_file(notebook, file));
  return {};
}

// The lab's, or with --runs one of its own that holds those runs and nothing else.
Result<lab::Notebook> open_for(const PostOptions& options, TemporaryFolder& folder,
                               lab::Store::Missing missing) {
  if (options.runs.empty()) return open_notebook(options.lab.db, missing);
  std::string name = (fs::temp_directory_path() / "millrace-post-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    return error(Code::io_error, "cannot create a folder in {}",
                 fs::temp_directory_path().string());
  folder.path = name;
  MILLRACE_ASSIGN(lab::Notebook notebook, lab::Notebook::open(folder.path / "lab.db"));
  MILLRACE_TRY(import_all(notebook, options.runs));
  return notebook;
}

Result<std::string> read_text(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed))
    return error(Code::invalid_argument, "{} is a folder; name the posts in it", path);
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return error(Code::not_found, "'{}' is neither a post of the lab (post:1) nor a file", path);
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_record(const std::string& what) {
  return lab::parse_ref(what).ok();
}

void print_report(const std::string& name, const lab::LintReport& report) {
  for (const lab::Finding& f : report.findings)
    fmt::print("{}{}: {}{}\n", printable(name), f.line > 0 ? fmt::format(":{}", f.line) : "",
               f.is_error ? "" : "note: ", printable(f.what));
  if (report.ok())
    fmt::print("{}: {} numbers, all as the samples give them\n", printable(name), report.n_numbers);
}

Json to_json(const std::string& name, const lab::LintReport& report) {
  Json findings = Json::array(), runs = Json::array();
  for (const lab::Finding& f : report.findings)
    findings.push_back({{"line", f.line}, {"error", f.is_error}, {"what", f.what}});
  for (const lab::RunState& run : report.runs)
    runs.push_back({{"uid", run.line.uid},
                    {"run", run.id},
                    {"imported", run.imported},
                    {"stale", run.stale},
                    {"problem", run.problem}});
  return {{"post", name},
          {"ok", report.ok()},
          {"numbers", report.n_numbers},
          {"findings", findings},
          {"runs", runs}};
}

// Numbers and plots as the samples give them, into the file.
Status fix(lab::Notebook& notebook, const Machine& machine, const std::string& path,
           bool only_bound, std::string& text) {
  MILLRACE_ASSIGN(const std::string filled, lab::fill_numbers(text, notebook, machine, only_bound));
  MILLRACE_ASSIGN(const lab::Document document, lab::read_document(filled, only_bound));
  MILLRACE_ASSIGN(lab::FoundBlock found, lab::find_claims(document));
  MILLRACE_ASSIGN(const lab::Claims claims,
                  lab::Claims::of(std::move(found.block), notebook, machine));
  MILLRACE_ASSIGN(const auto plots, lab::plots_of(document, claims));
  for (const lab::SiteFile& plot : plots)
    MILLRACE_TRY(lab::write_whole(fs::absolute(path).parent_path() / plot.path, plot.text));
  if (filled != text) MILLRACE_TRY(lab::write_whole(path, filled));
  text = filled;
  return {};
}

Result<lab::LintReport> lint_one(lab::Notebook& notebook, const Machine& machine,
                                 const PostOptions& options, const std::string& what) {
  if (is_record(what)) {
    MILLRACE_ASSIGN(const int64_t id, lab::parse_ref(what, "post"));
    MILLRACE_ASSIGN(const lab::Post post, notebook.post(id));
    return lab::lint(post.body, notebook, machine, {});
  }
  MILLRACE_ASSIGN(std::string text, read_text(what));
  if (options.fix) MILLRACE_TRY(fix(notebook, machine, what, options.only_bound, text));
  return lab::lint(text, notebook, machine,
                   {.only_bound = options.only_bound, .plots = fs::absolute(what).parent_path()});
}

int lint(const PostOptions& options) {
  TemporaryFolder folder;
  auto notebook = open_for(options, folder, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const Machine machine = find_machine();
  Json all = Json::array();
  int n_numbers = 0;
  bool ok = true;
  for (const std::string& what : options.what) {
    const auto report = lint_one(*notebook, machine, options, what);
    if (!report.ok()) return fail(report.status());
    ok &= report.value().ok();
    n_numbers += report.value().n_numbers;
    all.push_back(to_json(what, report.value()));
    if (!options.lab.json) print_report(what, report.value());
  }
  if (options.lab.json)
    print_json(all);
  else if (ok && options.what.size() > 1)
    fmt::print("{} files, {} numbers\n", options.what.size(), n_numbers);
  return ok ? 0 : kFailed;
}

void print_candidates(const std::vector<lab::Candidate>& candidates) {
  for (const lab::Candidate& c : candidates)
    fmt::print("{:<5} {:<10} {} ({})\n", c.taken ? "taken" : "left", lab::to_text(c.ref),
               printable(c.text, 70), printable(c.why));
}

Json to_json(const std::vector<lab::Candidate>& candidates) {
  Json out = Json::array();
  for (const lab::Candidate& c : candidates)
    out.push_back({{"id", lab::to_text(c.ref)},
                   {"text", c.text},
                   {"taken", c.taken},
                   {"why", c.why},
                   {"score", c.score}});
  return out;
}

Result<lab::DraftOptions> draft_options(const PostOptions& options) {
  lab::DraftOptions out;
  out.date = options.date.empty() ? utc_now().substr(0, 10) : options.date;
  if (!lab::is_date(out.date))
    return error(Code::invalid_argument, "--date is a day like 2026-11-18");
  const lab::ModelServer server{options.server, options.model, options.key};
  if (options.triage == "model") out.triage = server;
  if (options.write == "model") out.write = server;
  if ((out.triage || out.write) && options.server.empty())
    return error(
        Code::invalid_argument,
        "a model needs a server: --server http://127.0.0.1:8080/v1 (millrace serve is one)");
  return out;
}

Result<std::vector<lab::NodeRef>> refs_of(const std::vector<std::string>& what) {
  std::vector<lab::NodeRef> out;
  for (const std::string& text : what) {
    MILLRACE_ASSIGN(out.emplace_back(), lab::parse_ref(text));
  }
  return out;
}

Result<lab::Drafted> draft_from(lab::Notebook& notebook, const Machine& machine,
                                const PostOptions& options, const std::vector<std::string>& what) {
  MILLRACE_ASSIGN(const auto how, draft_options(options));
  MILLRACE_ASSIGN(const auto refs, refs_of(what));
  return lab::draft_post(notebook, machine, refs, how);
}

int draft(const PostOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto drafted = draft_from(*notebook, find_machine(), options, options.what);
  if (!drafted.ok()) return fail(drafted.status());
  const lab::Drafted& d = drafted.value();
  if (d.post > 0 && !options.out.empty())
    if (const Status status = lab::write_whole(options.out, d.text); !status.ok())
      return fail(status);
  if (options.lab.json) {
    print_json(Json{{"candidates", to_json(d.candidates)},
                    {"post", d.post > 0 ? fmt::format("post:{}", d.post) : ""},
                    {"text", d.text},
                    {"lint", to_json("", d.report)}});
  } else {
    print_candidates(d.candidates);
    if (d.post > 0) {
      const std::string name = fmt::format("post:{}", d.post);
      print_report(name, d.report);
      fmt::print(
          "drafted as {}; read it with 'millrace post show {}', publish it with 'millrace "
          "post publish {} --to FOLDER'\n",
          name, name, name);
    } else {
      fmt::print("nothing was drafted\n");
    }
  }
  return d.post > 0 && d.report.ok() ? 0 : kFailed;
}

// Of the lab, of a file, or drafted now from what was learned.
Result<lab::Published> publish_one(lab::Notebook& notebook, const Machine& machine,
                                   const PostOptions& options, const std::string& what) {
  const lab::SiteOptions site{options.title, options.url, options.rebuild};
  if (!is_record(what)) {
    MILLRACE_ASSIGN(const std::string text, read_text(what));
    auto published = lab::publish_text(notebook, machine, text, options.to, site);
    if (published.ok()) return published;
    return error(published.status().code(), "{}: {}", what, published.status().message());
  }
  MILLRACE_ASSIGN(lab::NodeRef ref, lab::parse_ref(what));
  if (ref.kind != "post") {
    MILLRACE_ASSIGN(const lab::Drafted drafted, draft_from(notebook, machine, options, {what}));
    if (drafted.post == 0)
      return error(Code::unavailable, "{} is not worth a post: {}", what,
                   drafted.candidates[0].why);
    ref.id = drafted.post;
  }
  return lab::publish_post(notebook, machine, ref.id, options.to, site);
}

int publish(const PostOptions& options) {
  TemporaryFolder folder;
  auto notebook = open_for(options, folder, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const Machine machine = find_machine();
  Json all = Json::array();
  for (const std::string& what : options.what) {
    const auto published = publish_one(*notebook, machine, options, what);
    if (!published.ok()) return fail(published.status());
    all.push_back(to_json(what, published.value().report));
    if (!options.lab.json) print_report(what, published.value().report);
    for (const std::string& left : published.value().left_out)
      fmt::print(stderr, "millrace: an imported post is left out: {}\n", printable(left));
    if (!published.value().report.ok()) {
      if (options.lab.json) print_json(all);
      fmt::print(stderr, "millrace: {} was not published\n", printable(what));
      return kFailed;
    }
    if (!options.lab.json)
      fmt::print("post:{} is published; {}/index.html shows it\n", published.value().post,
                 printable(options.to));
  }
  if (options.lab.json) print_json(all);
  return 0;
}

int retract(const PostOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto id = lab::parse_ref(options.what[0], "post");
  if (!id.ok()) return fail(id.status());
  const Status status = lab::retract_post(*notebook, find_machine(), id.value(), options.why,
                                          options.to, {options.title, options.url});
  if (!status.ok()) return fail(status);
  if (options.lab.json)
    print_json(Json{{"post", id.value()}, {"state", "retracted"}});
  else
    fmt::print("post:{} is retracted{}\n", id.value(),
               options.to.empty() ? "; write the site again with --to FOLDER" : "");
  return 0;
}

int list(const PostOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto posts = notebook->posts(0, options.limit);
  if (!posts.ok()) return fail(posts.status());
  Json all = Json::array();
  for (const lab::Post& post : posts.value()) {
    all.push_back(lab::to_json(post));
    all.back().erase("body");
    if (!options.lab.json)
      fmt::print("post:{:<4} {:<10} {} {}\n", post.id, printable(post.state),
                 printable(post.created.substr(0, 10)), printable(post.title, 90));
  }
  if (options.lab.json) print_json(all);
  return 0;
}

int show(const PostOptions& options) {
  auto notebook = open_notebook(options.lab.db, lab::Store::Missing::refuse);
  if (!notebook.ok()) return fail(notebook.status());
  const auto id = lab::parse_ref(options.what[0], "post");
  if (!id.ok()) return fail(id.status());
  const auto post = notebook->post(id.value());
  if (!post.ok()) return fail(post.status());
  const auto report = lab::lint(post.value().body, *notebook, find_machine(), {});
  if (!report.ok()) return fail(report.status());
  if (options.lab.json) {
    Json document = lab::to_json(post.value());
    document["lint"] = to_json(options.what[0], report.value());
    print_json(document);
    return 0;
  }
  std::string text;
  for (const char c : post.value().body) text += c == '\n' ? std::string("\n") : std::string(1, c);
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    fmt::print("{}\n", printable(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  fmt::print("\n({}, {} findings of the linter: 'millrace post lint {}')\n",
             printable(post.value().state), report.value().findings.size(),
             printable(options.what[0]));
  return 0;
}

void add_site_options(Command& command, PostOptions& options) {
  command.option("--title", options.title, "Title of the site").show_default();
  command.option("--url", options.url, "Where the site will be found, for links in the feeds")
      .type_name("URL");
}

void add_model_options(Command& command, PostOptions& options) {
  command.option("--server", options.server, "A server of OpenAI's API, for a model: its base URL")
      .type_name("URL");
  command.option("--model", options.model, "Model to ask for (default: the server's own)")
      .type_name("NAME");
  command.option("--key", options.key, "API key of the server; better in the environment")
      .type_name("KEY");
  command.option("--triage", options.triage, "Who decides what is worth telling")
      .one_of({"rules", "model"})
      .show_default();
  command.option("--write", options.write, "Who writes the text")
      .one_of({"template", "model"})
      .show_default();
  command.settings("MILLRACE_POST");
}

void add_draft(Command& post) {
  auto options = std::make_shared<PostOptions>();
  Command command = post.add("draft", "Write a post about learnings, hypotheses or runs");
  command
      .option("what", options->what,
              "What it is about: learn:1, hyp:2, run:3 (default: the best learning that no post "
              "tells)")
      .type_name("ID");
  command.option("-o,--out", options->out, "Also write the Markdown to this file")
      .type_name("FILE");
  command.option("--date", options->date, "Date of the post (default: today)").type_name("DAY");
  add_model_options(command, *options);
  add_lab_options(command, options->lab);
  command.footer(
      "First it decides what is worth telling and prints why, then it writes. A model may only "
      "place a number by naming its claim; digits of its own fail the linter.");
  command.runs([options] { return draft(*options); });
}

void add_lint(Command& post) {
  auto options = std::make_shared<PostOptions>();
  Command command = post.add("lint", "Compute every number of posts again from the stored samples");
  command.option("what", options->what, "Posts: post:1, or Markdown files")
      .type_name("POST")
      .required();
  command
      .option("--runs", options->runs,
              "Exports (a file, or a folder of *.jsonl) to compute from instead of the lab's "
              "database")
      .type_name("PATH");
  command.flag("--fix", options->fix,
               "Write numbers ({{NAME}}, or out of date) and plots into the files first");
  command.flag("--only-bound", options->only_bound,
               "The files are no posts: check the numbers that are bound, and nothing else");
  add_lab_options(command, options->lab);
  command.footer(
      "A number is bound by the name of its claim behind it, 62.1 us<!--=nine-->, and the claims "
      "block at the end of the post says where it comes from; docs/lab.md explains it. Exit code "
      "1: some number is not what the samples give.");
  command.runs([options] { return lint(*options); });
}

void add_publish(Command& post) {
  auto options = std::make_shared<PostOptions>();
  Command command = post.add("publish", "Lint posts strictly and write them to a static site");
  command
      .option("what", options->what,
              "Posts: post:1, Markdown files, or learn:1 to draft and publish at once")
      .type_name("POST")
      .required();
  command.option("--to", options->to, "Folder of the site").type_name("FOLDER").required();
  command.option("--runs", options->runs, "Exports to compute from instead of the lab's database")
      .type_name("PATH");
  command.flag("--rebuild", options->rebuild,
               "Take the word of files that say 'published: true': their evidence may be out of "
               "date by now, which is printed");
  command.option("--date", options->date, "Date of a post drafted now (default: today)")
      .type_name("DAY");
  add_site_options(command, *options);
  add_model_options(command, *options);
  add_lab_options(command, options->lab);
  command.footer(
      "Evidence that is gone, changed, stale or ambiguous refuses to be published; imported runs "
      "are marked. The site has an index, a page a post, feed.xml (Atom), feed.json, and the "
      "Markdown as Jekyll wants it.");
  command.runs([options] { return publish(*options); });
}

void add_retract(Command& post) {
  auto options = std::make_shared<PostOptions>();
  Command command = post.add("retract", "Mark a published post as wrong; it stays, with a note");
  options->what.resize(1);
  command.option("post", options->what[0], "The post, as post:1 or 1").type_name("POST").required();
  command.option("--why", options->why, "What is wrong with it").type_name("TEXT").required();
  command.option("--to", options->to, "Folder of the site to write again").type_name("FOLDER");
  add_site_options(command, *options);
  add_lab_options(command, options->lab);
  command.runs([options] { return retract(*options); });
}

void add_list(Command& post) {
  auto options = std::make_shared<PostOptions>();
  Command command = post.add("list", "List posts, newest first");
  command.option("--limit", options->limit, "At most N").range(1, 10000).show_default();
  add_lab_options(command, options->lab);
  command.runs([options] { return list(*options); });
}

void add_show(Command& post) {
  auto options = std::make_shared<PostOptions>();
  options->what.resize(1);
  Command command = post.add("show", "Print a post's Markdown and what the linter says");
  command.option("post", options->what[0], "The post, as post:1 or 1").type_name("POST").required();
  add_lab_options(command, options->lab);
  command.runs([options] { return show(*options); });
}

}  // namespace

void add_post(App& app) {
  Command post = app.add("post", "Posts about what the lab learned, with every number recomputed");
  add_draft(post);
  add_lint(post);
  add_publish(post);
  add_retract(post);
  add_list(post);
  add_show(post);
}

}  // namespace millrace::cli
