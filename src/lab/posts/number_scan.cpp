#include "lab/posts/number_scan.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/utf8.h"
#include "lab/posts/document.h"
#include "lab/posts/scrub.h"
#include "lab/posts/text.h"
#include "text/unicode.h"

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
constexpr std::array<std::string_view, 31> kNumberWords = {
    "two",      "three",    "four",    "five",     "six",      "seven",   "eight",   "nine",
    "ten",      "eleven",   "twelve",  "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
    "eighteen", "nineteen", "twenty",  "thirty",   "forty",    "fifty",   "sixty",   "seventy",
    "eighty",   "ninety",   "hundred", "thousand", "million",  "billion", "dozen"};
constexpr std::array<std::string_view, 75> kUnitWords = {"times",
                                                         "percent",
                                                         "pct",
                                                         "fold",
                                                         "orders",
                                                         "us",
                                                         "ms",
                                                         "ns",
                                                         "s",
                                                         "min",
                                                         "h",
                                                         "microsecond",
                                                         "microseconds",
                                                         "millisecond",
                                                         "milliseconds",
                                                         "nanosecond",
                                                         "nanoseconds",
                                                         "seconds",
                                                         "minute",
                                                         "minutes",
                                                         "hour",
                                                         "hours",
                                                         "days",
                                                         "weeks",
                                                         "x",
                                                         "k",
                                                         "hundred",
                                                         "thousand",
                                                         "million",
                                                         "billion",
                                                         "trillion",
                                                         "b",
                                                         "kb",
                                                         "mb",
                                                         "gb",
                                                         "tb",
                                                         "kib",
                                                         "mib",
                                                         "gib",
                                                         "tib",
                                                         "bytes",
                                                         "kilobytes",
                                                         "megabytes",
                                                         "gigabytes",
                                                         "terabytes",
                                                         "gbps",
                                                         "tokens",
                                                         "tok",
                                                         "w",
                                                         "mw",
                                                         "kw",
                                                         "watt",
                                                         "watts",
                                                         "kwh",
                                                         "j",
                                                         "joule",
                                                         "joules",
                                                         "v",
                                                         "volts",
                                                         "hz",
                                                         "khz",
                                                         "mhz",
                                                         "ghz",
                                                         "hertz",
                                                         "gigahertz",
                                                         "megahertz",
                                                         "cycles",
                                                         "flop",
                                                         "flops",
                                                         "gflop",
                                                         "gflops",
                                                         "tflop",
                                                         "tflops",
                                                         "gmac",
                                                         "degrees"};
constexpr std::array<std::string_view, 14> kCounted = {
    "rows",    "samples", "runs",  "steps", "calls",  "requests", "users",
    "clients", "lanes",   "cores", "cases", "layers", "prompts",  "waits"};
constexpr std::array<std::string_view, 12> kPerWhat = {
    "s", "sec", "second", "ms", "us", "minute", "hour", "day", "watt", "joule", "w", "cent"};

bool is_in(std::span<const std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

size_t letters_in(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && is_letter(text[n])) ++n;
  return n;
}

// What a reader does not see between a number and its unit: spaces of any width, one end of a line,
// marks of emphasis and code, the sign that escapes.
std::string_view without_gap(std::string_view text, bool with_hyphen) {
  bool is_wrapped = false;
  for (;;) {
    if (text.starts_with("\n") && !is_wrapped) {
      is_wrapped = true;
      text.remove_prefix(1);
    } else if (text.starts_with("\u00a0")) {
      text.remove_prefix(2);
    } else if (text.starts_with("\u2009") || text.starts_with("\u202f")) {
      text.remove_prefix(3);
    } else if (!text.empty() && std::string_view(" *_\\`~").find(text[0]) != std::string::npos) {
      text.remove_prefix(1);
    } else if (with_hyphen && text.starts_with("-")) {
      text.remove_prefix(1);
    } else {
      return text;
    }
  }
}

// " per second", "/s", " a second": what makes a rate of a count.
bool makes_rate(std::string_view text) {
  text = without_gap(text, false);
  if (text.starts_with("/"))
    text.remove_prefix(1);
  else if (const std::string word = lower(text.substr(0, letters_in(text)));
           word == "per" || word == "a" || word == "each" || word == "every")
    text = without_gap(text.substr(word.size()), false);
  else
    return false;
  return is_in(kPerWhat, lower(text.substr(0, letters_in(text))));
}

