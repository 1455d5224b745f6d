#include "lab/posts/html.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "lab/posts/number_scan.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

std::string without_comments(std::string_view text) {
  std::string out;
  for (;;) {
    const size_t at = text.find("<!--");
    out += text.substr(0, at);
    if (at == text.npos) return out;
    const size_t end = text.find("-->", at);
    if (end == text.npos) return out;
    text.remove_prefix(end + 3);
  }
}

// A run of text with emphasis, code, links. Depth is bounded: a link's text holds no link.
class Inline {
 public:
  explicit Inline(std::string_view text, int depth = 0) : text_(text), depth_(depth) {}

  std::string run() {
    while (at_ < text_.size())
      if (!take_escape() && !take_entity() && !take_code() && !take_link() && !take_emphasis())
        plain_ += text_[at_++];
    flush();
    return std::move(out_);
  }

 private:
  void flush() {
    out_ += html_escape(plain_);
    plain_.clear();
  }
  void emit(std::string_view html) {
    flush();
    out_ += html;
  }

  bool take_escape() {
    if (text_[at_] != '\\' || at_ + 1 == text_.size() || is_word(text_[at_ + 1])) return false;
    plain_ += text_[at_ + 1];
    at_ += 2;
    return true;
  }
  bool take_entity() {
    constexpr std::array<std::pair<std::string_view, char>, 8> kKnown = {{{"&lt;", '<'},
                                                                          {"&gt;", '>'},
                                                                          {"&amp;", '&'},
                                                                          {"&quot;", '"'},
                                                                          {"&#123;", '{'},
                                                                          {"&#125;", '}'},
                                                                          {"&#64;", '@'},
                                                                          {"&#47;", '/'}}};
    for (const auto& [entity, c] : kKnown)
      if (text_.substr(at_).starts_with(entity)) {
        plain_ += c;
        at_ += entity.size();
        return true;
      }
    return false;
  }
  bool take_code() {
    const size_t end = text_[at_] == '`' ? text_.find('`', at_ + 1) : text_.npos;
    if (end == text_.npos) return false;
    emit("<code>" + html_escape(text_.substr(at_ + 1, end - at_ - 1)) + "</code>");
    at_ = end + 1;
    return true;
  }
  bool take_link() {
    const bool is_picture = text_[at_] == '!' && at_ + 1 < text_.size() && text_[at_ + 1] == '[';
    const size_t open = at_ + (is_picture ? 1 : 0);
    if (depth_ > 2 || text_[open] != '[') return false;
    const size_t middle = text_.find("](", open);
    const size_t end = middle == text_.npos ? middle : text_.find(')', middle);
    if (end == text_.npos) return false;
    const std::string_view label = text_.substr(open + 1, middle - open - 1);
    const std::string_view to = text_.substr(middle + 2, end - middle - 2);
    if (!is_safe_link(to) || (is_picture && to.starts_with("https:"))) return false;
    if (is_picture)
      emit(fmt::format("<img src=\"{}\" alt=\"{}\">", html_escape(to), html_escape(label)));
    else
      emit(fmt::format("<a href=\"{}\">{}</a>", html_escape(to), Inline(label, depth_ + 1).run()));
    at_ = end + 1;
    return true;
  }
  bool take_emphasis() {
    for (const auto& [mark, tag] :
         {std::pair<std::string_view, std::string_view>{"**", "strong"}, {"*", "em"}}) {
      if (depth_ > 2 || !text_.substr(at_).starts_with(mark)) continue;
      const size_t begin = at_ + mark.size();
      const size_t end = text_.find(mark, begin);
      if (end == text_.npos || end == begin || text_[begin] == ' ') continue;
      emit(fmt::format("<{0}>{1}</{0}>", tag,
                       Inline(text_.substr(begin, end - begin), depth_ + 1).run()));
      at_ = end + mark.size();
      return true;
    }
    return false;
  }

  std::string_view text_;
  int depth_;
  size_t at_ = 0;
  std::string plain_, out_;
};

std::string inlined(std::string_view text) {
  return Inline(trimmed(text)).run();
}

