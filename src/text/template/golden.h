// Printed by tools/template_golden.py from Python's jinja2; not written by hand.
#pragma once

#include <string_view>

namespace millrace::jinja {

struct GoldenTemplate {
  std::string_view source;
  bool fails;
  std::string_view text;
};

inline constexpr std::string_view kGoldenVariables =
    "{\"n\": 7, \"f\": 2.5, \"s\": \"Hello, W\\u00f6rld\", \"t\": true, \"no\": null, \"e\": \"\", "
    "\"l\": [3, 1, 2], \"el\": [], \"d\": {\"b\": 1, \"a\": {\"x\": [10, 20]}, \"items\": "
    "\"shadow\", \"C\": null}, \"ed\": {}, \"rows\": [{\"k\": \"b\", \"v\": 2, \"on\": true}, "
    "{\"k\": \"a\", \"v\": 1}, {\"k\": \"B\", \"v\": 3, \"on\": false}], \"m\": [{\"role\": "
    "\"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"<b>'\\\"&\"}], "
    "\"tree\": [{\"n\": 1, \"c\": [{\"n\": 2, \"c\": []}, {\"n\": 3, \"c\": [{\"n\": 4, \"c\": "
    "[]}]}]}], \"multi\": \"one\\ntwo\\n\\n  three \\n\", \"uni\": "
    "\"a\\u00df\\u4e2d\\ud83d\\ude42\\u00e9\", \"ns_like\": {\"x\": 1}}";

inline constexpr GoldenTemplate kGoldenTemplates[] = {
    {"a\n  {% if t %}\n  b\n  {% endif %}\nc\n", false, "a\n  b\nc"},
    {"a\n  {%- if t -%}\n  b\n  {%- endif -%}\nc\n", false, "abc"},
    {"a\n  {%+ if t +%}\n  b\n  {%+ endif +%}\nc\n\n", false, "a\n  \n  b\n  \nc\n"},
    {"x {{- s -}} y", false, "xHello, W\303\266rldy"},
    {"x  {{ s }}\n\n", false, "x  Hello, W\303\266rld\n"},
    {"  {{ n }}\n  {{ f }}", false, "  7\n  2.5"},
    {"{# c #}a{#- c -#}  b\n{#+ c +#}\n  {# c #}\nd", false, "ab\n\nd"},
    {"{% raw %} {{ x }} {% if %} {% endraw %}!", false, " {{ x }} {% if %} !"},
    {"a {%- raw -%}  {{ x }}  {%- endraw -%} b", false, "a{{ x }}b"},
    {"  {% raw %}\n x {% endraw %}\n\ny", false, "\n x \ny"},
    {"\n\n{{ n }}\n", false, "\n\n7"},
    {"{% if t %}\n\n\nx\n{% endif %}", false, "\n\nx\n"},
    {"a\015\nb\015c\n{{ n }}", false, "a\nb\nc\n7"},
    {"{{ '{{' }}{{ '}}' }}{{ '{%' }}", false, "{{}}{%"},
    {"{", false, "{"},
    {"{ {", false, "{ {"},
    {"a { b } c", false, "a { b } c"},
    {"{{ {'a': {'b': {}}} }}", false, "{'a': {'b': {}}}"},
    {"{%if t%}x{%endif%}", false, "x"},
    {"\011{% if t %}\011x\011{% endif %}\011\n", false, "\011x\011\011"},
    {"a{% if t %}  \n{% endif %}b", false, "a  \nb"},
    {"{{n}}\n{%- if t %} z{% endif %}", false, "7 z"},
    {"\303\251 {% if t %}x{% endif %}", false, "\303\251 x"},
    {"{{ 1 -}}\n\n x", false, "1x"},
    {"{% set x = 1 -%}\n\n x", false, "x"},
    {"x\n \n  {%- set y = 2 %}\n z", false, "x z"},
    {"{% for i in l -%}\n {{ i }}\n{%- endfor %}", false, "312"},
    {"{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ "
     "loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
     false, "1032TrueFalse33;2121FalseFalse31;3210FalseTrue32;"},
    {"{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }} "
     "{% endfor %}",
     false, "<3>1 a 3<1>2 b 1<2> a "},
    {"{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
     false, "True10False10True10"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% "
     "for (a, b), c in [((1, 2), 3)] %}{{ a + b + c }}{% endfor %}",
     false, "b=1;a={'x': [10, 20]};items=shadow;C=None;baitemsC6"},
    {"{% for x in el %}x{% else %}none{% endfor %}{% for x in zz %}x{% else %}none{% endfor %}{% "
     "for x in l if x > 5 %}x{% else %}none{% endfor %}",
     false, "nonenonenone"},
    {"{% for x in range(10) if x is odd %}{{ loop.index }}:{{ x }}/{{ loop.length }}{% if "
     "loop.last %}!{% endif %} {% endfor %}",
     false, "1:1/5 2:3/5 3:5/5 4:7/5 5:9/5! "},
    {"{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% "
     "endif %}{{ x }}{% endfor %}",
     false, "0134"},
    {"{% for x in 'a\303\251\360\237\231\202' %}[{{ x }}]{% endfor %}{% for x in (1, 2) %}{{ x "
     "}}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}",
     false, "[a][\303\251][\360\237\231\202]1212"},
    {"{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
     false, "1231 1232 1233 "},
    {"{% for t in tree recursive %}{{ t.n }}@{{ loop.depth }}{% if t.c %}({{ loop(t.c) }}){% endif "
     "%}{% endfor %}",
     false, "1@1(2@23@2(4@3))"},
    {"{% set ns = namespace(c=0, seen=false) %}{% for x in l %}{% set ns.c = ns.c + x %}{% endfor "
     "%}{{ ns.c }} {{ ns }}",
     false, "6 <Namespace {'c': 6, 'seen': False}>"},
    {"{% set ns = namespace(found=false) %}{% for x in l if not ns.found %}{{ x }}{% set ns.found "
     "= true %}{% endfor %}",
     false, "3"},
    {"{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}", false,
     "4 2 3 1"},
    {"{% if t %}{% set z = 1 %}{% endif %}{{ z }}", false, "1"},
    {"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a = b, a %}{{ a }}{% set (p, q) = [5, 6] %}{{ p "
     "}}{{ q }}",
     false, "12(2, 1)56"},
    {"{% set x %}block {{ n }}{% endset %}[{{ x }}]{% set y | upper | replace('A', 'o') %}abc{% "
     "endset %}{{ y }}",
     false, "[block 7]oBC"},
    {"{% set ns = namespace() %}{% set ns.x %}cap{% endset %}{{ ns.x }}{% set ns.a, ns.b = 1, 2 "
     "%}{{ ns.a }}{{ ns.b }}",
     false, "cap12"},
    {"{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}{% if e %}a{% elif t %}b{% elif t "
     "%}c{% endif %}{% if zz %}x{% endif %}",
     false, "ab"},
    {"{% macro f(a, b=2, c='x') %}[{{ a }},{{ b }},{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, c=3) "
     "}}{{ f(b=5, a=1) }}{{ f() }}{{ f(1, 2, 3) }}{{ f }}",
     false, "[1,2,x][1,2,3][1,5,x][,2,x][1,2,3]<Macro 'f'>"},
    {"{% macro f(a) %}{{ a }} {{ varargs }} {{ kwargs }}{% endmacro %}{{ f(1, 2, 3, k=4) }}|{{ "
     "f(*[1, 2], **{'z': 1}) }}",
     false, "1 (2, 3) {'k': 4}|1 (2,) {'z': 1}"},
    {"{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
     false, "54321"},
    {"{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in {{ n }}{% endcall %}{% macro "
     "g() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) g() %}{{ a + b }}{% endcall %}",
     false, "<in 7>3"},
    {"{% macro f(x) %}{{ x|default('unset') }}{{ x is defined }}{% endmacro %}{{ f() }}{{ f(none) "
     "}}{{ f('') }}",
     false, "unsetFalseNoneTrueTrue"},
    {"{% macro outer() %}{% macro inner(a) %}({{ a }}){% endmacro %}{{ inner(1) }}{{ inner(2) }}{% "
     "endmacro %}{{ outer() }}{{ inner is defined }}",
     false, "(1)(2)False"},
    {"{% set v = 1 %}{% macro f() %}{{ v }}{% endmacro %}{% set v = 2 %}{{ f() }}", false, "2"},
    {"{% macro f() %}{% set n = 99 %}{{ n }}{% endmacro %}{{ f() }}{{ n }}", false, "997"},
    {"{% macro f() -%}\n  x\n{%- endmacro %}{{ f() ~ f() }}{{ f()|upper }}{{ (f() + '!')|length }}",
     false, "xxX2"},
    {"{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b')|upper %}aaa{% "
     "endfilter %}",
     false, "ABC HELLO, W\303\226RLDBBB"},
    {"{% with a = 1, b = 2 %}{{ a + b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a is defined }}{% "
     "with %}{{ n }}{% endwith %}",
     false, "35False7"},
    {"{% generation %}x{{ n }}{% endgeneration %}", false, "x7"},
    {"{% for x in l %}{% generation %}{{ x }}{% endgeneration %}{% endfor %}", false, "312"},
    {"{% print n, s %}{% print 1 %}", false, "7Hello, W\303\266rld1"},
    {"{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ "
     "c.reset() }}{{ c.next() }}",
     false, "abaaNonea"},
    {"{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", false, "3|1|2"},
    {"{% set g = l|map('string') %}{{ g|list }}{{ g|list }}", false, "['3', '1', '2'][]"},
    {"{% set g = l|select('odd') %}{% for x in g %}{{ x }}{% endfor %}{{ g|first is defined }}",
     false, "31False"},
    {"{% set x = l|map('string') %}{% if x %}y{% endif %}{{ x|first }}{{ x|join }}", false, "y312"},
    {"{{ zz }}{{ d.zz }}{{ zz ~ 'a' }}{{ [zz] }}{{ zz == zz2 }}{{ zz in [1] }}{{ 1 in zz }}{{ zz "
     "or 'x' }}{{ not zz }}",
     false, "a[Undefined]TrueFalseFalsexTrue"},
    {"{{ zz|list }}{{ zz|join }}{{ zz|string }}{{ zz|trim }}{{ zz|upper }}{{ zz|first }}{{ zz|sum "
     "}}{{ zz|map('x')|list }}",
     false, "[]0[]"},
    {"{% set f = s.upper %}{{ f() }}", false, "HELLO, W\303\226RLD"},
    {"{{ rows|map(attribute='v')|map('string')|join('+') }}={{ rows|sum(attribute='v') }}", false,
     "2+1+3=6"},
    {"{% for g, items in rows|groupby('k') %}{{ g }}:{{ items|length }};{% endfor %}", false,
     "a:1;b:2;"},
    {"{% for x in rows|sort(attribute='v', reverse=true) %}{{ x.k }}{% endfor %}", false, "Bba"},
    {"{{ (1, 2, 3) | last }}{{ {'a': 1} | tojson }}", false, "3{\"a\": 1}"},
    {"{{ [1,2,][0] }}{{ {'a': 1,}['a'] }}{{ dict(a=1,) }}", false, "11{'a': 1}"},
    {"{% set loop_messages = m[1:] %}{% for x in loop_messages %}{{ x['role'] }}{% endfor %}",
     false, "assistant"},
    {"{{ 'a' if n is defined and n is not none else 'b' }}", false, "a"},
    {"{{ m[0]['content'] + '\\n' + m[-1].content }}", false, "hi\n<b>'\"&"},
    {"{{ -n|abs }}{{ (-n)|abs }}{{ -1.5|round }}", false, "77-2.0"},
    {"{{ 'x' in 'xyz' and 'y' not in 'abc' }}", false, "True"},
    {"{{ loop is defined }}{% for x in l %}{{ loop is defined }}{% endfor %}", false,
     "FalseTrueTrueTrue"},
    {"{{ s['upper']() }}", false, "HELLO, W\303\226RLD"},
    {"{% for i in l %}{% set x %}{{ i }}{% endset %}{{ x }}{% endfor %}{{ x is defined }}", false,
     "312False"},
    {"{% if not (m | selectattr('role', 'equalto', 'system') | list) %}none{% endif %}", false,
     "none"},
    {"{%- for a in [[1, 2], [3, 4]] %}{% for b in a %}{{ b }}{% endfor %}{% endfor %}", false,
     "1234"},
    {"{% set x = namespace(l=[]) %}{% for i in l %}{% set x.l = x.l + [i * 2] %}{% endfor %}{{ x.l "
     "}}",
     false, "[6, 2, 4]"},
    {"{{ d | dictsort | map('first') | list }}", false, "['a', 'b', 'C', 'items']"},
    {"{{ true.__class__ }}{{ s.__len__ is defined }}{{ d.__class__ }}", false, "False"},
    {"{{ 1 + 2 * 3 ** 2 - 4 / 8 }}", false, "18.5"},
    {"{{ 2 ** 3 ** 2 }}", false, "64"},
    {"{{ -2 ** 2 }}", false, "4"},
    {"{{ - n + 1 }}", false, "-6"},
    {"{{ 7 // 2, -7 // 2, 7 // -2 }}", false, "(3, -4, -4)"},
    {"{{ 7 % 3, -7 % 3, 7 % -3, 7.5 % 2, -7.5 % 2 }}", false, "(1, 2, -2, 1.5, 0.5)"},
    {"{{ 1 / 2, 4 / 2 }}", false, "(0.5, 2.0)"},
    {"{{ 1e3, 1.5e-5, 1e16, 123456789012345678, 0x1F, 0b101, 0o17, 1_000, 1.0, 0.1 + 0.2, 1e100, "
     "-0.0 }}",
     false,
     "(1000.0, 1.5e-05, 1e+16, 123456789012345678, 31, 5, 15, 1000, 1.0, 0.30000000000000004, "
     "1e+100, -0.0)"},
    {"{{ 10 ** 18 }}", false, "1000000000000000000"},
    {"{{ 2 ** -1 }}", false, "0.5"},
    {"{{ 2 ** 0.5 }}", false, "1.4142135623730951"},
    {"{{ True + True }}", false, "2"},
    {"{{ 'a' ~ 1 ~ none ~ 2.5 ~ [1, 'x'] ~ {'k': true} }}", false, "a1None2.5[1, 'x']{'k': True}"},
    {"{{ 'ab' * 3, 3 * 'ab', [1] * 2, (1, 2) * 0 }}", false, "('ababab', 'ababab', [1, 1], ())"},
    {"{{ [1] + [2], (1,) + (2,), 'a' + 'b' }}", false, "([1, 2], (1, 2), 'ab')"},
    {"{{ not t or f and n }}", false, "7"},
    {"{{ t and 'x' or 'y' }}", false, "x"},
    {"{{ no or e or 0 or 'last' }}", false, "last"},
    {"{{ n if t else f }}", false, "7"},
    {"{{ (n if e) }}", false, ""},
    {"{{ ('x' if e else 'y' if t else 'z') }}", false, "y"},
    {"{{ 1 < 2 < 3, 1 < 3 < 2, 1 == 1.0 == true }}", false, "(True, False, True)"},
    {"{{ 1 in l, 5 not in l, 'lo' in s, 'b' in d, 'zz' not in d, 2 in (1, 2), '' in '' }}", false,
     "(True, True, True, True, True, True, True)"},
    {"{{ 'a' < 'b', [1, 2] < [1, 3], (1,) < (1, 0) }}", false, "(True, True, True)"},
    {"{{ none == none, none != 0, '1' == 1, [] == [], {} == {}, {'a': 1} == {'a': 1.0}, [1] == "
     "(1,) }}",
     false, "(True, True, False, True, True, True, False)"},
    {"{{ l[0], l[-1], l[1:], l[:-1], l[::-1], l[::2], l[5:], l[-100:2], l[2:0:-1] }}", false,
     "(3, 2, [1, 2], [3, 1], [2, 1, 3], [3, 2], [], [3, 1], [2, 1])"},
    {"{{ s[0], s[-1], s[7:], s[::-1], s[1:5:2], uni[1], uni[2:4], uni[::-1], uni[-1] }}", false,
     "('H', 'd', 'W\303\266rld', 'dlr\303\266W ,olleH', 'el', '\303\237', "
     "'\344\270\255\360\237\231\202', '\303\251\360\237\231\202\344\270\255\303\237a', "
     "'\303\251')"},
    {"{{ (1, 2, 3)[1:], range(10)[2:8:2], range(5)[-1] }}", false, "((2, 3), range(2, 8, 2), 4)"},
    {"{{ d.a.x.1, d['a']['x'][0], d.b, d['items'] }}", false, "(20, 10, 1, 'shadow')"},
    {"{{ d.items()|list|length, d.items() is iterable }}", false, "(4, True)"},
    {"{{ d.zz, d['zz'] is defined, l.9 is defined, no.x is defined, n.foo is defined }}", false,
     "(Undefined, False, False, False, False)"},
    {"{{ [1, 'two', 3.0, none, true, {'a': [1]}, (1,), ()] }}", false,
     "[1, 'two', 3.0, None, True, {'a': [1]}, (1,), ()]"},
    {"{{ {'a': 1, 2: 'b', none: 3, true: 4, (1, 2): 5} }}", false,
     "{'a': 1, 2: 'b', None: 3, True: 4, (1, 2): 5}"},
    {"{{ {1: 'a', 1.0: 'b', true: 'c'} }}", false, "{1: 'c'}"},
    {"{{ ('a', \"it's\", 'say \"x\"', 'both \\' and \"', 'tab\\t nl\\n \\\\ \\x01 \\u2028 "
     "\303\251') }}",
     false,
     "('a', \"it's\", 'say \"x\"', 'both \\' and \"', 'tab\\t nl\\n \\\\ \\x01 \\u2028 \303\251')"},
    {"{{ (1,), (), [(),], [[]] }}", false, "((1,), (), [()], [[]])"},
    {"{{ 'con' 'cat' \"ed\" }}", false, "concated"},
    {"{{ '\\u00e9\\x41\\101\\n\\q' }}", false, "\303\251AA\n\\q"},
    {"{{ s|upper, s|lower, s|capitalize, s|title, 'foo-bar (baz) it\\'s <x>'|title, uni|upper, "
     "'HELLO wORLD'|capitalize, e|capitalize }}",
     false,
     "('HELLO, W\303\226RLD', 'hello, w\303\266rld', 'Hello, w\303\266rld', 'Hello, W\303\266rld', "
     "\"Foo-Bar (Baz) It's <X>\", 'ASS\344\270\255\360\237\231\202\303\211', 'Hello world', '')"},
    {"{{ s|length, l|count, d|length, e|length, uni|length, zz|length }}", false,
     "(12, 3, 4, 0, 5, 0)"},
    {"{{ '  x '|trim, 'xxaxx'|trim('x'), '\\n a\\u3000'|trim }}", false, "('x', 'a', 'a')"},
    {"{{ l|join, l|join('-'), rows|join(', ', attribute='k'), [1, none, 'a']|join('|') }}", false,
     "('312', '3-1-2', 'b, a, B', '1|None|a')"},
    {"{{ zz|default('d'), e|default('d'), e|default('d', true), no|default('d', boolean=true), "
     "none|d(1) }}",
     false, "('d', '', 'd', 'd', None)"},
    {"{{ l|first, l|last, el|first is defined, 'abc'|first, 'abc'|last, d|first, el|last }}", false,
     "(3, 2, False, 'a', 'c', 'b', Undefined)"},
    {"{{ l|sort, l|sort(reverse=true), ['b', 'A', 'a', 'B']|sort, ['b', 'A', "
     "'a']|sort(case_sensitive=true), rows|sort(attribute='v')|map(attribute='k')|list, "
     "rows|sort(attribute='k,v')|map(attribute='v')|list }}",
     false,
     "([1, 2, 3], [3, 2, 1], ['A', 'a', 'b', 'B'], ['A', 'a', 'b'], ['a', 'b', 'B'], [1, 2, 3])"},
    {"{{ rows|map(attribute='k')|join, rows|map(attribute='on', default='?')|list, ['a', "
     "'b']|map('upper')|list, l|map('string')|list, ['1', '2']|map('int')|sum }}",
     false, "('baB', [True, '?', False], ['A', 'B'], ['3', '1', '2'], 3)"},
    {"{{ l|select('odd')|list, l|reject('odd')|list, l|select|list, [0, 1, '']|select|list, "
     "l|select('gt', 1)|list, l|select('in', [1, 9])|list }}",
     false, "([3, 1], [2], [3, 1, 2], [1], [3, 2], [1])"},
    {"{{ rows|selectattr('on')|map(attribute='k')|list, "
     "rows|rejectattr('on')|map(attribute='k')|list, rows|selectattr('on', 'defined')|list|length, "
     "rows|selectattr('v', '>=', 2)|map(attribute='v')|list, rows|selectattr('k', 'equalto', "
     "'a')|list }}",
     false, "(['b'], ['a', 'B'], 2, [2, 3], [{'k': 'a', 'v': 1}])"},
    {"{{ l|list, 'abc'|list, d|list, range(3)|list, (1, 2)|list }}", false,
     "([3, 1, 2], ['a', 'b', 'c'], ['b', 'a', 'items', 'C'], [0, 1, 2], [1, 2])"},
    {"{{ n|string, f|string, no|string, l|string }}", false, "('7', '2.5', 'None', '[3, 1, 2]')"},
    {"{{ '42'|int, '42.7'|int, 'x'|int, 'x'|int(5), ' 7 '|int, '0x1f'|int(0, 16), f|int, -2.7|int, "
     "true|int, none|int(3), '1_0'|int }}",
     false, "(42, 42, 0, 5, 7, 31, 2, -2, 1, 3, 10)"},
    {"{{ '1.5'|float, 'x'|float, '1e3'|float, n|float, 'x'|float(2.0) }}", false,
     "(1.5, 0.0, 1000.0, 7.0, 2.0)"},
    {"{{ 'a-b-c'|replace('-', '+'), 'aaa'|replace('a', 'b', 2), 'abc'|replace('', '.'), "
     "n|replace(7, 8) }}",
     false, "('a+b+c', 'bba', '.a.b.c.', '8')"},
    {"{{ d|items|list, d.items()|list, zz|items|list, ed|items|list }}", false,
     "([('b', 1), ('a', {'x': [10, 20]}), ('items', 'shadow'), ('C', None)], [('b', 1), ('a', "
     "{'x': [10, 20]}), ('items', 'shadow'), ('C', None)], [], [])"},
    {"{{ {'b': 1, 'A': 2, 'c': 0}|dictsort, {'b': 1, 'A': 2}|dictsort(true), {'b': 1, 'a': "
     "2}|dictsort(by='value'), {'b': 1, 'a': 2}|dictsort(reverse=true) }}",
     false,
     "([('A', 2), ('b', 1), ('c', 0)], [('A', 2), ('b', 1)], [('b', 1), ('a', 2)], [('b', 1), "
     "('a', 2)])"},
    {"{{ ['a', 'A', 'b']|unique|list, ['a', 'A']|unique(true)|list, [1, 1.0, true, 2]|unique|list, "
     "rows|unique(attribute='k')|map(attribute='v')|list }}",
     false, "(['a', 'b'], ['a', 'A'], [1, 2], [2, 1])"},
    {"{{ l|reverse|list, 'abc'|reverse, d|reverse|list }}", false,
     "([2, 1, 3], 'cba', ['C', 'items', 'a', 'b'])"},
    {"{{ 2.5|round, 3.5|round, 2.675|round(2), 42.55|round(1, 'floor'), 42.55|round(1, 'ceil'), "
     "7|round, 1234|round(-2), -2.5|round }}",
     false, "(2.0, 4.0, 2.67, 42.5, 42.6, 7, 1200, -2.0)"},
    {"{{ -5|abs, -2.5|abs, true|abs }}", false, "(5, 2.5, 1)"},
    {"{{ l|sum, [0.1, 0.2]|sum, rows|sum(attribute='v'), rows|sum('v', 10), el|sum }}", false,
     "(6, 0.30000000000000004, 6, 16, 0)"},
    {"{{ l|min, l|max, ['b', 'A']|min, el|max is defined, rows|max(attribute='v') }}", false,
     "(1, 3, 'A', False, {'k': 'B', 'v': 3, 'on': False})"},
    {"{{ multi|indent, multi|indent(2, true), multi|indent(2, blank=true), multi|indent('> '), "
     "'x'|indent, ''|indent(2, true), 'a\\n'|indent }}",
     false,
     "('one\\n    two\\n\\n      three \\n', '  one\\n  two\\n\\n    three \\n', 'one\\n  two\\n  "
     "\\n    three \\n  ', 'one\\n> two\\n\\n>   three \\n', 'x', '  ', 'a\\n')"},
    {"{{ '<a href=\"x\">\\'&'|escape, '<'|e|e, '<b>'|safe, ('<'|safe) + '<', '<' ~ ('<'|safe), "
     "'<'|forceescape }}",
     false,
     "(Markup('&lt;a href=&#34;x&#34;&gt;&#39;&amp;'), Markup('&lt;'), Markup('<b>'), "
     "Markup('<&lt;'), '<<', Markup('&lt;'))"},
    {"{{ range(7)|batch(3)|list, range(7)|batch(3, 'x')|list, range(7)|slice(3)|list, "
     "range(7)|slice(3, 'x')|list }}",
     false,
     "([[0, 1, 2], [3, 4, 5], [6]], [[0, 1, 2], [3, 4, 5], [6, 'x', 'x']], [[0, 1, 2], [3, 4], [5, "
     "6]], [[0, 1, 2], [3, 4, 'x'], [5, 6, 'x']])"},
    {"{{ rows|groupby('k')|map('first')|list, rows|groupby('v')|map(attribute='grouper')|list }}",
     false, "(['a', 'b'], [1, 2, 3])"},
    {"{{ 'one two  three-four \303\251'|wordcount, e|wordcount }}", false, "(5, 0)"},
    {"{{ '%s is %d and %.2f'|format('x', 3, 2.5), '%(a)s'|format(a=1) }}", false,
     "('x is 3 and 2.50', '1')"},
    {"{{ 'foo bar baz qux'|truncate(9), 'foo bar baz qux'|truncate(9, true), 'foo bar baz "
     "qux'|truncate(11), 'foo bar baz qux'|truncate(11, false, '..', 0) }}",
     false, "('foo...', 'foo ba...', 'foo bar baz qux', 'foo bar..')"},
    {"{{ 'a b/c?d=\303\251&'|urlencode, {'a b': 'c/d', 'e': 1}|urlencode, [('x', 'y z')]|urlencode "
     "}}",
     false, "('a%20b/c%3Fd%3D%C3%A9%26', 'a+b=c%2Fd&e=1', 'x=y+z')"},
    {"{{ 'ab'|center(7), 'abc'|center(8) }}", false, "('   ab  ', '  abc   ')"},
    {"{{ d|tojson, l|tojson(indent=2), d|tojson(indent=4), uni|tojson, "
     "uni|tojson(ensure_ascii=true), {'b': 1, 'a': [1.0, none, true, {}], 'c': "
     "[]}|tojson(sort_keys=true), {'a': [1]}|tojson(separators=(',', ':')), (1, '<&>')|tojson, "
     "'\\x00\\x1f\\x7f\"\\\\/'|tojson, {1: 2, none: 3, true: 4, 2.5: 5}|tojson, [[], "
     "{}]|tojson(indent=1), 1e100|tojson, ['x']|tojson(indent='--') }}",
     false,
     "('{\"b\": 1, \"a\": {\"x\": [10, 20]}, \"items\": \"shadow\", \"C\": null}', '[\\n  3,\\n  "
     "1,\\n  2\\n]', '{\\n    \"b\": 1,\\n    \"a\": {\\n        \"x\": [\\n            10,\\n     "
     "       20\\n        ]\\n    },\\n    \"items\": \"shadow\",\\n    \"C\": null\\n}', "
     "'\"a\303\237\344\270\255\360\237\231\202\303\251\"', "
     "'\"a\\\\u00df\\\\u4e2d\\\\ud83d\\\\ude42\\\\u00e9\"', '{\"a\": [1.0, null, true, {}], \"b\": "
     "1, \"c\": []}', '{\"a\":[1]}', '[1, \"<&>\"]', '\"\\\\u0000\\\\u001f\\x7f\\\\\"\\\\\\\\/\"', "
     "'{\"1\": 4, \"null\": 3, \"2.5\": 5}', '[\\n [],\\n {}\\n]', '1e+100', '[\\n--\"x\"\\n]')"},
    {"{{ d|attr('get') is callable, d|attr('b') is defined }}", false, "(True, False)"},
    {"{{ l|map('abs')|map('string')|join(','), [l, l]|map('sum')|list, [rows]|map('map', "
     "attribute='k')|map('join', '')|list }}",
     false, "('3,1,2', [6, 6], ['baB'])"},
    {"{{ zz is defined, n is defined, zz is undefined, no is defined }}", false,
     "(False, True, True, True)"},
    {"{{ no is none, zz is none, no is not none }}", false, "(True, False, False)"},
    {"{{ s is string, n is string }}", false, "(True, False)"},
    {"{{ n is number, f is number, t is number, s is number }}", false,
     "(True, True, True, False)"},
    {"{{ n is integer, t is integer, f is float, n is float }}", false,
     "(True, False, True, False)"},
    {"{{ t is boolean, n is boolean }}", false, "(True, False)"},
    {"{{ d is mapping, l is mapping }}", false, "(True, False)"},
    {"{{ l is sequence, s is sequence, d is sequence, n is sequence, zz is sequence, (1,) is "
     "sequence, (l|map('string')) is sequence }}",
     false, "(True, True, True, False, True, True, False)"},
    {"{{ l is iterable, s is iterable, d is iterable, n is iterable, zz is iterable, no is "
     "iterable }}",
     false, "(True, True, True, False, True, False)"},
    {"{{ range is callable, n is callable, s.upper is callable }}", false, "(True, False, True)"},
    {"{{ t is true, t is false, 1 is true, false is false }}", false, "(True, False, False, True)"},
    {"{{ n is odd, n is even, n is divisibleby 7, n is divisibleby(3) }}", false,
     "(True, False, True, False)"},
    {"{{ n is eq 7, n is ne 7, n is lt 8, n is gt 8, n is le 7, n is ge 8, n is equalto 7, n is "
     "lessthan 9, n is greaterthan 9 }}",
     false, "(True, False, True, False, True, False, True, True, False)"},
    {"{{ n is in [7], 'x' is in 'xyz', n is not in [7] }}", false, "(True, True, False)"},
    {"{{ 'abc' is lower, 'ABC' is upper, 'aBc' is lower, '1' is upper }}", false,
     "(True, True, False, False)"},
    {"{{ no is sameas none, t is sameas true, 1 is sameas true, l is sameas l }}", false,
     "(True, True, False, True)"},
    {"{{ 'upper' is filter, 'nope' is filter, 'odd' is test }}", false, "(True, False, True)"},
    {"{{ ('x'|safe) is escaped, 'x' is escaped }}", false, "(True, False)"},
    {"{{ not n is odd, n is odd and t, (n is odd) is true }}", false, "(False, True, True)"},
    {"{{ s.upper(), s.lower(), s.title(), 'abc'.capitalize(), \"it's a fox\".title(), "
     "'aB'.swapcase() }}",
     false,
     "('HELLO, W\303\226RLD', 'hello, w\303\266rld', 'Hello, W\303\266rld', 'Abc', \"It'S A Fox\", "
     "'Ab')"},
    {"{{ ' x '.strip(), ' x '.lstrip() ~ '|', 'xxyxx'.strip('x'), 'abcx'.rstrip('xc'), '\\n\\n "
     "a'.lstrip('\\n'), '\303\251a\303\251'.strip('\303\251') }}",
     false, "('x', 'x |', 'y', 'ab', ' a', 'a')"},
    {"{{ 'a,b,,c'.split(','), ' a  b '.split(), 'a,b,c'.split(',', 1), 'a b c'.rsplit(' ', 1), ' a "
     "b c '.rsplit(none, 1), ' a b c'.split(none, 1), ''.split(','), ''.split(), "
     "'abc'.split('</think>')[-1], 'a--b--c'.rsplit('--', 1) }}",
     false,
     "(['a', 'b', '', 'c'], ['a', 'b'], ['a', 'b,c'], ['a b', 'c'], [' a b', 'c'], ['a', 'b c'], "
     "[''], [], 'abc', ['a--b', 'c'])"},
    {"{{ 'abc'.startswith('ab'), 'abc'.endswith('bc'), 'abc'.startswith(('x', 'a')), "
     "'abc'.startswith('b', 1), 'abc'.endswith('') }}",
     false, "(True, True, True, True, True)"},
    {"{{ 'a.b.c'.replace('.', '-'), 'aaa'.replace('a', 'b', 1), 'abc'.replace('', '-') }}", false,
     "('a-b-c', 'baa', '-a-b-c-')"},
    {"{{ ', '.join(['a', 'b']), ''.join([]), '-'.join('abc'), ','.join(d) }}", false,
     "('a, b', '', 'a-b-c', 'b,a,items,C')"},
    {"{{ 'abcabc'.find('c'), 'abc'.find('z'), 'abcabc'.rfind('b'), 'abcabc'.index('c'), "
     "'a\303\251b'.find('b'), 'abcabc'.count('bc'), 'abc'.count(''), 'abcabc'.find('a', 1), "
     "'abcabc'.find('c', 0, 2) }}",
     false, "(2, -1, 4, 2, 2, 2, 4, 3, -1)"},
    {"{{ multi.splitlines(), multi.splitlines(true), 'a\\r\\nb\\x0bc'.splitlines() }}", false,
     "(['one', 'two', '', '  three '], ['one\\n', 'two\\n', '\\n', '  three \\n'], ['a', 'b', "
     "'c'])"},
    {"{{ '{} {}'.format(1, 'x'), '{0}{1}{0}'.format('a', 'b'), '{a} {b[k]} {c.k}'.format(a=1, "
     "b={'k': 2}, c={'k': 3}), '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}'.format('a', 'b', 'c', "
     "42, 3.14159, 1234567, 255), '{{}} {!r}'.format('q'), '{:+d} {:e} {:%}'.format(5, 12345.678, "
     "0.25) }}",
     false,
     "('1 x', 'aba', '1 2 3', '    a|b    |  c  |00042|3.14|1,234,567|ff', \"{} 'q'\", '+5 "
     "1.234568e+04 25.000000%')"},
    {"{{ '%s' % 'a', '%s %s' % (1, none), '%d%%' % 5, '%05.1f|%-5s|%5s|%x|%o|%e|%g' % (3.14159, "
     "'a', 'b', 255, 8, 12345.678, 0.0001), '%(k)s' % {'k': 'v'}, '%r' % 'q', '%s' % [1], '%+d % "
     "d' % (3, 4), '%.2s' % 'abc', '%c' % 'x' }}",
     false,
     "('a', '1 None', '5%', '003.1|a    |    b|ff|10|1.234568e+04|0.0001', 'v', \"'q'\", '[1]', "
     "'+3  4', 'ab', 'x')"},
    {"{{ 'abc'.isalpha(), '1'.isdigit(), 'a1'.isalnum(), ' '.isspace(), 'ab'.islower(), "
     "'AB'.isupper(), ''.isalpha(), '\303\251'.isalpha(), 'a'.isascii() }}",
     false, "(True, True, True, True, True, True, False, True, True)"},
    {"{{ 'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('x'), "
     "'abc'.rpartition('x') }}",
     false, "(('a', '-', 'b-c'), ('a-b', '-', 'c'), ('abc', '', ''), ('', '', 'abc'))"},
    {"{{ 'abc'.removeprefix('a'), 'abc'.removesuffix('c'), 'abc'.removeprefix('x') }}", false,
     "('bc', 'ab', 'abc')"},
    {"{{ '5'.zfill(3), '-5'.zfill(4), 'ab'.ljust(4) ~ '|', 'ab'.rjust(4, '*'), 'ab'.center(5, '-') "
     "}}",
     false, "('005', '-005', 'ab  |', '**ab', '--ab-')"},
    {"{{ d.get('b'), d.get('zz'), d.get('zz', 5), d.get('C', 1) }}", false, "(1, None, 5, None)"},
    {"{{ d.keys()|list, d.values()|list|length, d.items()|first, d.keys(), {'a': 1}.values(), "
     "{'a': 1}.items(), ed.items() }}",
     false,
     "(['b', 'a', 'items', 'C'], 4, ('b', 1), dict_keys(['b', 'a', 'items', 'C']), "
     "dict_values([1]), dict_items([('a', 1)]), dict_items([]))"},
    {"{{ l.index(2), l.count(1), (1, 2).index(2), l.copy() }}", false, "(2, 1, 1, [3, 1, 2])"},
    {"{{ range(3), range(1, 7, 2), range(3, 0, -1)|list, range(0)|list, range(2, 5)|length }}",
     false, "(range(0, 3), range(1, 7, 2), [3, 2, 1], [], 3)"},
    {"{{ dict(a=1, b=2), dict([('x', 1)]), dict({'a': 1}, b=2), dict() }}", false,
     "({'a': 1, 'b': 2}, {'x': 1}, {'a': 1, 'b': 2}, {})"},
    {"{{ d.copy() == d, s.upper()|lower }}", false, "(True, 'hello, w\303\266rld')"},
    {"{{ namespace(a=1).a, namespace({'a': 2}, b=3).b }}", false, "(1, 3)"},
    {"{{ strftime_now('%d %b %Y'), strftime_now('%Y-%m-%d %H:%M:%S'), strftime_now('%-d %B %y %j "
     "%A %a %p %I %%') }}",
     false, "('09 Oct 2025', '2025-10-09 08:53:20', '9 October 25 282 Thursday Thu AM 08 %')"},
    {"{{ zz.x }}", true, ""},
    {"{{ zz() }}", true, ""},
    {"{{ zz + 1 }}", true, ""},
    {"{{ n.x.y }}", true, ""},
    {"{{ zz[0] }}", true, ""},
    {"{{ 1 / 0 }}", true, ""},
    {"{{ 1 // 0 }}", true, ""},
    {"{{ 1 % 0 }}", true, ""},
    {"{{ 'a' + 1 }}", true, ""},
    {"{{ 1 + 'a' }}", true, ""},
    {"{{ none + 1 }}", true, ""},
    {"{{ [1] + (1,) }}", true, ""},
    {"{{ l < 1 }}", true, ""},
    {"{{ 'a' < 1 }}", true, ""},
    {"{{ none < 1 }}", true, ""},
    {"{{ s() }}", true, ""},
    {"{{ n() }}", true, ""},
    {"{{ zz|tojson }}", true, ""},
    {"{{ range|tojson }}", true, ""},
    {"{{ (l|map('string'))|length }}", true, ""},
    {"{{ l.append(1)|d.pop('a')|d.update({}) }}", true, ""},
    {"{{ l|nofilter }}", true, ""},
    {"{{ n is notest }}", true, ""},
    {"{{ 1 in 5 }}", true, ""},
    {"{{ 1 in 'abc' }}", true, ""},
    {"{{ {[]: 1} }}", true, ""},
    {"{{ [] in {} }}", true, ""},
    {"{{ raise_exception('no') }}", true, ""},
    {"{{ range(1000000) }}", true, ""},
    {"{{ range(1, 2, 0) }}", true, ""},
    {"{{ 'abc'.index('z') }}", true, ""},
    {"{{ l.index(99) }}", true, ""},
    {"{{ '%d' % 'x' }}", true, ""},
    {"{{ '%s %s' % 1 }}", true, ""},
    {"{{ '%s' % (1, 2) }}", true, ""},
    {"{{ '{} {}'.format(1) }}", true, ""},
    {"{{ '{x}'.format(y=1) }}", true, ""},
    {"{{ ','.join([1]) }}", true, ""},
    {"{{ 'a'.split('') }}", true, ""},
    {"{{ s.nosuch() }}", true, ""},
    {"{{ -s }}", true, ""},
    {"{{ none|abs }}", true, ""},
    {"{{ zz|int }}", true, ""},
    {"{{ n|items|list }}", true, ""},
    {"{{ n|list }}", true, ""},
    {"{{ n|first }}", true, ""},
    {"{{ (l|map('abs'))|last }}", true, ""},
    {"{{ 'x'|round }}", true, ""},
    {"{{ l|sort(attribute='x.y.z') }}", true, ""},
    {"{{ [1, 'a']|sort }}", true, ""},
    {"{{ [{}, {}]|sort }}", false, "[{}, {}]"},
    {"{{ [[1], {}]|min }}", true, ""},
    {"{{ l[::0] }}", true, ""},
    {"{{ l['a':]|d[1:] }}", true, ""},
    {"{{ zz[1:] }}", true, ""},
    {"{{ no[1:] }}", true, ""},
    {"{{ dict(1) }}", true, ""},
    {"{{ 'x'|indent(none) }}", true, ""},
    {"{{ 'x'|truncate(2) }}", true, ""},
    {"{{ l|batch|list }}", true, ""},
    {"{{ l|join(1, 2, 3) }}", true, ""},
    {"{{ l|map|list }}", true, ""},
    {"{{ [1]|map('nofilter')|list }}", true, ""},
    {"{{ l|select('notest')|list }}", true, ""},
    {"{{ undefined_function(1) }}", true, ""},
    {"{{ cycler() }}", true, ""},
    {"{{ f.upper() }}", true, ""},
    {"{{ dict(a=1).a.b }}", false, ""},
    {"{{ [[]]|unique|list }}", true, ""},
    {"{{ t is divisibleby 0 }}", true, ""},
    {"{{ n is in 5 }}", true, ""},
    {"{{ s|replace('a') }}", true, ""},
    {"{{", true, ""},
    {"{{ n", true, ""},
    {"{% if t %}", true, ""},
    {"{% for x in l %}", true, ""},
    {"{% endif %}", true, ""},
    {"{% nosuch %}", true, ""},
    {"{{ n + }}", true, ""},
    {"{{ 'abc }}", true, ""},
    {"{{ (n }}", true, ""},
    {"{{ n) }}", true, ""},
    {"{{ [1, 2 }}", true, ""},
    {"{% if %}x{% endif %}", true, ""},
    {"{% for in l %}{% endfor %}", true, ""},
    {"{% set 1 = 2 %}", true, ""},
    {"{% set none = 2 %}", true, ""},
    {"{% set x.y.z = 1 %}", true, ""},
    {"{# never", true, ""},
    {"{% raw %}x", true, ""},
    {"{{ n | }}", true, ""},
    {"{{ n is }}", true, ""},
    {"{{ a b }}", true, ""},
    {"{{ 1 ! 2 }}", true, ""},
    {"{{ f(a=1, 2) }}", true, ""},
    {"{{ f(**d, *l) }}", true, ""},
    {"{% macro f(a=1, b) %}{% endmacro %}", true, ""},
    {"{% break %}", true, ""},
    {"{% for x in l %}{% macro f() %}{% continue %}{% endmacro %}{% endfor %}", true, ""},
    {"{{ n is odd is odd }}", true, ""},
    {"{{ }}", true, ""},
    {"{% else %}", true, ""},
    {"{% for x in l %}{% elif t %}{% endfor %}", true, ""},
    {"{% block x %}", true, ""},
    {"{{ '\\x4' }}", true, ""},
    {"{{ d. }}", true, ""},
    {"{{ l[ }}", true, ""},
    {"{% call f %}{% endcall %}", true, ""},
    {"{% set ns = 1 %}{% set ns.x = 2 %}", true, ""},
    {"{% set d.x = 1 %}", true, ""},
    {"{% set a, b = [1] %}", true, ""},
    {"{% for a, b in [[1, 2, 3]] %}{% endfor %}", true, ""},
    {"{% macro f() %}{% endmacro %}{{ f(1) }}", true, ""},
    {"{% macro f() %}{% endmacro %}{{ f(x=1) }}", true, ""},
    {"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", true, ""},
    {"{% for x in l %}{{ loop(l) }}{% endfor %}", true, ""},
    {"{{ 00x }}", true, ""},
    {"{{ 1.e }}", false, ""},
    {"{{ @ }}", true, ""},
    {"{{ n; s }}", true, ""},
    {"{%- if t -%}", true, ""},
    {"{% for x in n %}{% endfor %}", true, ""},
    {"{% filter nofilter %}x{% endfilter %}", true, ""},
    {"{% set x = %}", true, ""},
    {"{{ not }}", true, ""},
    {"{{ l[] }}", false, ""},
    {"{{ {1} }}", true, ""},
    {"{{ *l }}", true, ""},
};

}  // namespace millrace::jinja
