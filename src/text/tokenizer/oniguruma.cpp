// Oniguruma's spelling to PCRE2's. Where both mean the same, nothing changes; what pre-tokenisers
// use and means something else is rewritten; the rest is refused by name.
#include <algorithm>
#include <array>

#include "text/tokenizer/regex.h"

namespace millrace {
namespace {

// Oniguruma's \s is White_Space and its \w is these; PCRE2 adds U+180E to the first and leaves out
// marks and connectors from the second. Its \h is a hex digit, not a blank.
constexpr std::string_view kSpace =
    R"(\t-\r\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kWord = R"(\p{L}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kHex = "0-9A-Fa-f";

// Escapes that mean the same in both.
constexpr std::string_view kShared = "dDntrfveAzZGpPxu";

// Names of general categories; any other \p{...} is taken for a script, which PCRE2 would widen to
// script extensions.
constexpr std::array<std::string_view, 38> kCategories = {
    "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk", "Sm",
    "So", "Z",  "Zl", "Zp", "Zs", "C",  "Cc", "Cf", "Cn", "Co", "Cs", "Any"};

class Translation {
 public:
  explicit Translation(std::string_view from) : from_(from) {}

  Result<std::string> run() {
    while (at_ < from_.size()) {
      const char c = from_[at_];
      if (c == '\\') {
        MILLRACE_TRY(escape());
      } else if (in_class_) {
        MILLRACE_TRY(in_class(c));
      } else {
        MILLRACE_TRY(outside(c));
      }
    }
    return std::move(out_);
  }

 private:
  Status refuse(std::string_view what) const {
    return error(Code::unsupported, "the regular expression '{}' uses {}, which is not supported",
                 from_, what);
  }

  void keep(size_t n) {
    out_ += from_.substr(at_, n);
    at_ += n;
  }

  void put(std::string_view text, size_t instead_of) {
    out_ += text;
    at_ += instead_of;
  }

  // A set of characters, or all others, whether a class is open or not.
  Status set(std::string_view members, bool negated) {
    if (in_class_ && negated) return refuse("a negated set inside a class");
    if (in_class_)
      out_ += members;
    else
      out_ += fmt::format("[{}{}]", negated ? "^" : "", members);
    at_ += 2;
    return {};
  }

  Status property() {
    const size_t close = from_.find('}', at_);
    if (at_ + 2 >= from_.size() || from_[at_ + 2] != '{' || close == std::string_view::npos)
      return refuse("a property without braces");
    std::string_view name = from_.substr(at_ + 3, close - at_ - 3);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const bool category =
        std::find(kCategories.begin(), kCategories.end(), name) != kCategories.end();
    out_ += fmt::format("\\{}{{{}{}{}}}", from_[at_ + 1], negated ? "^" : "",
                        category ? "" : "sc:", name);
    at_ = close + 1;
    return {};
  }

  Status escape() {
    if (at_ + 1 >= from_.size()) return refuse("a backslash at its end");
    const char c = from_[at_ + 1];
    const bool upper = c >= 'A' && c <= 'Z';
    switch (c) {
      case 's':
      case 'S':
        if (in_class_ && upper) return put(R"(\P{White_Space})", 2), Status();
        return set(kSpace, upper);
      case 'w':
      case 'W':
        return set(kWord, upper);
      case 'h':
      case 'H':
        return set(kHex, upper);
      case 'p':
      case 'P':
        return property();
      case 'x':
        if (from_.substr(at_ + 2).starts_with('{')) {
          const size_t close = from_.find('}', at_);
          if (close == std::string_view::npos) return refuse("an open brace");
          return keep(close + 1 - at_), Status();
        }
        break;
      case 'u':
        if (at_ + 6 > from_.size()) return refuse("a short \\u");
        out_ += fmt::format("\\x{{{}}}", from_.substr(at_ + 2, 4));
        at_ += 6;
        return {};
      default:
        break;
    }
    const bool alphanumeric = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (alphanumeric && kShared.find(c) == std::string_view::npos)
      return refuse(fmt::format("\\{}", c));
    keep(2);
    return {};
  }

  Status in_class(char c) {
    if (c == '[') return refuse("a class inside a class");
    if (from_.substr(at_).starts_with("&&")) return refuse("an intersection of classes");
    if (c == ']') in_class_ = false;
    keep(1);
    return {};
  }

  Status outside(char c) {
    const std::string_view rest = from_.substr(at_);
    if (c == '[') {
      in_class_ = true;
      keep(rest.starts_with("[^") ? 2 : 1);
      if (at_ < from_.size() && from_[at_] == ']') return refuse("an empty class");
      return {};
    }
    if (rest.starts_with("{,") || rest.starts_with("}+")) return refuse(rest.substr(0, 2));
    if (rest.starts_with("(?<") && rest.size() > 3 && rest[3] != '=' && rest[3] != '!')
      return refuse("a named group");
    // Of groups that start with (?, those that look around or set options mean the same.
    if (rest.starts_with("(*") ||
        (rest.starts_with("(?") && rest.substr(2, 1).find_first_of(":=!<>imx-") != 0))
      return refuse(rest.substr(0, 3));
    keep(1);
    return {};
  }

  std::string_view from_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

Result<std::string> from_oniguruma(std::string_view pattern) {
  return Translation(pattern).run();
}

}  // namespace millrace
