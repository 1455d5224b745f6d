#include "lab/posts/number_scan.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/utf8.h"
#include "lab/posts/document.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_digit);
}
bool is_letter(char c) {
  return is_word(c) && !is_digit(c) && c != '_';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// The spelled numbers and what makes a quantity of one; also what a bound number may not be
// followed by.
constexpr std::array<std::string_view, 29> kNumberWords = {
    "two",     "three",    "four",    "five",     "six",      "seven",   "eight",   "nine",
    "ten",     "eleven",   "twelve",  "thirteen", "fourteen", "fifteen", "sixteen", "eighteen",
    "twenty",  "thirty",   "forty",   "fifty",    "sixty",    "seventy", "eighty",  "ninety",
    "hundred", "thousand", "million", "billion",  "dozen"};
constexpr std::array<std::string_view, 27> kUnitWords = {
    "times",       "percent", "fold",      "microseconds", "milliseconds",
    "nanoseconds", "seconds", "gigabytes", "megabytes",    "kilobytes",
    "bytes",       "tokens",  "orders",    "hundred",      "thousand",
    "million",     "billion", "x",         "us",           "ms",
    "ns",          "s",       "k",         "kb",           "mb",
    "gb",          "tok"};

bool is_in(std::span<const std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Digits of other scripts, superscripts, fractions, numbers in circles.
bool is_other_digit(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 22> kRanges = {{
      {0xB2, 0xB3},     {0xB9, 0xB9},       {0xBC, 0xBE},     {0x660, 0x669},   {0x6F0, 0x6F9},
      {0x7C0, 0x7C9},   {0x966, 0x96F},     {0x9E6, 0x9EF},   {0xA66, 0xA6F},   {0xE50, 0xE59},
      {0xED0, 0xED9},   {0x1040, 0x1049},   {0x17E0, 0x17E9}, {0x1810, 0x1819}, {0x2070, 0x2079},
      {0x2080, 0x2089}, {0x2150, 0x218B},   {0x2460, 0x249B}, {0x2776, 0x2793}, {0x3021, 0x3029},
      {0xFF10, 0xFF19}, {0x1D7CE, 0x1D7FF},
  }};
  return std::any_of(kRanges.begin(), kRanges.end(),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), rest_(text) {}

  std::vector<Unbound> run() {
    take_line_numbers();
    take_dates();
    take_names();
    find_words();
    find_digits();
    return std::move(out_);
  }

 private:
  void blank(size_t begin, size_t n) {
    for (size_t i = begin; i < begin + n; ++i)
      if (rest_[i] != '\n') rest_[i] = ' ';
  }

  // "## 2. How", "1. First".
  void take_line_numbers() {
    size_t begin = 0;
    for (const std::string_view line : split_lines(text_)) {
      const size_t at = line.find_first_not_of(" #>");
      size_t n = 0;
      while (at != line.npos && at + n < line.size() && n < 3 && is_digit(line[at + n])) ++n;
      const size_t end = at + n;
      if (n > 0 && end + 1 < line.size() && (line[end] == '.' || line[end] == ')') &&
          line[end + 1] == ' ')
        blank(begin + at, n);
      begin += line.size() + 1;
    }
  }

  // 2026-11-18, 18 November 2026.
  void take_dates() {
    constexpr std::array kMonths = {"January",   "February", "March",    "April",
                                    "May",       "June",     "July",     "August",
                                    "September", "October",  "November", "December"};
    for (size_t at = 0; at + 10 <= rest_.size(); ++at)
      if (is_date(std::string_view(rest_).substr(at, 10)) && stands_alone(at, 10)) blank(at, 10);
    for (const std::string_view month : kMonths)
      for (size_t at = 0; (at = rest_.find(month, at)) != rest_.npos; at += month.size())
        take_date_around(at, month.size());
  }
  bool stands_alone(size_t at, size_t n) const {
    return (at == 0 || !is_word(rest_[at - 1])) &&
           (at + n == rest_.size() || !is_word(rest_[at + n]));
  }
  void take_date_around(size_t at, size_t n) {
    size_t begin = at;
    if (begin > 1 && rest_[begin - 1] == ' ') --begin;
    size_t n_day = 0;
    while (begin > n_day && is_digit(rest_[begin - n_day - 1])) ++n_day;
    const size_t year = at + n + 1;
    size_t n_year = 0;
    while (year + n_year < rest_.size() && is_digit(rest_[year + n_year])) ++n_year;
    if (n_year == 4 && rest_[at + n] == ' ') blank(year, 4);
    if (n_year == 4 && (n_day == 1 || n_day == 2)) blank(begin - n_day, n_day);
  }

  void take_names() {
    constexpr std::array<std::string_view, 12> kNames = {"Zen ",  "Debian ", "CUDA ", "Llama ",
                                                         "Qwen ", "Gemma ",  "PCIe ", "Unicode ",
                                                         "C++",   "GPT-",    "HTTP/", "MI"};
    for (const std::string_view name : kNames)
      for (size_t at = 0; (at = rest_.find(name, at)) != rest_.npos; at += name.size()) {
        size_t n = 0;
        while (at + name.size() + n < rest_.size() && is_digit(rest_[at + name.size() + n])) ++n;
        if (n > 0 && n <= 3 && stands_alone(at, name.size() + n)) blank(at, name.size() + n);
      }
    for (size_t at = 0; at < rest_.size();) {
      const size_t n = word_length(at);
      const std::string_view word = std::string_view(rest_).substr(at, n);
      if (n > 0 && has_digit(word) && is_identifier(word)) blank(at, n);
      at += std::max<size_t>(n, 1);
    }
  }

  // Letters and digits, with single signs between them.
  size_t word_length(size_t at) const {
    size_t n = 0;
    while (at + n < rest_.size()) {
      const char c = rest_[at + n];
      const bool joins = (c == '-' || c == '.' || c == '/' || c == ':') && n > 0 &&
                         at + n + 1 < rest_.size() && is_word(rest_[at + n + 1]);
      if (!is_word(c) && !joins) break;
      ++n;
    }
    return n;
  }

  // "three times", "twice", "a third of": a number all the same.
  void find_words() {
    constexpr std::array<std::string_view, 12> kAlone = {
        "twice",  "thrice",  "doubled", "doubles", "tripled",  "triples",
        "halved", "quarter", "tenth",   "third",   "quarters", "thirds"};
    std::string last;
    for (size_t at = 0; at < rest_.size();) {
      const size_t n = letters_at(at);
      if (n == 0) {
        ++at;
        continue;
      }
      const std::string word = lower(std::string_view(rest_).substr(at, n));
      const bool is_fold = word.ends_with("fold") && word.size() > 4 &&
                           is_in(kNumberWords, word.substr(0, word.size() - 4));
      const bool is_counted = is_in(kUnitWords, word) && is_in(kNumberWords, last);
      const bool is_part = is_in(kAlone, word) && (!is_ordinal(word) || is_followed_by_of(at + n));
      if (is_part || is_fold || is_counted)
        out_.push_back({at, n, fmt::format("'{}'", is_counted ? last + " " + word : word)});
      last = word;
      at += n;
    }
  }
  size_t letters_at(size_t at) const {
    size_t n = 0;
    while (at + n < rest_.size() && is_letter(rest_[at + n])) ++n;
    return n;
  }
  // "the third row" is a place, "a third of it" a number.
  static bool is_ordinal(std::string_view word) {
    return word == "third" || word == "tenth" || word == "quarter" || word == "thirds" ||
           word == "quarters";
  }
  bool is_followed_by_of(size_t at) const {
    const std::string_view after = std::string_view(rest_).substr(at);
    return after.starts_with(" of ") || after.starts_with(" the ") || after.starts_with("\nof ");
  }

  void find_digits() {
    for (size_t at = 0; at < rest_.size();) {
      const Utf8Char c = decode_utf8(rest_, at);
      if (!is_digit(rest_[at]) && !(c.valid() && is_other_digit(c.code))) {
        at += c.bytes;
        continue;
      }
      size_t end = at;
      while (end < rest_.size() && rest_[end] != ' ' && rest_[end] != '\n' && end - at < 24) ++end;
      out_.push_back(
          {at, end - at, fmt::format("'{}'", printable(rest_.substr(at, end - at), 40))});
      at = end;
    }
  }

  std::string_view text_;
  std::string rest_;
  std::vector<Unbound> out_;
};

}  // namespace

std::vector<Unbound> unbound_numbers(std::string_view text) {
  return Scanner(text).run();
}

std::string without_numbers(std::string_view text) {
  std::vector<Unbound> found = unbound_numbers(text);
  std::sort(found.begin(), found.end(),
            [](const Unbound& a, const Unbound& b) { return a.at < b.at; });
  std::string out;
  size_t at = 0;
  for (const Unbound& number : found) {
    if (number.at < at) continue;
    out += std::string(text.substr(at, number.at - at)) + "[...]";
    at = number.at + number.n;
  }
  return out + std::string(text.substr(at));
}

// A letter first; digits behind a '-' where a capital stands before it that begins no sentence
// (AVX-512, not faster-3 nor Faster-3), and none behind a '.'.
bool is_identifier(std::string_view word) {
  if (word.empty() || !is_letter(word[0])) return false;
  if (lower(word) == "x" || (word.size() > 1 && (word[0] == 'x' || word[0] == 'X') &&
                             is_digit(word[1]) && word != "x86-64" && word != "x86"))
    return false;
  bool has_capital = false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (!is_word(word[i]) && word[i] != '-' && word[i] != '/' && word[i] != '.' && word[i] != ':' &&
        word[i] != '+')
      return false;
    has_capital |= i > 0 && is_upper(word[i]);
    if (i == 0 || !is_digit(word[i])) continue;
    if (word[i - 1] == '.' || word[i - 1] == ':' || word[i - 1] == '/' || word[i - 1] == '+')
      return false;
    if (word[i - 1] == '-' && !has_capital && word != "x86-64") return false;
  }
  return true;
}

