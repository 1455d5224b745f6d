#include "lab/posts/text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace millrace::lab {
namespace {

template <class Each>
void for_each_code(std::string_view text, Each each) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    each(c.valid() ? c.code : kReplacement, c.bytes);
    at += c.bytes;
  }
}

std::string_view entity_of(char32_t code) {
  switch (code) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '{':  // of template tags, which Jekyll reads before Markdown
      return "&#123;";
    case '}':
      return "&#125;";
    default:
      return "";
  }
}

}  // namespace

bool is_unseen(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x34F || c == 0x61C ||
         c == 0x115F || c == 0x1160 || c == 0x17B4 || c == 0x17B5 || (c >= 0x180B && c <= 0x180F) ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0x3164 || (c >= 0xFE00 && c <= 0xFE0F) ||
         c == 0xFEFF || c == 0xFFA0 || (c >= 0xFFF0 && c <= 0xFFFB) ||
         (c >= 0xE0000 && c <= 0xE0FFF);
}

std::string first_unseen(std::string_view text) {
  std::string out;
  for_each_code(text, [&](char32_t c, size_t) {
    if (out.empty() && c != '\n' && c != '\t' && is_unseen(c))
      out = fmt::format("U+{:04X}", static_cast<uint32_t>(c));
  });
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  for_each_code(text, [&](char32_t c, size_t) {
    const bool is_space =
        c == '\n' || c == '\t' || c == '\r' || c == ' ' || c == 0x2028 || c == 0x2029 || c == 0x85;
    if (is_space) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else if (!is_unseen(c)) {
      append_utf8(out, c);
    }
  });
  return std::string(trimmed(out));
}

std::string inert(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]()#!|~";
  const std::string line = one_line(text);
  std::string out;
  for_each_code(line, [&](char32_t c, size_t) {
    if (const std::string_view entity = entity_of(c); !entity.empty()) {
      out += entity;
    } else if (c == '@') {  // of an address, a link to GitHub
      out += "&#64;";
    } else if (c == '/' && out.ends_with(":")) {  // no bare address becomes a link
      out += "&#47;";
    } else {
      // Also what begins a list, a quotation or front matter.
      const bool begins = out.empty() && (c == '-' || c == '+' || c == '=');
      if (begins || (c < 0x80 && kMarkup.find(static_cast<char>(c)) != kMarkup.npos)) out += '\\';
      append_utf8(out, c);
    }
  });
  return out;
}

std::string html_escape(std::string_view text) {
  std::string out;
  for_each_code(text, [&](char32_t c, size_t) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '\n' || c == '\t' || !is_unseen(c))
      append_utf8(out, c);
  });
  return out;
}

std::string slug_of(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string out;
  for (const char c : text) {
    if (out.size() >= kMost) break;
    if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c - 'A' + 'a');
    else if ((c >= 'a' && c <= 'z') || is_digit(c))
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "post" : out;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace millrace::lab
