#include "lab/posts/lint.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "base/utf8.h"
#include "lab/posts/number_scan.h"
#include "lab/posts/plot.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

constexpr std::string_view kMarkBegin = "<!--=", kMarkEnd = "-->";

// One pass over a post. `rest_` is the body with everything that was looked at made blank, so that
// what is left at the end is what nobody accounts for.
class Linter {
 public:
  Linter(const Document& document, const LintOptions& options)
      : document_(document), options_(options), rest_(document.body) {}

  Status run(Notebook& notebook, const Machine& machine) {
    auto found = find_claims(document_);
    if (!found.ok()) {
      add(0, std::string(found.status().message()));
      found = FoundBlock{};
    }
    MILLRACE_ASSIGN(claims_, Claims::of(std::move(found->block), notebook, machine));
    blank(found->begin, found->end);
    check_claims();
    report_.runs = claims_.runs();
    if (options_.only_bound) {
      take_marks();
      if (report_.n_numbers == 0) add(0, "no number is bound to a claim");
      return {};
    }
    check_private(document_.body, document_.body_line, found->begin, found->end);
    take_marks();
    take_comments();
    take_code();
    take_links();
    check_markup();
    take_entities();
    for (const Unbound& unbound : unbound_numbers(rest_))
      add(line_at(unbound.at),
          fmt::format("{} is bound to no claim: write <!--=NAME--> behind it and say in the claims "
                      "block where it comes from",
                      unbound.text));
    check_front();
    check_plots();
    return {};
  }

