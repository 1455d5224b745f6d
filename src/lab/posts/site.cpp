#include "lab/posts/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_text.h"
#include "hub/download.h"
#include "lab/posts/html.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

constexpr std::string_view kCss = R"css(:root{color-scheme:light dark;--text:#1c2733;--dim:#52616f;
--page:#fdfdfc;--line:#d9dfe4;--code:#eef1f4;--link:#0b6bcb;--warn:#fff3d6}
@media(prefers-color-scheme:dark){:root{--text:#e3e9ef;--dim:#9fb0bf;--page:#14191e;--line:#333e48;
--code:#1f272e;--link:#5db0ff;--warn:#3d3216}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:46rem;background:var(--page);color:var(--text);
font:1.05rem/1.6 system-ui,sans-serif}
a{color:var(--link)}h1{line-height:1.2;margin:.5rem 0}h2{margin-top:2.2rem;line-height:1.3}
header nav,footer,.dim{color:var(--dim);font-size:.9rem}
code{background:var(--code);border-radius:4px;padding:.1em .3em;font-size:.9em;overflow-wrap:anywhere}
pre{background:var(--code);border-radius:6px;padding:.8rem 1rem;overflow-x:auto}
pre code{background:none;padding:0;overflow-wrap:normal}
table{border-collapse:collapse;display:block;overflow-x:auto;margin:1rem 0}
th,td{border-bottom:1px solid var(--line);padding:.35rem .8rem .35rem 0;text-align:left}
td{font-variant-numeric:tabular-nums}img{max-width:100%;height:auto}
blockquote,.note{border-left:4px solid var(--line);margin:1rem 0;padding:.2rem 1rem}
.note{background:var(--warn)}.posts{list-style:none;padding:0}.posts li{margin:1.4rem 0}
footer{border-top:1px solid var(--line);margin-top:3rem;padding-top:1rem}
)css";

std::string page(std::string_view title, std::string_view up, const SiteOptions& options,
                 std::string_view content) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'self' "
      "'unsafe-inline'; img-src 'self'\">\n"
      "<title>{0}</title>\n<link rel=\"stylesheet\" href=\"{1}style.css\">\n"
      "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"{1}feed.xml\" title=\"{2}\">\n"
      "<link rel=\"alternate\" type=\"application/feed+json\" href=\"{1}feed.json\" "
      "title=\"{2}\">\n"
      "</head>\n<body>\n<header><nav><a href=\"{1}index.html\">{2}</a></nav></header>\n"
      "<main>\n{3}</main>\n<footer>Every number here is computed from stored samples: "
      "<code>millrace post lint</code> does it again. <a href=\"{1}feed.xml\">Atom</a>, "
      "<a href=\"{1}feed.json\">JSON Feed</a>.</footer>\n</body>\n</html>\n",
      html_escape(title), up, html_escape(options.title), content);
}

std::string notes_of(const SitePost& post) {
  std::string out;
  const auto note = [&](const std::string& text) {
    out += "<p class=\"note\">" + html_escape(text) + "</p>\n";
  };
  if (post.is_retracted()) note("Retracted: " + post.document.text("retracted"));
  for (const RunState& run : post.runs) {
    if (run.imported)
      note(
          fmt::format("Run {} was imported: it was not measured on the machine that published "
                      "this.",
                      run.line.uid));
    if (!run.stale.empty())
      note(fmt::format("Run {} is out of date: {}.", run.line.uid, run.stale));
  }
  return out;
}

// Where each number comes from, for who wants to measure it again.
std::string evidence_of(const SitePost& post) {
  std::string out;
  for (const RunState& run : post.runs)
    out += fmt::format("<li>Run <code>{}</code>, {}: {}<br><code>{}</code></li>\n",
                       html_escape(run.line.uid), html_escape(run.head.started.substr(0, 10)),
                       html_escape(scrubbed(run.head.machine)),
                       html_escape(scrubbed(run.head.command)));
  return out.empty() ? "" : "<h2>Evidence</h2>\n<ul>\n" + out + "</ul>\n";
}

std::string post_page(const SitePost& post, const SiteOptions& options) {
  const Document& d = post.document;
  const std::string content =
      fmt::format("<article>\n<h1>{}</h1>\n<p class=\"dim\">{}{}</p>\n{}{}{}</article>\n",
                  html_escape(d.text("title")), html_escape(d.text("date")),
                  d.text("author").empty() ? "" : ", " + html_escape(d.text("author")),
                  notes_of(post), html_of(d.body), evidence_of(post));
  return page(d.text("title"), "../", options, content);
}

std::string index_page(const std::vector<SitePost>& posts, const SiteOptions& options) {
  std::string list;
  for (const SitePost& post : posts)
    list += fmt::format(
        "<li><a href=\"posts/{}.html\">{}</a>{}<br><span class=\"dim\">{}. {}</span></li>\n",
        post.slug, html_escape(post.document.text("title")),
        post.is_retracted() ? " (retracted)" : "", html_escape(post.document.text("date")),
        html_escape(post.document.text("excerpt")));
  return page(options.title, "", options,
              fmt::format("<h1>{}</h1>\n<ul class=\"posts\">\n{}</ul>\n",
                          html_escape(options.title), list));
}

