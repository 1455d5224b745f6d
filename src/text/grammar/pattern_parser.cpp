#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "text/grammar/pattern_tree.h"

namespace millrace::grammar {

namespace {

using Kind = PatternNode::Kind;
constexpr int kMaxDepth = 64;
constexpr size_t kMaxBytes = 16 << 10;

template <class... A>
Status unsupported(fmt::format_string<A...> format, A&&... args) {
  return error(Code::unsupported, format, std::forward<A>(args)...);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<PatternTree> run() {
    if (text_.size() > kMaxBytes) return unsupported("it is longer than {} bytes", kMaxBytes);
    if (!is_utf8(text_)) return unsupported("it is not UTF-8");
    MILLRACE_ASSIGN(tree_.root, alternatives(0));
    if (at_ < text_.size()) return unsupported("it has a ')' too many");
    return std::move(tree_);
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  uint32_t next_char() {
    const Utf8Char c = decode_utf8(text_, at_);
    at_ += c.bytes;
    return c.code;
  }
  int add(PatternNode node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<int>(tree_.nodes.size()) - 1;
  }
  int add_chars(CharSet set) {
    set.normalize();
    return add({.kind = Kind::chars, .chars = std::move(set)});
  }

  Result<int> alternatives(int depth) {
    if (depth > kMaxDepth) return unsupported("groups nest deeper than {}", kMaxDepth);
    std::vector<int> branches;
    do {
      MILLRACE_ASSIGN(const int branch, sequence(depth));
      branches.push_back(branch);
    } while (take("|"));
    if (branches.size() == 1) return branches[0];
    return add({.kind = Kind::alternatives, .children = std::move(branches)});
  }

  Result<int> sequence(int depth) {
    std::vector<int> items;
    while (!done() && peek() != '|' && peek() != ')') {
      MILLRACE_ASSIGN(int item, atom(depth));
      MILLRACE_ASSIGN(item, repeats(item));
      items.push_back(item);
    }
    return add({.kind = Kind::sequence, .children = std::move(items)});
  }

  Result<int> atom(int depth) {
    const char c = peek();
    if (c == '(') return group(depth);
    if (c == '[') return char_class();
    if (c == '\\') return escape();
    if (c == '*' || c == '+' || c == '?') return unsupported("nothing precedes '{}'", c);
    if (take("^")) return add({.kind = Kind::begin});
    if (take("$")) return add({.kind = Kind::end});
    if (take(".")) return add_chars(CharSet::not_newline());
    const uint32_t code = next_char();
    return add_chars(CharSet::of(code, code));
  }

  Result<int> group(int depth) {
    at_ += 1;
    if (take("?=") || take("?!")) return unsupported("look-ahead is not supported");
    if (take("?<=") || take("?<!")) return unsupported("look-behind is not supported");
    if (take("?<") || take("?P<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return unsupported("a group's name has no end");
      at_ = end + 1;
    } else if (take("?") && !take(":")) {
      return unsupported("the group '(?{}' is not supported", printable(text_.substr(at_, 1)));
    }
    MILLRACE_ASSIGN(const int inner, alternatives(depth + 1));
    if (!take(")")) return unsupported("a ')' is missing");
    return inner;
  }

  Result<int> repeats(int item) {
    while (!done()) {
      int min = 0, max = -1;
      if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (!take("*") && !bounds(min, max)) {
        break;
      }
      if (max >= 0 && max < min) return unsupported("the repeat {{{},{}}} is empty", min, max);
      if (tree_.nodes[static_cast<size_t>(item)].kind == Kind::begin ||
          tree_.nodes[static_cast<size_t>(item)].kind == Kind::end)
        return unsupported("an anchor is repeated");
      take("?");  // lazy: finds another match, but in the same texts
      if (peek() == '+') return unsupported("possessive repeats are not supported");
      item = add({.kind = Kind::repeat, .children = {item}, .min = min, .max = max});
    }
    return item;
  }

  // {n}, {n,} and {n,m}; any other brace is a character.
  bool bounds(int& min, int& max) {
    const size_t before = at_;
    if (take("{") && number(min)) {
      if (take("}")) {
        max = min;
        return true;
      }
      if (take(",") && (take("}") || (number(max) && take("}")))) return true;
    }
    at_ = before;
    min = 0;
    max = -1;
    return false;
  }

  bool number(int& out) {
    const size_t before = at_;
    int value = 0;
    for (; !done() && peek() >= '0' && peek() <= '9'; ++at_)
      value = std::min(value * 10 + (peek() - '0'), kMaxRepeat + 1);
    out = value;
    return at_ > before;
  }

  Result<int> escape() {
    at_ += 1;
    if (done()) return unsupported("it ends in a backslash");
    if (const auto set = class_escape()) return add_chars(*set);
    if (peek() == 'b' || peek() == 'B') return unsupported("word boundaries are not supported");
    if (peek() >= '1' && peek() <= '9') return unsupported("back-references are not supported");
    if (peek() == 'k') return unsupported("back-references are not supported");
    MILLRACE_ASSIGN(const uint32_t code, char_escape());
    return add_chars(CharSet::of(code, code));
  }

  std::optional<CharSet> class_escape() {
    if (take("d")) return CharSet::digits();
    if (take("D")) return CharSet::digits().complement();
    if (take("w")) return CharSet::word();
    if (take("W")) return CharSet::word().complement();
    if (take("s")) return CharSet::space();
    if (take("S")) return CharSet::space().complement();
    return std::nullopt;
  }

  Result<uint32_t> char_escape() {
    constexpr std::string_view kLetters = "nrtfv0";
    constexpr std::string_view kMeaning("\n\r\t\f\v\0", 6);
    const char c = peek();
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      at_ += 1;
      return static_cast<uint32_t>(kMeaning[i]);
    }
    if (take("x")) return hex(2);
    if (take("u{")) {
      MILLRACE_ASSIGN(const uint32_t code, hex(std::min(text_.find('}', at_) - at_, size_t{6})));
      if (!take("}")) return unsupported("\\u{{ has no end");
      return code;
    }
    if (take("u")) return utf16();
    if (take("c") || take("p") || take("P"))
      return unsupported("the escape '\\{}' is not supported", c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9'))
      return unsupported("the escape '\\{}' is not supported", c);
    return next_char();
  }

  Result<uint32_t> utf16() {
    MILLRACE_ASSIGN(const uint32_t high, hex(4));
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || !take("\\u")) return unsupported("a lone surrogate matches no text");
    MILLRACE_ASSIGN(const uint32_t low, hex(4));
    if (low < 0xDC00 || low > 0xDFFF) return unsupported("a lone surrogate matches no text");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  Result<uint32_t> hex(size_t digits) {
    uint32_t code = 0;
    if (digits == 0) return unsupported("an escape lacks its digits");
    for (size_t i = 0; i < digits; ++i, ++at_) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const char c = peek();
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
      const size_t value = c == '\0' ? std::string_view::npos : kDigits.find(lower);
      if (value == std::string_view::npos) return unsupported("an escape lacks its digits");
      code = code * 16 + static_cast<uint32_t>(value);
    }
    if (code > CharSet::kLast) return unsupported("an escape is no character");
    return code;
  }

  Result<int> char_class() {
    at_ += 1;
    const bool negated = take("^");
    CharSet set;
    while (peek() != ']') {
      if (done()) return unsupported("a ']' is missing");
      MILLRACE_TRY(class_member(set));
    }
    at_ += 1;
    return add_chars(negated ? set.complement() : set);
  }

  Status class_member(CharSet& set) {
    bool single = true;
    MILLRACE_ASSIGN(const uint32_t lo, class_char(set, single));
    if (!single) return {};
    const bool range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
    if (!range) {
      set.add(lo, lo);
      return {};
    }
    at_ += 1;
    MILLRACE_ASSIGN(const uint32_t hi, class_char(set, single));
    if (!single) {  // [a-\d] is a, - and digits
      set.add(lo, lo);
      set.add('-', '-');
      return {};
    }
    if (hi < lo) return unsupported("a range of a class runs backwards");
    set.add(lo, hi);
    return {};
  }

  // A character; or a class, which goes to `set`.
  Result<uint32_t> class_char(CharSet& set, bool& single) {
    single = true;
    if (!take("\\")) return next_char();
    if (done()) return unsupported("it ends in a backslash");
    if (const auto named = class_escape()) {
      set.add(*named);
      single = false;
      return 0u;
    }
    if (take("b")) return uint32_t{'\b'};
    return char_escape();
  }

  std::string_view text_;
  size_t at_ = 0;
  PatternTree tree_;
};

void limit_repeats(PatternTree& tree, int most) {
  for (PatternNode& node : tree.nodes) {
    if (node.min <= most && node.max <= most) continue;
    node.min = std::min(node.min, most);
    if (node.max > most) node.max = -1;
    tree.relaxed = fmt::format("repeats beyond {} are not counted", most);
  }
}

}  // namespace

Result<PatternTree> parse_pattern(std::string_view pattern, int max_repeat) {
  MILLRACE_ASSIGN(PatternTree tree, Parser(pattern).run());
  limit_repeats(tree, max_repeat);
  return tree;
}

}  // namespace millrace::grammar