  LintReport report() && {
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.line < b.line; });
    return std::move(report_);
  }

 private:
  void add(int line, std::string what, bool is_error = true) {
    constexpr size_t kMostFindings = 200;
    if (report_.findings.size() < kMostFindings)
      report_.findings.push_back({line, is_error, std::move(what)});
  }
  int line_at(size_t at) const {
    const auto end = document_.body.begin() + static_cast<long>(std::min(at, rest_.size()));
    return document_.body_line + static_cast<int>(std::count(document_.body.begin(), end, '\n'));
  }
  void blank(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      if (rest_[i] != '\n') rest_[i] = ' ';
  }

  void check_claims() {
    for (const RunState& run : claims_.runs()) {
      if (!run.problem.empty()) add(0, run.problem);
      if (run.problem.empty() && !run.stale.empty())
        add(0,
            fmt::format("run {} ({}) is out of date: {}", run.line.uid, run.line.name, run.stale),
            options_.strict && !options_.told.contains(run.id));
      if (run.imported)
        add(0,
            fmt::format("run {} ({}) was imported, not measured here", run.line.uid, run.line.name),
            false);
    }
    for (const ClaimLine& line : claims_.block().claims) {
      const ClaimValue& value = *claims_.find(line.name);
      // Said once, of the run or of the claim that it comes from.
      const bool said = std::any_of(value.runs.begin(), value.runs.end(), [&](const auto& name) {
        return claims_.run(name)->problem == value.problem;
      });
      if (!value.problem.empty() && !said)
        add(0, fmt::format("the claim {}: {}", line.name, value.problem));
      if (!value.ambiguous.empty())
        add(0, fmt::format("the claim {} is ambiguous: {}", line.name, value.ambiguous));
    }
    for (std::string& wrong : claims_.wrong_shares()) add(0, std::move(wrong));
  }

  // The block names runs by digits that look like keys; the rest of the post may not.
  void check_private(std::string_view text, int first_line, size_t begin, size_t end) {
    std::string open(text);
    std::fill(open.begin() + static_cast<long>(begin), open.begin() + static_cast<long>(end), ' ');
    for (const Private& found : find_private(open)) {
      const auto upto = text.begin() + static_cast<long>(found.at);
      const int line = first_line + static_cast<int>(std::count(text.begin(), upto, '\n'));
      add(line, fmt::format("{} does not belong in a post: '{}'", found.what,
                            printable(open.substr(found.at, std::min<size_t>(found.n, 8)), 40) +
                                (found.n > 8 ? "..." : "")));
    }
    if (const std::string code = first_unseen(text); !code.empty())
      add(first_line, fmt::format("the text holds {}, which is not seen or turns a line", code));
  }

  // "62.1 us<!--=nine-->": what stands before is what the samples give.
  void take_marks() {
    for (size_t at = 0; (at = rest_.find(kMarkBegin, at)) != rest_.npos;) {
      const size_t end = rest_.find(kMarkEnd, at);
      if (end == rest_.npos) break;
      const std::string name = rest_.substr(at + kMarkBegin.size(), end - at - kMarkBegin.size());
      const size_t begin = check_mark(name, at);
      check_behind(line_at(at), name, std::string_view(rest_).substr(end + kMarkEnd.size()));
      blank(begin, end + kMarkEnd.size());
      at = end;
    }
  }

  void check_behind(int line, const std::string& name, std::string_view behind) {
    if (const std::string turn = turned_by(behind); !turn.empty())
      add(line, fmt::format("'{}' behind the number of {} makes another one of it", turn,
                            printable(name, 60)));
  }

  // Where the number begins that the mark at `at` is of.
  size_t check_mark(const std::string& name, size_t at) {
    const ClaimValue* value = claims_.find(name);
    if (value == nullptr) {
      add(line_at(at), fmt::format("no claim is called '{}'", printable(name, 60)));
      return at;
    }
    if (!value->problem.empty()) {
      add(line_at(at),
          fmt::format("the number of {} cannot be computed: {}", name, value->problem));
      return begin_of_number(rest_, at, *value);
    }
    const std::string_view before = std::string_view(rest_).substr(0, at);
    const size_t begin = before.ends_with(value->text) ? at - value->text.size() : at;
    if (begin == at || !begins_number(before, begin)) {
      const size_t old = begin_of_number(rest_, at, *value);
      add(line_at(at), fmt::format("{} is {}, and the text says '{}'", name, value->text,
                                   printable(rest_.substr(old, at - old), 40)));
      return old;
    }
    if (const std::string turn = turned_from(before.substr(0, begin));
        !turn.empty() && value->unit != "x")
      add(line_at(at), fmt::format("'{}' before the number of {} makes another one of it", turn,
                                   printable(name, 60)));
    ++report_.n_numbers;
    return begin;
  }

  void take_comments() {
    for (size_t at = 0; (at = rest_.find("<!--", at)) != rest_.npos;) {
      add(line_at(at), "a comment that is no claim: what is not shown does not belong in a post");
      const size_t end = rest_.find(kMarkEnd, at);
      blank(at, end == rest_.npos ? rest_.size() : end + kMarkEnd.size());
    }
  }

  void check_code(size_t at, std::string_view code) {
    if (names_something(code, claims_)) return;
    add(line_at(at),
        fmt::format("`{}` is neither a name nor what a run of this post measured or was asked for; "
                    "a number in code is a number",
                    printable(code, 80)));
  }

  void take_code() {
    bool is_open = false;
    size_t begin = 0;
    for (const std::string_view line : split_lines(document_.body)) {
      const size_t end = begin + line.size();
      const bool is_fence =
          trimmed(std::string_view(rest_).substr(begin, line.size())).starts_with("```");
      if (is_open && !is_fence) check_code(begin, trimmed(line));
      if (is_open || is_fence) blank(begin, end);
      if (is_fence) is_open = !is_open;
      begin = end + 1;
    }
    if (is_open) add(0, "a block of code does not end");
    take_code_spans();
  }

  // An escaped sign is text, and so is a backslash inside a span.
  void take_code_spans() {
    for (size_t at = 0; (at = rest_.find_first_of("`\\", at)) != rest_.npos;) {
      if (rest_[at] == '\\') {
        const bool escapes = at + 1 < rest_.size() && !is_word(rest_[at + 1]);
        blank(at, at + (escapes ? 2 : 1));
        ++at;
        continue;
      }
      const size_t end = rest_.find('`', at + 1);
      if (end == rest_.npos) {
        add(line_at(at), "a code span does not end");
        return;
      }
      check_code(at, std::string_view(rest_).substr(at + 1, end - at - 1));
      blank(at, end + 1);
      at = end + 1;
    }
  }

  void take_links() {
    for (size_t at = 0; (at = rest_.find("](", at)) != rest_.npos;) {
      const size_t end = rest_.find_first_of(")\n", at);
      const std::string to = rest_.substr(at + 2, end == rest_.npos ? 0 : end - at - 2);
      if (end == rest_.npos || rest_[end] != ')' || !is_safe_link(to))
        add(line_at(at), fmt::format("a link goes to https://... or to a file beside the post, not "
                                     "to '{}'",
                                     printable(to, 60)));
      const size_t open = rest_.rfind('[', at);
      if (open != rest_.npos && open > 0 && rest_[open - 1] == '!' && to.starts_with("https:"))
        add(line_at(at), "a picture is a file beside the post: one elsewhere sees who reads it");
      links_.push_back(to);
      blank(at, end == rest_.npos ? rest_.size() : end + 1);
    }
  }

  void check_markup() {
    for (const std::string_view tag : {"{{", "{%"})  // in code, too: Jekyll reads them first
      if (const size_t at = document_.body.find(tag); at != document_.body.npos)
        add(line_at(at), "a template tag; 'millrace post lint --fix' makes numbers of {{NAME}}");
    for (size_t at = 0; at + 1 < rest_.size(); ++at) {
      const char c = rest_[at], next = rest_[at + 1];
      if (c == '<' && (is_word(next) || next == '/' || next == '!' || next == '?')) {
        add(line_at(at), "HTML does not belong in a post; write &lt; for the sign");
        return;
      }
      if (c == ']' && (next == ':' || next == '[')) {
        add(line_at(at), "a link is written [text](target)");
        return;
      }
    }
  }

  void take_entities() {
    constexpr std::array<std::string_view, 8> kKnown = {"&lt;",   "&gt;",   "&amp;", "&quot;",
                                                        "&#123;", "&#125;", "&#64;", "&#47;"};
    for (size_t at = 0; (at = rest_.find('&', at)) != rest_.npos; ++at) {
      const std::string_view text = std::string_view(rest_).substr(at);
      const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                      [&](std::string_view e) { return text.starts_with(e); });
      if (known != kKnown.end())
        blank(at, at + known->size());
      else if (text.size() > 1 && (text[1] == '#' || (is_word(text[1]) && !is_digit(text[1]))))
        add(line_at(at), "an entity that hides a character; write the character");
    }
  }

  void check_front() {
    for (const std::string_view key : {"title", "date", "excerpt"})
      if (document_.text(key).empty()) add(1, fmt::format("the front matter has no {}", key));
    if (const std::string date = document_.text("date"); !date.empty() && !is_date(date))
      add(1, fmt::format("'{}' is no date like 2026-11-18", printable(date, 40)));
    for (const FrontLine& line : document_.front) {
      if (line.key == "date" || line.key == "learnings") continue;
      std::string text = fmt::format("{}", fmt::join(line.items, "\n"));
      check_private(text, line.line, 0, 0);
      if (text.find_first_of("<>{}") != text.npos)
        add(line.line, fmt::format("{} holds a sign of markup: < > {{ }}", line.key));
      for (const std::string& name : line.claims) take_front_number(line, name, text);
      for (const Unbound& unbound : unbound_numbers(text))
        add(line.line, fmt::format("{} in {} is bound to no claim: add '# =NAME' behind the value",
                                   unbound.text, line.key));
    }
  }

  void take_front_number(const FrontLine& line, const std::string& name, std::string& text) {
    const ClaimValue* value = claims_.find(name);
    if (value == nullptr || !value->problem.empty()) {
      add(line.line,
          fmt::format("the claim '{}' of {} has no value", printable(name, 60), line.key));
      return;
    }
    const size_t at = text.find(value->text);
    if (at == text.npos || !begins_number(text, at)) {
      add(line.line,
          fmt::format("{} is {}, and the {} does not say so", name, value->text, line.key));
      return;
    }
    check_behind(line.line, name, std::string_view(text).substr(at + value->text.size()));
    text.replace(at, value->text.size(), value->text.size(), ' ');
    ++report_.n_numbers;
  }

  void check_plots() {
    for (const PlotLine& plot : claims_.block().plots) {
      const std::string name = plot_file(document_, plot);
      if (std::find(links_.begin(), links_.end(), name) == links_.end())
        add(0, fmt::format("the plot {} is shown nowhere: ![what it shows]({})", plot.name, name));
      const auto drawn = draw_plot(plot, claims_);
      if (!drawn.ok())
        add(0, fmt::format("the plot {}: {}", plot.name, drawn.status().message()));
      else if (!options_.plots.empty())
        check_file(options_.plots / name, drawn.value());
    }
  }

  void check_file(const std::filesystem::path& path, const std::string& drawn) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (text != drawn)
      add(0, fmt::format("{} is {}: 'millrace post lint --fix' draws it", path.filename().string(),
                         in.is_open() ? "not what the samples draw" : "missing"));
  }

  const Document& document_;
  const LintOptions& options_;
  std::string rest_;
  Claims claims_;
  std::vector<std::string> links_;
  LintReport report_;
};