// A name that stays the same wherever the site lies.
std::string uuid_of(const std::string& name) {
  const std::string h = hash128(name);
  return fmt::format("urn:uuid:{}-{}-{}-{}-{}", h.substr(0, 8), h.substr(8, 4), h.substr(12, 4),
                     h.substr(16, 4), h.substr(20, 12));
}

std::string base_of(const SiteOptions& options) {
  if (options.url.empty() || options.url.ends_with('/')) return options.url;
  return options.url + "/";
}

std::string moment_of(const SitePost& post) {
  return post.document.text("date") + "T00:00:00Z";
}

std::string atom_feed(const std::vector<SitePost>& posts, const SiteOptions& options) {
  const std::string base = base_of(options);
  std::string updated = "1970-01-01T00:00:00Z", entries;
  for (const SitePost& post : posts) {
    if (post.is_retracted()) continue;
    updated = std::max(updated, moment_of(post));
    const Document& d = post.document;
    entries += fmt::format(
        "<entry>\n<id>{}</id>\n<title>{}</title>\n<updated>{}</updated>\n"
        "<link rel=\"alternate\" type=\"text/html\" href=\"{}posts/{}.html\"/>\n"
        "<summary>{}</summary>\n<content type=\"html\">{}</content>\n</entry>\n",
        uuid_of("millrace post " + post.slug), html_escape(d.text("title")), moment_of(post),
        html_escape(base), post.slug, html_escape(d.text("excerpt")), html_escape(html_of(d.body)));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n"
      "<id>{}</id>\n<title>{}</title>\n<updated>{}</updated>\n<author><name>{}</name></author>\n"
      "<link rel=\"self\" type=\"application/atom+xml\" href=\"{}feed.xml\"/>\n{}</feed>\n",
      uuid_of("millrace site " + options.title), html_escape(options.title), updated,
      html_escape(options.title), html_escape(base), entries);
}

std::string json_feed(const std::vector<SitePost>& posts, const SiteOptions& options) {
  using Json = nlohmann::ordered_json;
  const std::string base = base_of(options);
  Json items = Json::array();
  for (const SitePost& post : posts) {
    if (post.is_retracted()) continue;
    const Document& d = post.document;
    const FrontLine* tags = d.find("tags");
    items.push_back({{"id", uuid_of("millrace post " + post.slug)},
                     {"url", base + "posts/" + post.slug + ".html"},
                     {"title", d.text("title")},
                     {"summary", d.text("excerpt")},
                     {"content_html", html_of(d.body)},
                     {"date_published", moment_of(post)},
                     {"tags", tags == nullptr ? std::vector<std::string>() : tags->items}});
  }
  Json feed = {{"version", "https://jsonfeed.org/version/1.1"}, {"title", options.title}};
  if (!base.empty()) {
    feed["home_page_url"] = base;
    feed["feed_url"] = base + "feed.json";
  }
  feed["items"] = std::move(items);
  return json_text(feed, 2) + "\n";
}

}  // namespace

std::vector<SiteFile> build_site(std::vector<SitePost> posts, const SiteOptions& options) {
  std::sort(posts.begin(), posts.end(), [](const SitePost& a, const SitePost& b) {
    return std::pair(b.document.text("date"), a.slug) < std::pair(a.document.text("date"), b.slug);
  });
  std::vector<SiteFile> out = {{"style.css", std::string(kCss)}};
  for (const SitePost& post : posts) {
    for (const SiteFile& plot : post.plots) {
      out.push_back({"posts/" + plot.path, plot.text});
      out.push_back({"_posts/" + plot.path, plot.text});
    }
    out.push_back({"posts/" + post.slug + ".html", post_page(post, options)});
    out.push_back({fmt::format("_posts/{}-{}.md", post.document.text("date"), post.slug),
                   to_text(post.document)});
  }
  out.push_back({"index.html", index_page(posts, options)});
  out.push_back({"feed.xml", atom_feed(posts, options)});
  out.push_back({"feed.json", json_feed(posts, options)});
  return out;
}

Status write_whole(const std::filesystem::path& name, std::string_view text) {
  const std::filesystem::path path = std::filesystem::absolute(name);
  MILLRACE_TRY(make_folder(path.parent_path().string()));
  const std::string part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    const Status status =
        error(Code::io_error, "cannot write {}: {}", path.string(), std::strerror(errno));
    std::remove(part.c_str());
    return status;
  }
  return move_into_place(part, path.string());
}

Status write_site(const std::filesystem::path& folder, const std::vector<SiteFile>& files) {
  for (const SiteFile& file : files) MILLRACE_TRY(write_whole(folder / file.path, file.text));
  return {};
}

}  // namespace millrace::lab
