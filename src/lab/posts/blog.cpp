#include "lab/posts/blog.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "lab/posts/number_scan.h"
#include "lab/posts/plot.h"
#include "lab/posts/scrub.h"
#include "lab/posts/template.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

constexpr int kMostPosts = 10000;

Result<Claims> claims_in(const Document& document, Notebook& notebook, const Machine& machine) {
  MILLRACE_ASSIGN(FoundBlock found, find_claims(document));
  return Claims::of(std::move(found.block), notebook, machine);
}

// As it stands on the site: with its plots, and with what is known of its runs.
Result<SitePost> site_post(const std::string& slug, const std::string& text, Notebook& notebook,
                           const Machine& machine) {
  SitePost out{.slug = slug};
  MILLRACE_ASSIGN(out.document, parse_document(text));
  // A part of a file's name: the text may come from elsewhere.
  if (const std::string date = out.document.text("date"); !is_date(date))
    return error(Code::corrupt, "'{}' is no date like 2026-11-18", printable(date, 40));
  MILLRACE_ASSIGN(const Claims claims, claims_in(out.document, notebook, machine));
  // A retracted post keeps its words also where its evidence is gone.
  if (!out.is_retracted()) {
    MILLRACE_ASSIGN(out.plots, plots_of(out.document, claims));
  }
  for (const RunState& run : claims.runs()) {
    if (!run.problem.empty() && !out.is_retracted())
      return error(Code::unavailable,
                   "the post '{}' rests on evidence that is gone: {}; retract it with 'millrace "
                   "post retract', or bring the run back",
                   slug, run.problem);
    out.runs.push_back({.line = run.line,
                        .id = run.id,
                        .head = run.head,
                        .stale = run.stale,
                        .imported = run.imported});
  }
  return out;
}

// All of it is computed again, except that of a retracted post.
Result<SitePost> checked_post(const Post& post, Notebook& notebook, const Machine& machine) {
  MILLRACE_ASSIGN(SitePost out, site_post(post.slug, post.body, notebook, machine));
  if (out.is_retracted()) return out;
  MILLRACE_ASSIGN(const LintReport report, lint(post.body, notebook, machine, {}));
  for (const Finding& found : report.findings)
    if (found.is_error)
      return error(Code::unavailable,
                   "post:{} ('{}') is no longer what its runs give: {}; correct it and publish it "
                   "again, or retract it with 'millrace post retract'",
                   post.id, post.slug, found.what);
  return out;
}

// Posts that others wrote came in without being looked at; one of them that is wrong is left out.
Result<std::vector<SitePost>> public_posts(Notebook& notebook, const Machine& machine,
                                           int64_t except, std::vector<std::string>& left_out) {
  std::vector<SitePost> out;
  MILLRACE_ASSIGN(const auto posts, notebook.posts(0, kMostPosts));
  for (const Post& post : posts) {
    if (post.state == "draft" || post.id == except) continue;
    auto shown = checked_post(post, notebook, machine);
    if (shown.ok())
      out.push_back(*std::move(shown));
    else if (post.origin.empty())
      return shown.status();
    else
      left_out.emplace_back(shown.status().message());
  }
  return out;
}

// The runs whose evidence was held against the present when this post was published.
Result<std::set<int64_t>> told_by(Notebook& notebook, int64_t post, const Document& document,
                                  bool is_rebuilt) {
  std::set<int64_t> out;  // of a new post (0) none
  MILLRACE_ASSIGN(const auto edges, notebook.edges_at({"post", post}));
  for (const Edge& edge : edges)
    if (edge.type == "used_in" && edge.from.kind == "run" && edge.origin.empty())
      out.insert(edge.from.id);
  if (!is_rebuilt || !document.is_true("published")) return out;
  MILLRACE_ASSIGN(const FoundBlock found, find_claims(document));
  for (const RunLine& line : found.block.runs)
    if (const auto run = notebook.store().run_of_uid(line.uid); run.ok()) out.insert(run.value());
  return out;
}