// Every {{NAME}} of a value, whose claims are noted behind it.
void fill_front(FrontLine& line, const Claims& claims) {
  for (std::string& item : line.items)
    for (size_t at = 0; (at = item.find("{{", at)) != item.npos;) {
      const size_t end = item.find("}}", at);
      const ClaimValue* value =
          end == item.npos ? nullptr : claims.find(item.substr(at + 2, end - at - 2));
      if (value == nullptr || !value->problem.empty()) return;
      line.claims.push_back(item.substr(at + 2, end - at - 2));
      item.replace(at, end + 2 - at, value->text);
    }
}

void fill_body(std::string& body, const Claims& claims) {
  for (size_t at = 0; (at = body.find("{{", at)) != body.npos;) {
    const size_t end = body.find("}}", at);
    if (end == body.npos) return;
    const std::string name = body.substr(at + 2, end - at - 2);
    const ClaimValue* value = claims.find(name);
    if (value == nullptr || !value->problem.empty()) {
      at = end;
      continue;
    }
    body.replace(at, end + 2 - at, fmt::format("{}<!--={}-->", value->text, name));
  }
  for (size_t at = 0; (at = body.find(kMarkBegin, at)) != body.npos;) {
    const size_t end = body.find(kMarkEnd, at);
    if (end == body.npos) return;
    const ClaimValue* value =
        claims.find(body.substr(at + kMarkBegin.size(), end - at - kMarkBegin.size()));
    if (value != nullptr && value->problem.empty()) {
      const size_t begin = begin_of_number(body, at, *value);
      body.replace(begin, at - begin, value->text);
      at = begin + value->text.size();
    }
    at += kMarkBegin.size();
  }
}

}  // namespace