bool names_something(std::string_view code, const Claims& claims) {
  if (!has_digit(code)) return unbound_numbers(code).empty();
  if (claims.is_known(code)) return true;
  std::string_view asked = code;
  for (const std::string_view shell : {"$ ", "./run "})
    if (asked.starts_with(shell)) asked.remove_prefix(shell.size());
  if (is_letter(asked[0]))
    for (const std::string& text : claims.known_texts())
      if (text.size() > asked.size() / 2 && text.find(asked) != text.npos) return true;
  size_t at = 0;
  while (at < code.size()) {
    const size_t end = std::min(code.find(' ', at), code.size());
    std::string_view word = code.substr(at, end - at);
    while (word.starts_with('-')) word.remove_prefix(1);
    if (has_digit(word) && !is_identifier(word) && !claims.is_known(word)) return false;
    at = end + 1;
  }
  return true;
}

bool begins_number(std::string_view text, size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1];
  if (is_word(before) || before == '.' || before == ',') return false;
  const bool is_signed = text[at] == '-' || text[at] == '+';
  return is_signed || (before != '-' && before != '+' && !text.substr(0, at).ends_with("\u2212"));
}

size_t begin_of_number(std::string_view text, size_t end, const ClaimValue& value) {
  size_t at = end;
  if (!value.unit.empty() && text.substr(0, at).ends_with(value.unit)) {
    at -= value.unit.size();
    if (at > 0 && text[at - 1] == ' ') --at;
  }
  const size_t unit = at;
  const auto take_digits = [&] {
    while (at > 0 && (is_digit(text[at - 1]) || text[at - 1] == '.' || text[at - 1] == ',')) --at;
  };
  take_digits();
  if (at == unit) return end;
  if (at > 2 && (text[at - 1] == '-' || text[at - 1] == '+') && text[at - 2] == 'e' &&
      is_digit(text[at - 3])) {  // 2.60e-03
    at -= 2;
    take_digits();
  }
  const bool has_sign = !value.text.empty() && (value.text[0] == '+' || value.text[0] == '-');
  if (has_sign && at > 0 && (text[at - 1] == '+' || text[at - 1] == '-')) --at;
  return at;
}