// What the post's measurements are, for whoever asks a run what it is used for.
Status note_claims(Notebook& notebook, const Machine& machine, int64_t post,
                   const Document& document) {
  MILLRACE_ASSIGN(const Claims claims, claims_in(document, notebook, machine));
  MILLRACE_ASSIGN(const auto known, notebook.claims_of(post));
  for (const ClaimLine& line : claims.block().claims) {
    const Metric* m = claims.metric_of(line.name);
    if (m == nullptr) continue;
    Claim claim;
    claim.post = post;
    claim.run = claims.run(line.pattern.run)->id;
    claim.text = line.name;
    claim.subject = m->subject;
    claim.metric = m->name;
    claim.statistic = line.statistic;
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const Claim& c) {
      return c.run == claim.run && c.subject == claim.subject && c.metric == claim.metric &&
             c.statistic == claim.statistic;
    });
    if (!is_known) MILLRACE_TRY(notebook.add(claim).status());
  }
  for (const RunState& run : claims.runs()) {
    MILLRACE_ASSIGN(const auto told, posts_about(notebook, {"run", run.id}));
    if (std::find(told.begin(), told.end(), post) != told.end()) continue;
    Edge edge;
    edge.from = {"run", run.id};
    edge.to = {"post", post};
    edge.type = "used_in";
    MILLRACE_TRY(notebook.add(edge).status());
  }
  return {};
}

Status note_topics(Notebook& notebook, int64_t post, const std::vector<Candidate>& taken) {
  for (const Candidate& c : taken) {
    if (c.ref.kind == "run") continue;
    MILLRACE_ASSIGN(const auto told, posts_about(notebook, c.ref));
    if (std::find(told.begin(), told.end(), post) != told.end()) continue;
    Edge edge;
    edge.from = c.ref;
    edge.to = {"post", post};
    edge.type = "used_in";
    MILLRACE_TRY(notebook.add(edge).status());
  }
  return {};
}

std::vector<std::string> errors_of(const LintReport& report) {
  std::vector<std::string> out;
  for (const Finding& f : report.findings)
    if (f.is_error && out.size() < 20) out.push_back(f.what);
  return out;
}

// By the model, which is told once what the linter refused; else by the template.
Result<std::string> write_text(Notebook& notebook, const Machine& machine, const Material& material,
                               const DraftOptions& options) {
  if (!options.write)
    return fill_numbers(to_text(write_plainly(material, options.date)), notebook, machine);
  MILLRACE_ASSIGN(const Claims claims, Claims::of(material.block, notebook, machine));
  std::vector<std::string> problems;
  std::string text;
  for (int i = 0; i < 2; ++i) {
    MILLRACE_ASSIGN(const Document document,
                    write_by_model(*options.write, material, claims, options.date, problems));
    MILLRACE_ASSIGN(text, fill_numbers(to_text(document), notebook, machine));
    MILLRACE_ASSIGN(const LintReport report, lint(text, notebook, machine, {}));
    problems = errors_of(report);
    if (problems.empty()) break;
  }
  return text;
}

// A draft under the same title is written anew; what was published stays as it is.
Result<int64_t> keep_draft(Notebook& notebook, const Document& document, const std::string& text) {
  Post post;
  post.slug = slug_of(document);
  post.title = document.text("title");
  post.body = text;
  const auto known = notebook.post_named(post.slug);
  if (known.status().code() == Code::not_found) return notebook.add(post);
  MILLRACE_TRY(known.status());
  if (known.value().state != "draft")
    return error(Code::unavailable,
                 "post:{} is {} under the same title: edit its Markdown and publish the file, or "
                 "retract it",
                 known.value().id, known.value().state);
  MILLRACE_TRY(notebook.set_post_text(known.value().id, post.title, text));
  return known.value().id;
}

