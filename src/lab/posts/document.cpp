#include "lab/posts/document.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::json;
constexpr size_t kMostBytes = 1 << 20;
constexpr std::array<std::string_view, 10> kKeys = {
    "layout", "title",   "date",      "categories", "tags",
    "author", "excerpt", "published", "learnings",  "retracted"};

// A JSON string at the beginning of `text`, which it is taken from.
Result<std::string> take_quoted(std::string_view& text) {
  size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return error(Code::corrupt, "a quotation mark is not closed");
  const Json value = Json::parse(text.substr(0, end + 1), nullptr, false);
  if (!value.is_string()) return error(Code::corrupt, "text is quoted as JSON quotes it");
  text.remove_prefix(end + 1);
  return value.get<std::string>();
}

bool is_plain_char(char c) {
  return is_word(c) || c == '-' || c == '.' || c == '/';
}

Result<std::string> take_item(std::string_view& text) {
  if (text.starts_with('"')) return take_quoted(text);
  const auto end = std::find_if_not(text.begin(), text.end(), is_plain_char);
  const auto n = static_cast<size_t>(end - text.begin());
  if (n == 0) return error(Code::corrupt, "a value is quoted text, a plain word or a list");
  std::string out(text.substr(0, n));
  text.remove_prefix(n);
  return out;
}

Status take_list(std::string_view& text, FrontLine& out) {
  out.is_list = true;
  text = trimmed(text.substr(1));
  while (!text.starts_with(']')) {
    MILLRACE_ASSIGN(std::string item, take_item(text));
    out.items.push_back(std::move(item));
    text = trimmed(text);
    if (text.starts_with(','))
      text = trimmed(text.substr(1));
    else if (!text.starts_with(']'))
      return error(Code::corrupt, "a list is [a, \"b\"]");
  }
  text.remove_prefix(1);
  return {};
}

Status take_claim_names(std::string_view text, FrontLine& out) {
  if (text.empty()) return {};
  if (!text.starts_with('#')) return error(Code::corrupt, "there is more behind the value");
  text = trimmed(text.substr(1));
  while (!text.empty()) {
    if (!text.starts_with('='))
      return error(Code::corrupt, "a comment binds numbers: '# =NAME =NAME'");
    const size_t end = std::min(text.find(' '), text.size());
    out.claims.emplace_back(text.substr(1, end - 1));
    text = trimmed(text.substr(end));
  }
  return {};
}

Result<FrontLine> parse_line(std::string_view line) {
  FrontLine out;
  const size_t colon = line.find(':');
  if (colon == line.npos) return error(Code::corrupt, "a line is 'key: value'");
  out.key = line.substr(0, colon);
  if (std::find(kKeys.begin(), kKeys.end(), out.key) == kKeys.end())
    return error(Code::corrupt, "'{}' is no key of a post; they are {}", printable(out.key, 60),
                 fmt::join(kKeys, ", "));
  std::string_view rest = trimmed(line.substr(colon + 1));
  if (rest.starts_with('[')) {
    MILLRACE_TRY(take_list(rest, out));
  } else {
    out.is_plain = !rest.starts_with('"');
    MILLRACE_ASSIGN(std::string item, take_item(rest));
    out.items.push_back(std::move(item));
  }
  MILLRACE_TRY(take_claim_names(trimmed(rest), out));
  return out;
}

std::string line_text(const FrontLine& line) {
  std::vector<std::string> items;
  for (const std::string& item : line.items)
    items.push_back(line.is_plain ? item : json_text(Json(item)));
  std::string value = fmt::format("{}", fmt::join(items, ", "));
  if (line.is_list) value = "[" + value + "]";
  std::string out = line.key + ": " + value;
  if (!line.claims.empty()) out += fmt::format("  # ={}", fmt::join(line.claims, " ="));
  return out + "\n";
}

int number_at(std::string_view text, size_t at, size_t n) {
  int out = 0;
  for (size_t i = at; i < at + n; ++i) out = 10 * out + (text[i] - '0');
  return out;
}

}  // namespace

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (size_t i = 0; i < 10; ++i)
    if (i != 4 && i != 7 && !is_digit(text[i])) return false;
  constexpr std::array kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const int year = number_at(text, 0, 4), month = number_at(text, 5, 2),
            day = number_at(text, 8, 2);
  return year >= 1970 && month >= 1 && month <= 12 && day >= 1 &&
         day <= kDays[static_cast<size_t>(month - 1)];
}

const FrontLine* Document::find(std::string_view key) const {
  for (const FrontLine& line : front)
    if (line.key == key) return &line;
  return nullptr;
}

std::string Document::text(std::string_view key) const {
  const FrontLine* line = find(key);
  return line == nullptr || line->items.size() != 1 ? "" : line->items[0];
}

void Document::set(const std::string& key, const std::string& value, bool is_plain) {
  FrontLine line{.key = key, .items = {value}, .is_plain = is_plain};
  for (FrontLine& old : front)
    if (old.key == key) {
      old = std::move(line);
      return;
    }
  front.push_back(std::move(line));
}

Result<Document> parse_document(std::string_view markdown) {
  if (markdown.size() > kMostBytes)
    return error(Code::corrupt, "a post of {} bytes; the most is {}", markdown.size(), kMostBytes);
  if (!is_utf8(markdown)) return error(Code::corrupt, "the post is not UTF-8");
  Document out;
  std::string_view rest = markdown;
  const auto take_line = [&] {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++out.body_line;
    return line;
  };
  if (take_line() != "---")
    return error(Code::corrupt, "line 1: a post begins with front matter: ---");
  for (;;) {
    if (rest.empty()) return error(Code::corrupt, "the front matter does not end: ---");
    const std::string_view line = take_line();
    if (line == "---") break;
    auto parsed = parse_line(line);
    if (!parsed.ok())
      return error(Code::corrupt, "line {}: {}", out.body_line - 1, parsed.status().message());
    if (out.find(parsed->key) != nullptr)
      return error(Code::corrupt, "line {}: a second {}", out.body_line - 1, parsed->key);
    parsed->line = out.body_line - 1;
    out.front.push_back(*std::move(parsed));
  }
  out.body = rest;
  return out;
}

std::string to_text(const Document& document) {
  std::string out = "---\n";
  for (const FrontLine& line : document.front) out += line_text(line);
  return out + "---\n" + document.body;
}

Result<FoundBlock> find_claims(const Document& document) {
  const std::string_view body = document.body;
  FoundBlock out;
  out.begin = body.starts_with(kClaimsBegin) ? 0 : body.find("\n" + std::string(kClaimsBegin));
  if (out.begin == body.npos)
    return error(Code::corrupt,
                 "there is no claims block ('{}' ... '-->'), so no number of the post is bound to "
                 "a run",
                 kClaimsBegin);
  if (out.begin > 0) ++out.begin;
  const size_t close = body.find("-->", out.begin);
  if (close == body.npos) return error(Code::corrupt, "the claims block does not end with -->");
  out.end = close + 3;
  if (body.find(kClaimsBegin, out.end) != body.npos)
    return error(Code::corrupt, "there are two claims blocks");
  const size_t from = out.begin + kClaimsBegin.size();
  const int line =
      document.body_line +
      static_cast<int>(std::count(body.begin(), body.begin() + static_cast<long>(from), '\n'));
  MILLRACE_ASSIGN(out.block, parse_claims(body.substr(from, close - from), line));
  return out;
}

}  // namespace millrace::lab