std::string turned_by(std::string_view after) {
  const size_t first = after.find_first_not_of("*_");
  if (first == after.npos) return "";
  std::string_view rest = after.substr(first);
  const bool goes_on =
      is_word(rest[0]) || rest.starts_with("\u00b0") ||
      ((rest[0] == '.' || rest[0] == ',' || rest[0] == '-' || rest[0] == '/' || rest[0] == '^') &&
       rest.size() > 1 && is_digit(rest[1]));
  while (rest.starts_with(' ') || rest.starts_with("\u00a0") || rest.starts_with('-'))
    rest.remove_prefix(rest.starts_with("\u00a0") ? 2 : 1);
  size_t n = 0;
  while (n < rest.size() && is_letter(rest[n])) ++n;
  const std::string word = lower(rest.substr(0, n));
  for (const std::string_view sign : {"%", "\u2030", "\u00d7", "\u2715"})
    if (rest.starts_with(sign)) return std::string(sign);
  const bool is_count = word == "tokens";
  if (!is_count && (is_in(kUnitWords, word) || is_in(kNumberWords, word))) return word;
  return goes_on ? std::string(rest.substr(0, std::max<size_t>(n, 1))) : "";
}

bool is_safe_link(std::string_view to) {
  if (to.empty() || to.find_first_of(" \t\"'<>\\`{}") != to.npos) return false;
  constexpr std::string_view kSecure = "https://";
  if (to.starts_with(kSecure)) {
    const std::string_view host = to.substr(kSecure.size(), to.find('/', kSecure.size()) - 8);
    return host.find('.') != host.npos && host.find_first_of("@:") == host.npos &&
           find_private(to).empty();
  }
  return to.find(':') == to.npos && !to.starts_with("/") && !to.starts_with("//");
}

}  // namespace millrace::lab
