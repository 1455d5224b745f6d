#include "lab/posts/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "lab/posts/lint.h"
#include "lab/posts/number_scan.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

std::string placed(const std::string& claim) {
  return claim.empty() ? "" : "{{" + claim + "}}";
}

// In code spans stand names from runs, which are compared with what the runs say.
std::string code(std::string_view text) {
  const std::string out = code_text(text);
  return out.empty() ? "" : "`" + out + "`";
}

std::string sentence(std::string text) {
  if (!text.empty() && std::string_view(".!?").find(text.back()) == std::string_view::npos)
    text += ".";
  return text;
}

std::string claim_of(const Topic& topic) {
  return topic.learned.empty() ? topic.question : topic.learned;
}

std::string table_of(const Topic& topic) {
  const bool compares = !topic.rows[0].b.empty();
  std::string out =
      compares
          ? fmt::format(
                "| case | mode | {} | {} | change | the prediction |\n"
                "|---|---|---|---|---|---|\n",
                code(topic.rows[0].label_a), code(topic.rows[0].label_b))
          : "| case | mode | variant | measured | share of the floor |\n|---|---|---|---|---|\n";
  for (const TopicRow& row : topic.rows)
    out += compares
               ? fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(row.subject.problem),
                             code(row.subject.mode), placed(row.a), placed(row.b),
                             row.change.empty() ? "not decided" : placed(row.change), row.outcome)
               : fmt::format("| {} | {} | {} | {} | {} |\n", code(row.subject.problem),
                             code(row.subject.mode), code(row.label_a), placed(row.a),
                             row.share.empty() ? "none" : placed(row.share));
  return out;
}

std::string question_of(const Topic& topic) {
  if (topic.question.empty()) return "";
  std::string out = sentence(words_of(topic.question));
  if (!topic.reason.empty()) out += " " + sentence(words_of(topic.reason));
  out += fmt::format("\n\nWritten down before the run: {}{}.\n\n", words_of(topic.effect),
                     topic.prediction.empty() ? "" : " by at least " + placed(topic.prediction));
  return out;
}

std::string found_of(const Topic& topic) {
  if (topic.outcome == "refuted")
    return "The prediction was refuted. That is a result, too: it says where not to look.";
  if (topic.outcome == "supported") return "The prediction held in every row of this run.";
  return "";
}

// The names of cases have digits, which words may not have: where a row is of one it is code.
std::string scope_of(const Topic& topic) {
  std::string out, words, word;
  const auto is_case = [&](std::string_view name) {
    return std::any_of(topic.rows.begin(), topic.rows.end(),
                       [&](const TopicRow& row) { return row.subject.problem == name; });
  };
  for (const char c : topic.scope + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    const size_t n = word.find_last_not_of(",;.") + 1;
    if (is_case(word.substr(0, n))) {
      out += (words.empty() ? "" : words_of(words) + " ") + code(word.substr(0, n)) +
             word.substr(n) + " ";
      words.clear();
    } else {
      words += (words.empty() ? "" : " ") + word;
    }
    word.clear();
  }
  return std::string(trimmed(out + words_of(words)));
}

std::string topic_text(const Topic& topic, const std::string& plot) {
  std::string out = topic.question.empty() ? "" : "## The question\n\n" + question_of(topic);
  out += fmt::format(
      "## What was measured\n\n{} samples of each, taken in turn in the same rounds, on {} ({}), "
      "{}{}:\n\n```\n{}\n```\n\n",
      placed(topic.samples), code(topic.machine), words_of(topic.device), words_of(topic.date),
      topic.imported ? "; the run was imported, not measured here" : "", code_text(topic.command));
  out += table_of(topic);
  if (topic.n_left_out > 0) out += "\nThe run has more rows than are shown here.\n";
  out += fmt::format("\n![{}, every sample a dot]({})\n\n", words_of(topic.rows[0].subject.name),
                     plot);
  if (const std::string found = found_of(topic); !found.empty())
    out += "## What it says\n\n" + found + " " + sentence(words_of(claim_of(topic))) + "\n\n";
  if (!topic.scope.empty())
    out += fmt::format("Scope: {} Strength: {}.\n\n", sentence(scope_of(topic)), topic.strength);
  else if (!topic.strength.empty() && !topic.outcome.empty())
    out += fmt::format("Strength: {}.\n\n", topic.strength);
  return out;
}

// Themes put a title where they like, so it has no sign that any of them could take for markup.
std::string title_of(std::string_view text) {
  constexpr size_t kMost = 160;
  std::string out = without_numbers(code_text(text));
  std::erase_if(
      out, [](char c) { return std::string_view("&\\\"*_|#[]()!~").find(c) != std::string::npos; });
  if (out.size() > kMost) out.resize(kMost);
  while (!is_utf8(out)) out.pop_back();
  return trimmed(out).empty() ? "A result of the lab" : std::string(trimmed(out));
}

}  // namespace

std::string words_of(std::string_view text) {
  return inert(without_numbers(scrubbed(one_line(text))));
}

Document document_of(const Material& material, const std::string& date, const PostText& text) {
  Document out;
  std::set<std::string> tags;
  FrontLine learnings{.key = "learnings", .items = {}, .is_list = true};
  for (const Topic& topic : material.topics) {
    for (const TopicRow& row : topic.rows) tags.insert(without_numbers(one_line(row.subject.name)));
    if (!topic.uid.empty()) learnings.items.push_back(topic.uid.substr(0, 16));
  }
  out.set("layout", "post", true);
  out.set("title", text.title, false);
  out.set("date", date, true);
  out.front.push_back({.key = "categories", .items = {"lab"}, .is_list = true, .is_plain = true});
  out.front.push_back({.key = "tags", .items = {tags.begin(), tags.end()}, .is_list = true});
  out.set("author", "Millrace lab", false);
  out.set("excerpt", text.excerpt, false);
  out.set("published", "false", true);
  if (!learnings.items.empty()) out.front.push_back(std::move(learnings));
  out.body = "\n" + std::string(trimmed(text.body)) + "\n\n" + to_text(material.block);
  return out;
}

Document write_plainly(const Material& material, const std::string& date) {
  const Topic& first = material.topics[0];
  PostText text;
  const std::string said =
      claim_of(first).empty() ? "What a run of the lab measured" : claim_of(first);
  text.title = title_of(said);
  text.excerpt = first.outcome == "refuted"     ? "A prediction that the measurement refuted."
                 : first.outcome == "supported" ? "A prediction that the measurement bore out."
                                                : "A measurement, row by row.";
  if (!claim_of(first).empty()) text.body = sentence(words_of(said)) + "\n\n";
  Document named;
  named.set("title", text.title, false);
  for (size_t i = 0; i < material.topics.size(); ++i)
    text.body += topic_text(material.topics[i], plot_file(named, material.block.plots[i]));
  return document_of(material, date, text);
}

}  // namespace millrace::lab