// Linted first, then shown, then kept: what is refused changes neither notebook nor site.
Result<Published> publish(Notebook& notebook, const Machine& machine, Post post,
                          const std::filesystem::path& folder, const SiteOptions& options) {
  Published out{.post = post.id, .report = {}};
  MILLRACE_TRY(check(post));
  MILLRACE_ASSIGN(Document document, parse_document(post.body));
  LintOptions how{.strict = true};
  MILLRACE_ASSIGN(how.told, told_by(notebook, post.id, document, options.is_rebuilt));
  MILLRACE_ASSIGN(out.report, lint(post.body, notebook, machine, how));
  if (!out.report.ok()) return out;
  document.set("published", "true", true);
  post.body = to_text(document);
  post.state = document.find("retracted") == nullptr ? "published" : "retracted";
  MILLRACE_ASSIGN(auto posts, public_posts(notebook, machine, post.id, out.left_out));
  MILLRACE_ASSIGN(posts.emplace_back(), site_post(post.slug, post.body, notebook, machine));
  const auto files = build_site(std::move(posts), options);
  MILLRACE_TRY(write_site(folder, files));
  out.n_files = files.size();
  MILLRACE_ASSIGN(out.post, notebook.keep(post));
  MILLRACE_TRY(note_claims(notebook, machine, out.post, document));
  return out;
}

}  // namespace

Result<std::vector<SiteFile>> plots_of(const Document& document, const Claims& claims) {
  std::vector<SiteFile> out;
  for (const PlotLine& plot : claims.block().plots) {
    MILLRACE_ASSIGN(std::string drawn, draw_plot(plot, claims));
    out.push_back({plot_file(document, plot), std::move(drawn)});
  }
  return out;
}

Result<Drafted> draft_post(Notebook& notebook, const Machine& machine,
                           const std::vector<NodeRef>& refs, const DraftOptions& options) {
  Drafted out;
  MILLRACE_ASSIGN(out.candidates, triage(notebook, machine, refs));
  if (options.triage) MILLRACE_TRY(triage_by_model(*options.triage, out.candidates));
  std::vector<Candidate> taken;
  for (const Candidate& c : out.candidates)
    if (c.taken) taken.push_back(c);
  if (taken.empty() || (!refs.empty() && taken.size() < refs.size())) return out;
  if (refs.empty()) taken.resize(1);
  MILLRACE_ASSIGN(const Material material, gather(notebook, taken));
  MILLRACE_ASSIGN(out.text, write_text(notebook, machine, material, options));
  MILLRACE_ASSIGN(out.report, lint(out.text, notebook, machine, {}));
  MILLRACE_ASSIGN(const Document document, parse_document(out.text));
  MILLRACE_ASSIGN(out.post, keep_draft(notebook, document, out.text));
  MILLRACE_TRY(note_topics(notebook, out.post, taken));
  return out;
}

Result<Published> publish_post(Notebook& notebook, const Machine& machine, int64_t id,
                               const std::filesystem::path& folder, const SiteOptions& options) {
  MILLRACE_ASSIGN(Post post, notebook.post(id));
  return publish(notebook, machine, std::move(post), folder, options);
}

Result<Published> publish_text(Notebook& notebook, const Machine& machine, const std::string& text,
                               const std::filesystem::path& folder, const SiteOptions& options) {
  MILLRACE_ASSIGN(const Document document, parse_document(text));
  auto known = notebook.post_named(slug_of(document));
  if (!known.ok() && known.status().code() != Code::not_found) return known.status();
  Post post = known.ok() ? *std::move(known) : Post{};
  post.slug = slug_of(document);
  post.title = document.text("title");
  post.body = text;
  return publish(notebook, machine, std::move(post), folder, options);
}

Status retract_post(Notebook& notebook, const Machine& machine, int64_t id, const std::string& why,
                    const std::filesystem::path& folder, const SiteOptions& options) {
  MILLRACE_TRY(check_text("the reason", why));
  MILLRACE_ASSIGN(const Post post, notebook.post(id));
  if (post.state == "draft")
    return error(Code::invalid_argument, "post:{} was never published", id);
  MILLRACE_ASSIGN(Document document, parse_document(post.body));
  document.set("retracted", without_numbers(code_text(why)), false);
  const std::string text = to_text(document);
  if (!folder.empty()) {
    std::vector<std::string> left_out;  // publishing tells of them
    MILLRACE_ASSIGN(auto posts, public_posts(notebook, machine, id, left_out));
    MILLRACE_ASSIGN(posts.emplace_back(), site_post(post.slug, text, notebook, machine));
    MILLRACE_TRY(write_site(folder, build_site(std::move(posts), options)));
  }
  MILLRACE_TRY(notebook.set_post_text(id, post.title, text));
  return notebook.set_post_state(id, "retracted");
}

}  // namespace millrace::lab