// "- x", "1. x": the length of what begins an item; 0 where it is none.
size_t item_mark(std::string_view line) {
  if (line.starts_with("- ") || line.starts_with("* ")) return 2;
  size_t n = 0;
  while (n < line.size() && n < 3 && is_digit(line[n])) ++n;
  return n > 0 && line.substr(n).starts_with(". ") ? n + 2 : 0;
}

bool begins_block(std::string_view line) {
  return line.starts_with("```") || line.starts_with("#") || line.starts_with("|") ||
         line.starts_with(">") || item_mark(line) > 0;
}

class Blocks {
 public:
  explicit Blocks(std::string_view text)
      : text_(without_comments(text)), lines_(split_lines(text_)) {}

  std::string run() {
    while (at_ < lines_.size()) {
      const std::string_view line = trimmed(lines_[at_]);
      if (line.empty())
        ++at_;
      else if (line.starts_with("```"))
        take_fence();
      else if (line.starts_with("#"))
        take_heading(line);
      else if (line.starts_with("|"))
        take_table();
      else if (line.starts_with(">"))
        take_quotation();
      else if (item_mark(line) > 0)
        take_list(line);
      else
        take_paragraph();
    }
    return std::move(out_);
  }

 private:
  void take_fence() {
    out_ += "<pre><code>";
    for (++at_; at_ < lines_.size() && !trimmed(lines_[at_]).starts_with("```"); ++at_)
      out_ += html_escape(lines_[at_]) + "\n";
    ++at_;
    out_ += "</code></pre>\n";
  }
  void take_heading(std::string_view line) {
    const size_t n = std::min<size_t>(line.find_first_not_of('#'), 6);
    const size_t level = std::max<size_t>(n, 2);  // the page's own is the first
    out_ += fmt::format("<h{0}>{1}</h{0}>\n", level, inlined(line.substr(n)));
    ++at_;
  }
  void take_table() {
    bool is_head = true;
    out_ += "<table>\n";
    for (; at_ < lines_.size() && trimmed(lines_[at_]).starts_with("|"); ++at_) {
      std::string_view line = trimmed(lines_[at_]);
      if (line.find_first_not_of("|-: ") == line.npos) continue;
      line.remove_prefix(1);
      if (line.ends_with("|")) line.remove_suffix(1);
      out_ += "<tr>";
      for (;;) {
        size_t end = line.find('|');
        while (end != line.npos && end > 0 && line[end - 1] == '\\') end = line.find('|', end + 1);
        out_ += fmt::format("<{0}>{1}</{0}>", is_head ? "th" : "td", inlined(line.substr(0, end)));
        if (end == line.npos) break;
        line.remove_prefix(end + 1);
      }
      out_ += "</tr>\n";
      is_head = false;
    }
    out_ += "</table>\n";
  }
  void take_quotation() {
    std::string text;
    for (; at_ < lines_.size() && trimmed(lines_[at_]).starts_with(">"); ++at_)
      text += std::string(trimmed(trimmed(lines_[at_]).substr(1))) + " ";
    out_ += "<blockquote><p>" + inlined(text) + "</p></blockquote>\n";
  }
  void take_list(std::string_view first) {
    const char* tag = is_digit(first[0]) ? "ol" : "ul";
    out_ += fmt::format("<{}>\n", tag);
    while (at_ < lines_.size() && item_mark(trimmed(lines_[at_])) > 0) {
      const std::string_view line = trimmed(lines_[at_++]);
      std::string item(line.substr(item_mark(line)));
      while (at_ < lines_.size() && lines_[at_].starts_with("  ") &&
             item_mark(trimmed(lines_[at_])) == 0)
        item += " " + std::string(trimmed(lines_[at_++]));
      out_ += "<li>" + inlined(item) + "</li>\n";
    }
    out_ += fmt::format("</{}>\n", tag);
  }
  void take_paragraph() {
    std::string text;
    do {
      text += std::string(lines_[at_++]) + "\n";
    } while (at_ < lines_.size() && !trimmed(lines_[at_]).empty() &&
             !begins_block(trimmed(lines_[at_])));
    out_ += "<p>" + inlined(text) + "</p>\n";
  }

  std::string text_;
  std::vector<std::string_view> lines_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string html_of(std::string_view markdown) {
  return Blocks(markdown).run();
}

}  // namespace millrace::lab
