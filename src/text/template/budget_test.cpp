// That every operation pays for the bytes it touches: each is tried once on strings of a megabyte
// with steps for little more than the strings, and in loops that would run for hours unpaid.
#include "text/template/budget.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "text/template/chat_template.h"
#include "text/template/template.h"

namespace millrace::jinja {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMegabyte = 1 << 20;

std::string repeated(std::string_view text, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += text;
  return out;
}

// Of a megabyte each: letters, white space, two-byte characters, lines, words; a list and a dict.
Json long_values() {
  Json items = Json::array(), entries = Json::object();
  for (int i = 0; i < 20'000; ++i) items.push_back(i);
  for (int i = 0; i < 2'000; ++i) entries["k" + std::to_string(i)] = i;
  return {{"s", repeated("a", kMegabyte)},
          {"space", repeated(" ", kMegabyte)},
          {"wide", repeated("é", kMegabyte)},
          {"lines", repeated("x\n", kMegabyte)},
          {"words", repeated("ab ", kMegabyte)},
          {"digits", repeated("1", kMegabyte)},
          {"items", items},
          {"entries", entries}};
}

class TemplateBudget : public testing::Test {
 protected:
  static void SetUpTestSuite() { values_ = new Json(long_values()); }
  static void TearDownTestSuite() { delete values_; }

  static Status render(std::string_view source, int64_t steps) {
    const auto parsed = Template::parse(source);
    if (!parsed.ok()) return parsed.status();
    return parsed.value().render(*values_, {.steps = steps}).status();
  }
  // The least number of steps, within a percent, that a template needs.
  static int64_t steps_of(std::string_view source) {
    int64_t low = 0, high = 100'000'000;
    EXPECT_TRUE(render(source, high).ok()) << source << "\n" << render(source, high).message();
    while (high - low > high / 100 + 1) {
      const int64_t middle = (low + high) / 2;
      (render(source, middle).ok() ? high : low) = middle;
    }
    return high;
  }
  static const Json& values() { return *values_; }

 private:
  static Json* values_;
};
Json* TemplateBudget::values_ = nullptr;

// Everything that looks at every character, or copies or compares all of them.
constexpr const char* kLong[] = {
    "s.isalnum()",
    "s.isalpha()",
    "digits.isdecimal()",
    "digits.isdigit()",
    "s.islower()",
    "digits.isnumeric()",
    "space.isspace()",
    "s.isupper()",
    "s is lower",
    "s is upper",
    "digits|float",
    "s|int",
    "s|int(0, 16)",
    "words|wordcount",
    "s.upper()",
    "s.lower()",
    "s.title()",
    "s.capitalize()",
    "s.swapcase()",
    "s.casefold()",
    "s|upper",
    "s|lower",
    "s|title",
    "s|capitalize",
    "s|escape",
    "s|forceescape",
    "s|safe",
    "s|urlencode",
    "[(s, s)]|urlencode",
    "s|tojson",
    "[s]|tojson",
    "{s: 1}|tojson",
    "[s]|string",
    "s|trim ~ ''",
    "space|trim",
    "space.strip()",
    "s.strip('a')",
    "'a'.strip(s)",
    "s|trim('a')",
    "s|center(2000000)",
    "s.ljust(2000000)",
    "s.zfill(2000000)",
    "s|indent",
    "lines|indent",
    "lines.splitlines()",
    "words.split()",
    "s.split('b')",
    "words.split(' ')",
    "s.rsplit('b')",
    "words.rsplit(None, 1)",
    "s.partition('b')",
    "s.rpartition('b')",
    "s.replace('b', 'c')",
    "s.replace('a', 'b')",
    "s.replace('', 'b')",
    "s|replace('a', '')",
    "s.find('b')",
    "s.find('ab')",
    "s.rfind('b')",
    "s.rfind('ba')",
    "s.count('a')",
    "s.count('b')",
    "wide.count('')",
    "wide.find('é', 500000)",
    "s.find(s)",
    "s.startswith(s)",
    "s.endswith(s)",
    "s.removeprefix(s)",
    "s.removesuffix(s)",
    "wide.startswith('é', 500000)",
    "s.join(['', ''])",
    "','.join([s, s])",
    "[s, s]|join",
    "s|list",
    "s|first ~ s",
    "wide|last",
    "wide[500000]",
    "wide[500000:500002]",
    "wide[-1]",
    "s[1:]",
    "s[::2]",
    "s|reverse",
    "wide|truncate(500000)",
    "s ~ 'a'",
    "s + 'a'",
    "s * 2",
    "s == s.replace('b', 'b')",
    "s != s",
    "s < s",
    "s is eq(s)",
    "s is lt(s)",
    "'b' in s",
    "s in s",
    "s is in(s)",
    "s in [s]",
    "[s].index(s)",
    "[s, s].count(s)",
    "[s] == [s]",
    "[s] < [s]",
    "{s: 1}[s]",
    "{s: 1}.get(s)",
    "s in {s: 1}",
    "{'a': {s: s}} == {'a': {s: s}}",
    "entries[s ~ '']",
    "{s: 1, (s ~ 'b'): 2}",
    "dict([(s, 1), (s, 2)])",
    "dict(**{s: 1})",
    "namespace(**{s: 1})",
    "'%s' % s",
    "'%r' % s",
    "'%9s' % s",
    "s % ()",
    "'{}'.format(s)",
    "'{!r}'.format(s)",
    "'{:9}'.format(s)",
    "s.format()",
    "s|format",
    "'%(k)s' % {'k': s}",
    "strftime_now(s)",
    "[s, s]|sort",
    "[s, s]|unique|list",
    "[s, s]|max",
    "[s, s]|min",
    "{s: 1}|dictsort",
    "[{'k': s}]|groupby('k')",
    "[s]|map('lower')|list",
    "[s]|select('upper')|list",
    "[{'k': s}]|selectattr('k', 'lower')|list",
    "[{'k': s}]|map(attribute='k')|join",
    "[[]]|map(attribute=s)|list",
    "items|string",
    "items|tojson",
    "items|sum",
    "items|max",
    "items|sort",
    "items|unique|list",
    "items|join",
    "items|map('string')|list",
    "items|select('odd')|list",
    "items == items[::1]",
    "-1 in items",
    "items.count(5)",
    "items + items + items",
    "items|batch(3)|list",
    "items|reverse|list",
    "entries.items()|list",
    "entries|dictsort",
    "entries == dict(entries)",
    "entries|tojson",
    "((1,) * 9999) in entries",
    "'%.400f' % 1.5e300",
    "1.5|round(200)",
    "'%1.500e' % 1e-200",
};

TEST_F(TemplateBudget, PaysForEveryByteItTouches) {
  const int64_t before = steps_of("{{ s is string }}");
  for (const char* expression : kLong) {
    const std::string source = std::string("{% set x = ") + expression + " %}";
    const Status status = render(source, before + 900);
    ASSERT_EQ(status.code(), Code::out_of_memory) << expression << "\n" << status.message();
    EXPECT_NE(status.message().find("steps"), std::string_view::npos) << expression;
  }
}

// What looks at no more than an end or a length stays cheap: templates ask it of every message.
TEST_F(TemplateBudget, WhatIsShortIsNotPaidByTheString) {
  const int64_t before = steps_of("{{ s is string }}");
  for (const char* expression :
       {"s is string",        "s is defined",    "s is mapping", "s|length",  "s.isascii()",
        "s|default('')",      "s|first",         "s|last",       "s[5]",      "s[-1]",
        "s.startswith('ab')", "s.endswith('b')", "'aa' in s",    "s == 'a'",  "s.find('a')",
        "items|length",       "items|first",     "items|last",   "items[-1]", "entries['k77']",
        "entries.k77",        "'k5' in entries", "not s",        "s or 1",    "[s]|length"}) {
    const std::string source = std::string("{% set x = ") + expression + " %}";
    EXPECT_TRUE(render(source, before + 900).ok()) << expression;
  }
}

// A search that compares much for every character costs more than one that does not.
TEST_F(TemplateBudget, SearchesPayForWhatTheyCompare) {
  const int64_t before = steps_of("{{ s is string }}");
  const int64_t short_ = steps_of("{% set x = 'b' in s %}") - before;
  const int64_t long_ = steps_of("{% set x = ('a' * 6400 ~ 'b') in s[:99999] %}") - before;
  EXPECT_LT(short_, 30'000);
  EXPECT_GT(long_, 5'000'000);
}

TEST_F(TemplateBudget, LoopsOfCheapCallsEnd) {
  const std::string names = [] {
    std::string out;
    for (int i = 0; i < 20'000; ++i) out += "{% set n" + std::to_string(i) + " = 1 %}";
    return out;
  }();
  const std::string entry[] = {"s.isalpha()",
                               "digits|int",
                               "digits|float",
                               "words|wordcount",
                               "s is upper",
                               "{s: 1}[s]",
                               "'b' in s",
                               "wide[400000]",
                               "wide.find('b', 400000)",
                               "s == s ~ ''",
                               "s.strip('b')",
                               "((1,) * 9999) in entries",
                               "strftime_now('%c' * 9)",
                               "'%.400f' % 1e300",
                               "zz"};
  for (const std::string& expression : entry) {
    const std::string source =
        (expression == "zz" ? names : "") +
        "{% for i in range(9999) %}{% for j in range(9999) %}{% set x = " + expression +
        " %}{% endfor %}{% endfor %}";
    EXPECT_EQ(render(source, 500'000).code(), Code::out_of_memory) << expression;
  }
}

// Names and messages are kept outside of the values: they must not grow past their budget.
TEST_F(TemplateBudget, WhatIsKeptIsPaidInMemory) {
  EXPECT_EQ(render("{% set ns = namespace(l=[]) %}{% for i in range(999) %}"
                   "{% set ns.l = [namespace(**{s: i}), ns.l[:1]] %}{% endfor %}",
                   1'000'000'000)
                .code(),
            Code::out_of_memory);
  const Status status = render("{{ ['%(' ~ s ~ ')s']|map('format', a=1)|list }}", 1'000'000'000);
  EXPECT_LT(status.message().size(), 1000u);
  EXPECT_NE(status.message().find("names 'aaaa"), std::string_view::npos) << status.message();
}

TEST_F(TemplateBudget, FindsWhatThePlainSearchFinds) {
  for (const std::string_view text : {"", "a", "aaab", "abababa", "xaybzab", "ab"})
    for (const std::string_view wanted : {"", "a", "ab", "aba", "b", "zab", "abababab"})
      for (size_t at = 0; at <= text.size() + 1; ++at) {
        Budget budget;
        EXPECT_EQ(find_in(text, wanted, at, budget), text.find(wanted, at)) << text << wanted << at;
        if (at > text.size()) continue;
        EXPECT_EQ(rfind_in(text, wanted, at, budget), text.substr(0, at).rfind(wanted));
      }
}

TEST_F(TemplateBudget, StopsWhenItIsTold) {
  const auto parsed = ChatTemplate::parse(
      "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", {},
      {.steps = INT64_MAX / 2});
  ASSERT_TRUE(parsed.ok());
  std::atomic<bool> stop{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  const auto rendered = parsed.value().render({}, &stop);
  later.join();
  EXPECT_EQ(rendered.status().code(), Code::cancelled);
}

// What a template takes is found out within a small budget of its own.
TEST_F(TemplateBudget, ProbingIsShort) {
  const auto text_of = [](std::string_view rounds) {
    const std::string source = "{% for i in range(" + std::string(rounds) +
                               ") %}{% endfor %}{% for p in messages[0].content %}"
                               "[{{ p.text }}]{% endfor %}";
    const auto parsed = ChatTemplate::parse(source);
    ChatInput input;
    input.messages = Json::array({Json{{"role", "user"}, {"content", "Hi"}}});
    return parsed.value().render(input).value().text();
  };
  EXPECT_EQ(text_of("9"), "[Hi]");      // takes parts, and so is given some
  EXPECT_EQ(text_of("90000"), "[][]");  // too slow to be asked: given the string as it is
}

}  // namespace
}  // namespace millrace::jinja