bool LintReport::ok() const {
  return n_errors() == 0;
}
int LintReport::n_errors() const {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.is_error; }));
}
bool LintReport::is_imported() const {
  return std::any_of(runs.begin(), runs.end(), [](const RunState& run) { return run.imported; });
}
bool LintReport::is_stale() const {
  return std::any_of(runs.begin(), runs.end(),
                     [](const RunState& run) { return !run.stale.empty(); });
}

Result<LintReport> lint(std::string_view text, Notebook& notebook, const Machine& machine,
                        const LintOptions& options) {
  const auto document = read_document(text, options.only_bound);
  if (!document.ok()) {
    LintReport report;
    report.findings.push_back({0, true, std::string(document.status().message())});
    return report;
  }
  Linter linter(document.value(), options);
  MILLRACE_TRY(linter.run(notebook, machine));
  return std::move(linter).report();
}

Result<Document> read_document(std::string_view text, bool only_bound) {
  if (!only_bound) return parse_document(text);
  if (!is_utf8(text)) return error(Code::corrupt, "the text is not UTF-8");
  return Document{.front = {}, .body = std::string(text)};
}

Result<std::string> fill_numbers(std::string_view text, Notebook& notebook, const Machine& machine,
                                 bool only_bound) {
  MILLRACE_ASSIGN(Document document, read_document(text, only_bound));
  MILLRACE_ASSIGN(FoundBlock found, find_claims(document));
  MILLRACE_ASSIGN(const Claims claims, Claims::of(std::move(found.block), notebook, machine));
  for (FrontLine& line : document.front) fill_front(line, claims);
  fill_body(document.body, claims);
  return only_bound ? document.body : to_text(document);
}

// Without the numbers that are bound: they may change, and the name of a post does not.
std::string slug_of(const Document& document) {
  const FrontLine* title = document.find("title");
  if (title == nullptr || title->items.empty()) return "post";
  std::string words, word;
  for (const char c : title->items[0] + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    const bool is_number = !word.empty() && (is_digit(word[0]) || word[0] == '{');
    if (title->claims.empty() && word.find("{{") == word.npos ? true : !is_number)
      words += word + " ";
    word.clear();
  }
  return slug_of(words);
}

std::string plot_file(const Document& document, const PlotLine& plot) {
  return fmt::format("{}-{}.svg", slug_of(document), slug_of(plot.name));
}

}  // namespace millrace::lab
