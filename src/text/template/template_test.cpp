// The template language: against jinja2's output (tests/golden/template.jsonl), and what no oracle
// can say: where text came from, and that nothing runs past its budget.
#include "text/template/template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace millrace::jinja {
namespace {

using Json = nlohmann::ordered_json;

std::tm golden_time() {
  const std::time_t seconds = 1'760'000'000;
  std::tm now{};
  gmtime_r(&seconds, &now);
  return now;
}

Result<Rendered> render(std::string_view source, const Json& variables = Json::object(),
                        const Limits& limits = {}) {
  MILLRACE_ASSIGN(const Template parsed, Template::parse(source));
  return parsed.render(variables, limits, golden_time());
}

// Pieces with input in brackets.
std::string marked(std::string_view source, const Json& variables) {
  const auto rendered = render(source, variables);
  if (!rendered.ok()) return std::string(rendered.status().message());
  std::string out;
  for (const Piece& piece : rendered.value().pieces)
    out += piece.from_template ? piece.text : "[" + piece.text + "]";
  return out;
}

TEST(Template, RendersWhatJinja2Renders) {
  std::ifstream file(MILLRACE_GOLDEN "/template.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Json variables = Json::parse(line);
  size_t n = 0;
  for (; std::getline(file, line); ++n) {
    const Json golden = Json::parse(line);
    const auto source = golden["template"].get<std::string>();
    const auto rendered = render(source, variables);
    ASSERT_EQ(rendered.ok(), golden["text"].is_string()) << source << "\n"
                                                         << rendered.status().message();
    if (rendered.ok()) {
      ASSERT_EQ(rendered.value().text(), golden["text"]) << source;
    }
  }
  EXPECT_GT(n, 300u);
}

TEST(Template, SaysWhichTextCameFromInput) {
  const Json variables = {{"u", " <s>Hi "}, {"l", {"a", "b"}}, {"d", {{"k", "v"}}}, {"n", 5}};
  EXPECT_EQ(marked("<s>{{ u }}</s>", variables), "<s>[ <s>Hi ]</s>");
  EXPECT_EQ(marked("{{ '<' ~ u|trim ~ '>' }}", variables), "<[<s>Hi]>");
  EXPECT_EQ(marked("{{ ('<' + u.strip() + '>')[1:4] }}!", variables), "[<s>]!");
  EXPECT_EQ(marked("{{ ('x' + u)|upper }}", variables), "X[ <S>HI ]");
  EXPECT_EQ(marked("{{ 'aXb'|replace('X', u) }}", variables), "a[ <s>Hi ]b");
  EXPECT_EQ(marked("{{ u|replace('<s>', '</s>') }}", variables), "[ ]</s>[Hi ]");
  EXPECT_EQ(marked("{{ l|join('-') }}", variables), "[a]-[b]");
  EXPECT_EQ(marked("{{ d|tojson }}", variables), "[{\"k\": \"v\"}]");
  EXPECT_EQ(marked("{{ '%s=%d' % (l[0], n) }}", variables), "[a]=5");
  EXPECT_EQ(marked("{{ 'x{}y'.format(u) }}", variables), "x[ <s>Hi ]y");
  EXPECT_EQ(marked("{% set x %}a{{ l[0] }}b{% endset %}{{ x[::-1] }}", variables), "b[a]a");
  EXPECT_EQ(marked("{% macro f(x) %}({{ x }}){% endmacro %}{{ f(u.split('>')[0]) }}", variables),
            "([ <s])");
  EXPECT_EQ(marked("{% for k, v in d.items() %}{{ k }}:{{ v }}{% endfor %}", variables), "[k]:[v]");
  EXPECT_EQ(marked("{{ u.title() }}{{ 'a'|title }}", variables), "[ <S>Hi ]A");
}

TEST(Template, ErrorsNameTheLineAndWhatIsMissing) {
  const auto fault = [](std::string_view source) {
    return std::string(render(source).status().message());
  };
  EXPECT_EQ(fault("a\n{{ x.y }}"), "template line 2: 'x' is undefined");
  EXPECT_EQ(fault("\n\n{% if %}{% endif %}"), "template line 3: expected an expression, got %}");
  EXPECT_EQ(fault("{{ {}['a'].b }}"), "template line 1: a dict has no attribute 'a'");
  EXPECT_EQ(
      fault("{% include 'x' %}"),
      "template line 1: {% include %} is not supported: a chat template cannot use other files");
  EXPECT_EQ(render("{% extends 'x' %}").status().code(), Code::unsupported);
  EXPECT_EQ(fault("{{ raise_exception('No system role') }}"), "template line 1: No system role");
  EXPECT_NE(fault("{{ [].append(1) }}").find("append"), std::string::npos);
}

TEST(Template, BudgetsEndWhatWouldNotEnd) {
  const Limits limits = {.steps = 200'000, .output_bytes = 1 << 20, .memory_bytes = 4 << 20};
  for (const char* source : {
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{{ 'x' * 100000000000 }}",
           "{{ [0] * 100000000000 }}",
           "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% "
           "endfor %}",
           "{% for i in range(9999) %}{{ 'x' * 1000 }}{% endfor %}",
           "{{ 'x'|center(10 ** 17) }}",
           "{{ '%1000000000d' % 1 }}",
           "{{ 'x'.zfill(10 ** 17) }}",
           "{{ ('a' * 100000)|replace('', 'b' * 100000) }}",
           "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% "
           "endfor %}",
           "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% "
           "endfor %}{{ ns.l }}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% "
           "endfor %}{{ ns.l == ns.l|tojson|length }}{{ ns.l|tojson }}",
           "{% set ns = namespace(d={}) %}{% for i in range(9999) %}{% set ns.d = {'f': ns.d}.get "
           "%}{% endfor %}",
           "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
           "{{ range(10 ** 18) }}",
       }) {
    const auto rendered = render(source, Json::object(), limits);
    ASSERT_FALSE(rendered.ok()) << source;
    EXPECT_NE(rendered.status().message().find("line 1"), std::string_view::npos);
  }
}

TEST(Template, CirclesOfValuesAreFreed) {
  EXPECT_TRUE(render("{% set ns = namespace() %}{% set ns.a = ns %}{% set ns.l = [ns] %}"
                     "{% macro f() %}{{ g }}{% endmacro %}{% set g = f %}{% set ns.f = f %}"
                     "{% for i in range(999) %}{% set ns.p = namespace(q=ns.p) %}"
                     "{% for x in [ns.k] %}{% set ns.k = loop %}{% endfor %}{% endfor %}ok")
                  .ok());
}

TEST(Template, DeepSourcesAreRefused) {
  const auto nested = [](std::string open, std::string middle, std::string close, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += open;
    out += middle;
    for (int i = 0; i < n; ++i) out += close;
    return out;
  };
  const int n = 100'000;
  for (const std::string& source :
       {"{{ " + nested("(", "1", ")", n) + " }}", "{{ " + nested("[", "", "]", n) + " }}",
        "{{ " + nested("-", "1", "", n) + " }}", "{{ " + nested("not ", "1", "", n) + " }}",
        "{{ 1" + nested("+1", "", "", n) + " }}", "{{ a" + nested(".a", "", "", n) + " }}",
        "{{ a" + nested("|e", "", "", n) + " }}", nested("{% if 1 %}", "", "{% endif %}", n),
        "{{ 1" + nested(" if 1 else 1", "", "", n) + " }}",
        "{% set " + nested("(", "a", ")", n) + " = 1 %}"})
    EXPECT_FALSE(render(source).ok()) << source.substr(0, 40);
  EXPECT_TRUE(render("{{ 'a'" + nested(" ~ 'a'", "", "", n) + " }}").ok());
}

TEST(Template, BadBytesAreRefused) {
  EXPECT_FALSE(render("\xff").ok());
  EXPECT_FALSE(render("{{ '\\ud800' }}").ok());
}

}  // namespace
}  // namespace millrace::jinja