// The sign or word that makes a quantity of a number before it; empty: none.
std::string unit_in(std::string_view text) {
  for (const std::string_view sign : {"%", "\u2030", "\u00d7", "\u2715", "\u00b0"})
    if (text.starts_with(sign)) return std::string(sign);
  const std::string word = lower(text.substr(0, letters_in(text)));
  const std::string_view behind = text.substr(word.size());
  if (word == "tokens" && !makes_rate(behind)) return "";  // a count of them
  if (is_in(kUnitWords, word) || is_in(kNumberWords, word)) return word;
  if (word == "per" && makes_rate(text)) return "per";
  if (!word.empty() && makes_rate(behind)) return word + " per";
  const std::string_view next = without_gap(behind, false);
  return word == "to" && lower(next.substr(0, letters_in(next))) == "one" ? "to one" : "";
}

// Digits of every script, superscripts, fractions, numbers in circles; and the signs that Chinese
// and Japanese write numbers with, which Unicode counts among the letters.
bool is_other_digit(char32_t c) {
  constexpr std::u32string_view kHan =
      U"\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343\u4e07\u842c"
      U"\u4ebf\u5104\u96f6\u4e24\u5169\u534a\u500d";
  return (c >= 0x80 && is_number(c)) || kHan.find(c) != kHan.npos;
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

  // "## 2. How"; "1. First" where a block begins, and what counts on from there. Inside a paragraph
  // a line that begins with a number is the paragraph's.
  void take_line_numbers() {
    size_t begin = 0;
    int last = 0;
    bool is_block_start = true, is_list = false;
    for (const std::string_view line : split_lines(text_)) {
      const size_t at = std::min(line.find_first_not_of(" #>"), line.size());
      const bool is_heading = line.substr(0, at).find('#') != line.npos;
      size_t n = 0;
      while (at + n < line.size() && n < 3 && is_digit(line[at + n])) ++n;
      const size_t end = at + n;
      const bool is_numbered = n > 0 && end + 1 < line.size() &&
                               (line[end] == '.' || line[end] == ')') && line[end + 1] == ' ';
      int number = 0;
      for (size_t i = at; i < end; ++i) number = 10 * number + (line[i] - '0');
      const bool counts = number == 1 || (last > 0 && number == last + 1);
      if (is_numbered && (is_heading || ((is_block_start || is_list) && counts))) {
        blank(begin + at, n);
        is_list = !is_heading;
        last = is_heading ? 0 : number;
      }
      is_block_start = at == line.size() || is_heading;
      if (is_block_start) is_list = false;
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
    if (year >= rest_.size() || rest_[at + n] != ' ' || !is_year(year)) return;
    blank(year, 4);
    if (n_day == 1 || n_day == 2) blank(begin - n_day, n_day);
  }
  // 1990 to 2099, and not so many of anything.
  bool is_year(size_t at) const {
    const std::string_view text = std::string_view(rest_).substr(at);
    size_t n = 0;
    while (n < text.size() && is_digit(text[n])) ++n;
    if (n != 4 || !(text.starts_with("199") || text.starts_with("20")) || text[2] > '9')
      return false;
    const std::string_view behind = without_gap(text.substr(4), true);
    return unit_in(behind).empty() && !lower(behind).starts_with("tokens") &&
           !is_in(kCounted, lower(behind.substr(0, letters_in(behind)))) &&
           (text.size() == 4 || !is_word(text[4]));
  }

  void take_names() {
    constexpr std::array<std::string_view, 12> kNames = {"Zen ",  "Debian ", "CUDA ", "Llama ",
                                                         "Qwen ", "Gemma ",  "PCIe ", "Unicode ",
                                                         "C++",   "GPT-",    "HTTP/", "MI"};
    for (const std::string_view name : kNames)
      for (size_t at = 0; (at = rest_.find(name, at)) != rest_.npos; at += name.size()) {
        size_t n = 0;
        while (at + name.size() + n < rest_.size() && is_digit(rest_[at + name.size() + n])) ++n;
        if (n > 0 && n <= 3 && stands_alone(at, name.size() + n) &&
            !is_quantity(at + name.size() + n))
          blank(at, name.size() + n);
      }
    for (size_t at = 0; at < rest_.size();) {
      const size_t n = word_length(at);
      const std::string_view word = std::string_view(rest_).substr(at, n);
      if (n > 0 && has_digit(word) && is_name(word) && !is_quantity(at + n)) blank(at, n);
      at += std::max<size_t>(n, 1);
    }
  }

  // "900 tokens", "40 times": what stands before is no name.
  bool is_quantity(size_t end) const {
    const std::string_view behind = without_gap(std::string_view(rest_).substr(end), true);
    return !unit_in(behind).empty() || lower(behind.substr(0, 6)) == "tokens";
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
    std::string before, last;  // the two words in front
    bool was_roman = false;
    for (size_t at = 0; at < rest_.size();) {
      const size_t n = letters_in(std::string_view(rest_).substr(at));
      if (n == 0) {
        ++at;
        continue;
      }
      const std::string word = lower(std::string_view(rest_).substr(at, n));
      const std::string said = number_said(before, last, word, at + n, was_roman);
      if (!said.empty()) out_.push_back({at, n, fmt::format("'{}'", said)});
      was_roman = rest_.find_first_not_of("IVXLCDM", at) >= at + n;
      before = std::exchange(last, word);
      at += n;
    }
  }

  std::string number_said(const std::string& before, const std::string& last,
                          const std::string& word, size_t end, bool was_roman) const {
    constexpr std::array<std::string_view, 17> kAlone = {
        "twice",   "thrice",   "doubled", "doubles",   "doubling",   "tripled",
        "triples", "tripling", "trebled", "quadruple", "quadrupled", "quadruples",
        "halved",  "halves",   "halving", "tenths",    "hundredths"};
    constexpr std::array<std::string_view, 4> kMultiples = {"half", "double", "triple", "treble"};
    const bool is_fold = word.ends_with("fold") && word.size() > 4 &&
                         is_in(kNumberWords, word.substr(0, word.size() - 4));
    const bool is_counted =
        (is_in(kUnitWords, word) && (is_in(kNumberWords, last) || last == "one")) ||
        (word == "times" && was_roman && last != "i");
    if (is_in(kAlone, word) || is_fold) return word;
    if (is_in(kMultiples, word) && !is_kind_of(end)) return word;
    if (is_fraction(word, end)) return word;
    if (is_counted) return last + " " + word;
    if (word == "cent" && last == "per" && (is_in(kNumberWords, before) || before == "one"))
      return before + " per cent";
    return word == "magnitude" && last == "of" && before.starts_with("order") ? "order of magnitude"
                                                                              : "";
  }
  // "double precision", "half-open": a kind, not a number.
  bool is_kind_of(size_t end) const {
    std::string_view after = std::string_view(rest_).substr(end);
    if (after.starts_with("-")) return true;
    after = without_gap(after, false);
    return after.starts_with("precision") || after.starts_with("float") ||
           after.starts_with("accumul") || after.starts_with("buffer");
  }
  // "the third row" is a place, "a third of it" and "two thirds" are numbers.
  bool is_fraction(std::string_view word, size_t end) const {
    constexpr std::array<std::string_view, 11> kParts = {
        "third", "fourth", "fifth",   "sixth",     "seventh",   "eighth",
        "ninth", "tenth",  "quarter", "hundredth", "thousandth"};
    constexpr std::array<std::string_view, 12> kBehind = {"of",     "the",    "as",      "less",
                                                          "more",   "faster", "slower",  "shorter",
                                                          "longer", "larger", "smaller", "cheaper"};
    if (word.ends_with("s")) return is_in(kParts, word.substr(0, word.size() - 1));
    const std::string_view after = without_gap(std::string_view(rest_).substr(end), false);
    return is_in(kParts, word) && is_in(kBehind, lower(after.substr(0, letters_in(after))));
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

// A letter first, no digits behind a sign (faster-3, SPEED-900), and none that an x ends (by_9x).
bool is_identifier(std::string_view word) {
  constexpr std::array<std::string_view, 8> kWithHyphen = {"avx-512", "x86-64", "utf-8", "sha-256",
                                                           "gpt-2",   "gpt-3",  "gpt-4", "crc-32"};
  if (is_in(kWithHyphen, lower(word))) return true;
  if (word.empty() || !is_letter(word[0])) return false;
  if (lower(word) == "x" ||
      (word.size() > 1 && (word[0] == 'x' || word[0] == 'X') && is_digit(word[1]) && word != "x86"))
    return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (!is_word(word[i]) && std::string_view("-/.:+").find(word[i]) == std::string::npos)
      return false;
    if (i == 0) continue;
    if (is_digit(word[i]) && std::string_view("-/.:+").find(word[i - 1]) != std::string::npos)
      return false;
    const bool ends = i + 1 == word.size() || (!is_digit(word[i + 1]) && !is_letter(word[i + 1]));
    if ((word[i] == 'x' || word[i] == 'X') && is_digit(word[i - 1]) && ends &&
        !lower(word).starts_with("mi"))  // MI300X is a name
      return false;
  }
  return true;
}

// An identifier that readers know for one: letters that name a type, a processor or a model, and a
// few digits. Any other word that ends in digits ("by9000") is a number with letters before it.
bool is_name(std::string_view word) {
  constexpr std::array<std::string_view, 50> kPrefixes = {
      "int",  "uint", "bf",   "fp",   "f",    "i",     "u",     "q",      "iq",    "tq",
      "tf",   "mxfp", "nvfp", "e",    "avx",  "sse",   "fma",   "sm",     "l",     "h",
      "b",    "a",    "v",    "t",    "gh",   "gb",    "mi",    "ddr",    "lpddr", "hbm",
      "sha",  "utf",  "md",   "crc",  "ipv",  "arm",   "neon",  "x",      "avx-",  "sha-",
      "utf-", "crc-", "gpt",  "gpt-", "qwen", "llama", "gemma", "smollm", "phi",   "mistral"};
  if (!is_identifier(word)) return false;
  size_t n = 0, n_digits = 0;
  while (n < word.size() && !is_digit(word[n])) ++n;
  for (size_t i = 0; i < word.size(); ++i) {
    n_digits = is_digit(word[i]) ? n_digits + 1 : 0;
    if (n_digits > 3) return false;
  }
  return n == word.size() || is_in(kPrefixes, lower(word.substr(0, n)));
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
    const bool is_composed = word.find('_') != word.npos && is_identifier(word);
    if (has_digit(word) && !is_composed && !is_name(word) && !claims.is_known(word)) return false;
    at = end + 1;
  }
  return true;
}

bool begins_number(std::string_view text, size_t at) {
  if (at == 0) return true;
  const char before = text[at - 1];
  if (is_word(before) || before == '.' || before == ',') return false;
  const bool is_signed = text[at] == '-' || text[at] == '+';
  for (const std::string_view sign : {"-", "+", "\u2212", "\u2013", "\u2014", "\u00d7", "/"})
    if (!is_signed && text.substr(0, at).ends_with(sign)) return false;
  return true;
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
  const std::string_view rest = after.substr(first);
  if (std::string unit = unit_in(without_gap(rest, true)); !unit.empty()) return unit;
  const bool goes_on =
      is_word(rest[0]) ||
      ((rest[0] == '.' || rest[0] == ',' || rest[0] == '-' || rest[0] == '/' || rest[0] == '^') &&
       rest.size() > 1 && is_digit(rest[1]));
  return goes_on ? std::string(rest.substr(0, std::max<size_t>(letters_in(rest), 1))) : "";
}

std::string turned_from(std::string_view before) {
  std::string words;
  for (const char c : before.substr(before.size() - std::min<size_t>(before.size(), 40)))
    if (is_letter(c))
      words += c;
    else if (!words.ends_with(' '))
      words += ' ';
  words = lower(words);
  for (const std::string_view factor : {" factor of ", " factor ", " times ", " x "})
    if ((" " + words).ends_with(factor)) return std::string(trimmed(factor));
  return "";
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
