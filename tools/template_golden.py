#!/usr/bin/env python3
"""Prints tests/golden/template.jsonl: small templates that use every construct, and what Python's jinja2
renders them to (set up as for chat templates; see tests/clients/jinja_oracle.py). The first line holds
the variables; each line after it a template and its text, or null where rendering fails.

    python3 -m venv venv && venv/bin/pip install jinja2
    venv/bin/python tools/template_golden.py > tests/golden/template.jsonl
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "clients"))
from jinja_oracle import ENVIRONMENT, render  # noqa: E402

VARIABLES = {
    "n": 7, "f": 2.5, "s": "Hello, Wörld", "t": True, "no": None, "e": "", "l": [3, 1, 2], "el": [],
    "d": {"b": 1, "a": {"x": [10, 20]}, "items": "shadow", "C": None}, "ed": {},
    "rows": [{"k": "b", "v": 2, "on": True}, {"k": "a", "v": 1}, {"k": "B", "v": 3, "on": False}],
    "m": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "<b>'\"&"}],
    "tree": [{"n": 1, "c": [{"n": 2, "c": []}, {"n": 3, "c": [{"n": 4, "c": []}]}]}],
    "multi": "one\ntwo\n\n  three \n", "uni": "aß中🙂é", "ns_like": {"x": 1},
}

WHITESPACE = [
    "a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if t -%}\n  b\n  {%- endif -%}\nc\n",
    "a\n  {%+ if t +%}\n  b\n  {%+ endif +%}\nc\n\n", "x {{- s -}} y", "x  {{ s }}\n\n", "  {{ n }}\n  {{ f }}",
    "{# c #}a{#- c -#}  b\n{#+ c +#}\n  {# c #}\nd", "{% raw %} {{ x }} {% if %} {% endraw %}!",
    "a {%- raw -%}  {{ x }}  {%- endraw -%} b", "  {% raw %}\n x {% endraw %}\n\ny", "\n\n{{ n }}\n", "{% if t %}\n\n\nx\n{% endif %}",
    "a\r\nb\rc\n{{ n }}", "{{ '{{' }}{{ '}}' }}{{ '{%' }}", "{", "{ {", "a { b } c", "{{ {'a': {'b': {}}} }}", "{%if t%}x{%endif%}",
    "\t{% if t %}\tx\t{% endif %}\t\n", "a{% if t %}  \n{% endif %}b", "{{n}}\n{%- if t %} z{% endif %}", "é {% if t %}x{% endif %}",
    "{{ 1 -}}\n\n x", "{% set x = 1 -%}\n\n x", "x\n \n  {%- set y = 2 %}\n z", "{% for i in l -%}\n {{ i }}\n{%- endfor %}",
]
EXPRESSIONS = """
1 + 2 * 3 ** 2 - 4 / 8|2 ** 3 ** 2|-2 ** 2|- n + 1|7 // 2, -7 // 2, 7 // -2|7 % 3, -7 % 3, 7 % -3, 7.5 % 2, -7.5 % 2|1 / 2, 4 / 2
1e3, 1.5e-5, 1e16, 123456789012345678, 0x1F, 0b101, 0o17, 1_000, 1.0, 0.1 + 0.2, 1e100, -0.0|10 ** 18|2 ** -1|2 ** 0.5|True + True
'a' ~ 1 ~ none ~ 2.5 ~ [1, 'x'] ~ {'k': true}|'ab' * 3, 3 * 'ab', [1] * 2, (1, 2) * 0|[1] + [2], (1,) + (2,), 'a' + 'b'
not t or f and n|t and 'x' or 'y'|no or e or 0 or 'last'|n if t else f|(n if e)|('x' if e else 'y' if t else 'z')|1 < 2 < 3, 1 < 3 < 2, 1 == 1.0 == true
1 in l, 5 not in l, 'lo' in s, 'b' in d, 'zz' not in d, 2 in (1, 2), '' in ''|'a' < 'b', [1, 2] < [1, 3], (1,) < (1, 0)|none == none, none != 0, '1' == 1, [] == [], {} == {}, {'a': 1} == {'a': 1.0}, [1] == (1,)
l[0], l[-1], l[1:], l[:-1], l[::-1], l[::2], l[5:], l[-100:2], l[2:0:-1]|s[0], s[-1], s[7:], s[::-1], s[1:5:2], uni[1], uni[2:4], uni[::-1], uni[-1]
(1, 2, 3)[1:], range(10)[2:8:2], range(5)[-1]
d.a.x.1, d['a']['x'][0], d.b, d['items']
d.items()|list|length, d.items() is iterable
d.zz, d['zz'] is defined, l.9 is defined, no.x is defined, n.foo is defined
[1, 'two', 3.0, none, true, {'a': [1]}, (1,), ()]|{'a': 1, 2: 'b', none: 3, true: 4, (1, 2): 5}|{1: 'a', 1.0: 'b', true: 'c'}|('a', "it's", 'say "x"', 'both \\' and "', 'tab\\t nl\\n \\\\ \\x01 \\u2028 é')
(1,), (), [(),], [[]]|'con' 'cat' "ed"|'\\u00e9\\x41\\101\\n\\q'
""".strip()
FILTERS = """
s|upper, s|lower, s|capitalize, s|title, 'foo-bar (baz) it\\'s <x>'|title, uni|upper, 'HELLO wORLD'|capitalize, e|capitalize|s|length, l|count, d|length, e|length, uni|length, zz|length
'  x '|trim, 'xxaxx'|trim('x'), '\\n a\\u3000'|trim|l|join, l|join('-'), rows|join(', ', attribute='k'), [1, none, 'a']|join('|')|zz|default('d'), e|default('d'), e|default('d', true), no|default('d', boolean=true), none|d(1)
l|first, l|last, el|first is defined, 'abc'|first, 'abc'|last, d|first, el|last|l|sort, l|sort(reverse=true), ['b', 'A', 'a', 'B']|sort, ['b', 'A', 'a']|sort(case_sensitive=true), rows|sort(attribute='v')|map(attribute='k')|list, rows|sort(attribute='k,v')|map(attribute='v')|list
rows|map(attribute='k')|join, rows|map(attribute='on', default='?')|list, ['a', 'b']|map('upper')|list, l|map('string')|list, ['1', '2']|map('int')|sum|l|select('odd')|list, l|reject('odd')|list, l|select|list, [0, 1, '']|select|list, l|select('gt', 1)|list, l|select('in', [1, 9])|list
rows|selectattr('on')|map(attribute='k')|list, rows|rejectattr('on')|map(attribute='k')|list, rows|selectattr('on', 'defined')|list|length, rows|selectattr('v', '>=', 2)|map(attribute='v')|list, rows|selectattr('k', 'equalto', 'a')|list
l|list, 'abc'|list, d|list, range(3)|list, (1, 2)|list|n|string, f|string, no|string, l|string|'42'|int, '42.7'|int, 'x'|int, 'x'|int(5), ' 7 '|int, '0x1f'|int(0, 16), f|int, -2.7|int, true|int, none|int(3), '1_0'|int
'1.5'|float, 'x'|float, '1e3'|float, n|float, 'x'|float(2.0)|'a-b-c'|replace('-', '+'), 'aaa'|replace('a', 'b', 2), 'abc'|replace('', '.'), n|replace(7, 8)
d|items|list, d.items()|list, zz|items|list, ed|items|list
{'b': 1, 'A': 2, 'c': 0}|dictsort, {'b': 1, 'A': 2}|dictsort(true), {'b': 1, 'a': 2}|dictsort(by='value'), {'b': 1, 'a': 2}|dictsort(reverse=true)|['a', 'A', 'b']|unique|list, ['a', 'A']|unique(true)|list, [1, 1.0, true, 2]|unique|list, rows|unique(attribute='k')|map(attribute='v')|list
l|reverse|list, 'abc'|reverse, d|reverse|list|2.5|round, 3.5|round, 2.675|round(2), 42.55|round(1, 'floor'), 42.55|round(1, 'ceil'), 7|round, 1234|round(-2), -2.5|round|-5|abs, -2.5|abs, true|abs|l|sum, [0.1, 0.2]|sum, rows|sum(attribute='v'), rows|sum('v', 10), el|sum
l|min, l|max, ['b', 'A']|min, el|max is defined, rows|max(attribute='v')|multi|indent, multi|indent(2, true), multi|indent(2, blank=true), multi|indent('> '), 'x'|indent, ''|indent(2, true), 'a\\n'|indent
'<a href="x">\\'&'|escape, '<'|e|e, '<b>'|safe, ('<'|safe) + '<', '<' ~ ('<'|safe), '<'|forceescape|range(7)|batch(3)|list, range(7)|batch(3, 'x')|list, range(7)|slice(3)|list, range(7)|slice(3, 'x')|list
rows|groupby('k')|map('first')|list, rows|groupby('v')|map(attribute='grouper')|list|'one two  three-four é'|wordcount, e|wordcount|'%s is %d and %.2f'|format('x', 3, 2.5), '%(a)s'|format(a=1)
'foo bar baz qux'|truncate(9), 'foo bar baz qux'|truncate(9, true), 'foo bar baz qux'|truncate(11), 'foo bar baz qux'|truncate(11, false, '..', 0)|'a b/c?d=é&'|urlencode, {'a b': 'c/d', 'e': 1}|urlencode, [('x', 'y z')]|urlencode|'ab'|center(7), 'abc'|center(8)
d|tojson, l|tojson(indent=2), d|tojson(indent=4), uni|tojson, uni|tojson(ensure_ascii=true), {'b': 1, 'a': [1.0, none, true, {}], 'c': []}|tojson(sort_keys=true), {'a': [1]}|tojson(separators=(',', ':')), (1, '<&>')|tojson, '\\x00\\x1f\\x7f"\\\\/'|tojson, {1: 2, none: 3, true: 4, 2.5: 5}|tojson, [[], {}]|tojson(indent=1), 1e100|tojson, ['x']|tojson(indent='--')
d|attr('get') is callable, d|attr('b') is defined|l|map('abs')|map('string')|join(','), [l, l]|map('sum')|list, [rows]|map('map', attribute='k')|map('join', '')|list
""".strip()
TESTS = """
zz is defined, n is defined, zz is undefined, no is defined|no is none, zz is none, no is not none|s is string, n is string|n is number, f is number, t is number, s is number|n is integer, t is integer, f is float, n is float|t is boolean, n is boolean
d is mapping, l is mapping|l is sequence, s is sequence, d is sequence, n is sequence, zz is sequence, (1,) is sequence, (l|map('string')) is sequence|l is iterable, s is iterable, d is iterable, n is iterable, zz is iterable, no is iterable
range is callable, n is callable, s.upper is callable|t is true, t is false, 1 is true, false is false|n is odd, n is even, n is divisibleby 7, n is divisibleby(3)|n is eq 7, n is ne 7, n is lt 8, n is gt 8, n is le 7, n is ge 8, n is equalto 7, n is lessthan 9, n is greaterthan 9
n is in [7], 'x' is in 'xyz', n is not in [7]|'abc' is lower, 'ABC' is upper, 'aBc' is lower, '1' is upper|no is sameas none, t is sameas true, 1 is sameas true, l is sameas l|'upper' is filter, 'nope' is filter, 'odd' is test|('x'|safe) is escaped, 'x' is escaped|not n is odd, n is odd and t, (n is odd) is true
""".strip()
METHODS = """
s.upper(), s.lower(), s.title(), 'abc'.capitalize(), "it's a fox".title(), 'aB'.swapcase()|' x '.strip(), ' x '.lstrip() ~ '|', 'xxyxx'.strip('x'), 'abcx'.rstrip('xc'), '\\n\\n a'.lstrip('\\n'), 'éaé'.strip('é')
'a,b,,c'.split(','), ' a  b '.split(), 'a,b,c'.split(',', 1), 'a b c'.rsplit(' ', 1), ' a b c '.rsplit(none, 1), ' a b c'.split(none, 1), ''.split(','), ''.split(), 'abc'.split('</think>')[-1], 'a--b--c'.rsplit('--', 1)
'abc'.startswith('ab'), 'abc'.endswith('bc'), 'abc'.startswith(('x', 'a')), 'abc'.startswith('b', 1), 'abc'.endswith('')|'a.b.c'.replace('.', '-'), 'aaa'.replace('a', 'b', 1), 'abc'.replace('', '-')|', '.join(['a', 'b']), ''.join([]), '-'.join('abc'), ','.join(d)
'abcabc'.find('c'), 'abc'.find('z'), 'abcabc'.rfind('b'), 'abcabc'.index('c'), 'aéb'.find('b'), 'abcabc'.count('bc'), 'abc'.count(''), 'abcabc'.find('a', 1), 'abcabc'.find('c', 0, 2)|multi.splitlines(), multi.splitlines(true), 'a\\r\\nb\\x0bc'.splitlines()
'{} {}'.format(1, 'x'), '{0}{1}{0}'.format('a', 'b'), '{a} {b[k]} {c.k}'.format(a=1, b={'k': 2}, c={'k': 3}), '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}'.format('a', 'b', 'c', 42, 3.14159, 1234567, 255), '{{}} {!r}'.format('q'), '{:+d} {:e} {:%}'.format(5, 12345.678, 0.25)
'%s' % 'a', '%s %s' % (1, none), '%d%%' % 5, '%05.1f|%-5s|%5s|%x|%o|%e|%g' % (3.14159, 'a', 'b', 255, 8, 12345.678, 0.0001), '%(k)s' % {'k': 'v'}, '%r' % 'q', '%s' % [1], '%+d % d' % (3, 4), '%.2s' % 'abc', '%c' % 'x'
'abc'.isalpha(), '1'.isdigit(), 'a1'.isalnum(), ' '.isspace(), 'ab'.islower(), 'AB'.isupper(), ''.isalpha(), 'é'.isalpha(), 'a'.isascii()|'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('x'), 'abc'.rpartition('x')|'abc'.removeprefix('a'), 'abc'.removesuffix('c'), 'abc'.removeprefix('x')
'5'.zfill(3), '-5'.zfill(4), 'ab'.ljust(4) ~ '|', 'ab'.rjust(4, '*'), 'ab'.center(5, '-')
d.get('b'), d.get('zz'), d.get('zz', 5), d.get('C', 1)
d.keys()|list, d.values()|list|length, d.items()|first, d.keys(), {'a': 1}.values(), {'a': 1}.items(), ed.items()
l.index(2), l.count(1), (1, 2).index(2), l.copy()|range(3), range(1, 7, 2), range(3, 0, -1)|list, range(0)|list, range(2, 5)|length|dict(a=1, b=2), dict([('x', 1)]), dict({'a': 1}, b=2), dict()
d.copy() == d, s.upper()|lower|namespace(a=1).a, namespace({'a': 2}, b=3).b
strftime_now('%d %b %Y'), strftime_now('%Y-%m-%d %H:%M:%S'), strftime_now('%-d %B %y %j %A %a %p %I %%')
""".strip()
STATEMENTS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }} {% endfor %}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a + b + c }}{% endfor %}",
    "{% for x in el %}x{% else %}none{% endfor %}{% for x in zz %}x{% else %}none{% endfor %}{% for x in l if x > 5 %}x{% else %}none{% endfor %}",
    "{% for x in range(10) if x is odd %}{{ loop.index }}:{{ x }}/{{ loop.length }}{% if loop.last %}!{% endif %} {% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in 'aé🙂' %}[{{ x }}]{% endfor %}{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for t in tree recursive %}{{ t.n }}@{{ loop.depth }}{% if t.c %}({{ loop(t.c) }}){% endif %}{% endfor %}",
    "{% set ns = namespace(c=0, seen=false) %}{% for x in l %}{% set ns.c = ns.c + x %}{% endfor %}{{ ns.c }} {{ ns }}",
    "{% set ns = namespace(found=false) %}{% for x in l if not ns.found %}{{ x }}{% set ns.found = true %}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}", "{% if t %}{% set z = 1 %}{% endif %}{{ z }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a = b, a %}{{ a }}{% set (p, q) = [5, 6] %}{{ p }}{{ q }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]{% set y | upper | replace('A', 'o') %}abc{% endset %}{{ y }}",
    "{% set ns = namespace() %}{% set ns.x %}cap{% endset %}{{ ns.x }}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}",
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}{% if e %}a{% elif t %}b{% elif t %}c{% endif %}{% if zz %}x{% endif %}",
    "{% macro f(a, b=2, c='x') %}[{{ a }},{{ b }},{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, c=3) }}{{ f(b=5, a=1) }}{{ f() }}{{ f(1, 2, 3) }}{{ f }}",
    "{% macro f(a) %}{{ a }} {{ varargs }} {{ kwargs }}{% endmacro %}{{ f(1, 2, 3, k=4) }}|{{ f(*[1, 2], **{'z': 1}) }}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in {{ n }}{% endcall %}{% macro g() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) g() %}{{ a + b }}{% endcall %}",
    "{% macro f(x) %}{{ x|default('unset') }}{{ x is defined }}{% endmacro %}{{ f() }}{{ f(none) }}{{ f('') }}",
    "{% macro outer() %}{% macro inner(a) %}({{ a }}){% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}{{ inner is defined }}",
    "{% set v = 1 %}{% macro f() %}{{ v }}{% endmacro %}{% set v = 2 %}{{ f() }}", "{% macro f() %}{% set n = 99 %}{{ n }}{% endmacro %}{{ f() }}{{ n }}",
    "{% macro f() -%}\n  x\n{%- endmacro %}{{ f() ~ f() }}{{ f()|upper }}{{ (f() + '!')|length }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b')|upper %}aaa{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a is defined }}{% with %}{{ n }}{% endwith %}",
    "{% generation %}x{{ n }}{% endgeneration %}", "{% for x in l %}{% generation %}{{ x }}{% endgeneration %}{% endfor %}", "{% print n, s %}{% print 1 %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
    "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = l|select('odd') %}{% for x in g %}{{ x }}{% endfor %}{{ g|first is defined }}",
    "{% set x = l|map('string') %}{% if x %}y{% endif %}{{ x|first }}{{ x|join }}", "{{ zz }}{{ d.zz }}{{ zz ~ 'a' }}{{ [zz] }}{{ zz == zz2 }}{{ zz in [1] }}{{ 1 in zz }}{{ zz or 'x' }}{{ not zz }}",
    "{{ zz|list }}{{ zz|join }}{{ zz|string }}{{ zz|trim }}{{ zz|upper }}{{ zz|first }}{{ zz|sum }}{{ zz|map('x')|list }}", "{% set f = s.upper %}{{ f() }}",
    "{{ rows|map(attribute='v')|map('string')|join('+') }}={{ rows|sum(attribute='v') }}", "{% for g, items in rows|groupby('k') %}{{ g }}:{{ items|length }};{% endfor %}",
    "{% for x in rows|sort(attribute='v', reverse=true) %}{{ x.k }}{% endfor %}", "{{ (1, 2, 3) | last }}{{ {'a': 1} | tojson }}", "{{ [1,2,][0] }}{{ {'a': 1,}['a'] }}{{ dict(a=1,) }}",
    "{% set loop_messages = m[1:] %}{% for x in loop_messages %}{{ x['role'] }}{% endfor %}", "{{ 'a' if n is defined and n is not none else 'b' }}", "{{ m[0]['content'] + '\\n' + m[-1].content }}",
    "{{ -n|abs }}{{ (-n)|abs }}{{ -1.5|round }}", "{{ 'x' in 'xyz' and 'y' not in 'abc' }}", "{{ loop is defined }}{% for x in l %}{{ loop is defined }}{% endfor %}", "{{ s['upper']() }}",
    "{% for i in l %}{% set x %}{{ i }}{% endset %}{{ x }}{% endfor %}{{ x is defined }}", "{% if not (m | selectattr('role', 'equalto', 'system') | list) %}none{% endif %}", "{%- for a in [[1, 2], [3, 4]] %}{% for b in a %}{{ b }}{% endfor %}{% endfor %}",
    "{% set x = namespace(l=[]) %}{% for i in l %}{% set x.l = x.l + [i * 2] %}{% endfor %}{{ x.l }}", "{{ d | dictsort | map('first') | list }}", "{{ true.__class__ }}{{ s.__len__ is defined }}{{ d.__class__ }}",
]
ERRORS = """
zz.x|zz()|zz + 1|n.x.y|zz[0]|1 / 0|1 // 0|1 % 0|'a' + 1|1 + 'a'|none + 1|[1] + (1,)|l < 1|'a' < 1|none < 1|s()|n()|zz|tojson|range|tojson|(l|map('string'))|length|l.append(1)|d.pop('a')|d.update({})|l|nofilter|n is notest
1 in 5|1 in 'abc'|{[]: 1}|[] in {}|raise_exception('no')|range(1000000)|range(1, 2, 0)|'abc'.index('z')|l.index(99)|'%d' % 'x'|'%s %s' % 1|'%s' % (1, 2)|'{} {}'.format(1)|'{x}'.format(y=1)|','.join([1])|'a'.split('')|s.nosuch()|-s|none|abs|zz|int|n|items|list|n|list|n|first|(l|map('abs'))|last
'x'|round|l|sort(attribute='x.y.z')|[1, 'a']|sort|[{}, {}]|sort|[[1], {}]|min|l[::0]|l['a':]|d[1:]|zz[1:]|no[1:]|dict(1)|'x'|indent(none)|'x'|truncate(2)|l|batch|list|l|join(1, 2, 3)|l|map|list|[1]|map('nofilter')|list|l|select('notest')|list|undefined_function(1)|cycler()|f.upper()|dict(a=1).a.b|[[]]|unique|list|t is divisibleby 0|n is in 5|s|replace('a')
""".strip()
SYNTAX_ERRORS = [
    "{{", "{{ n", "{% if t %}", "{% for x in l %}", "{% endif %}", "{% nosuch %}", "{{ n + }}", "{{ 'abc }}", "{{ (n }}", "{{ n) }}", "{{ [1, 2 }}", "{% if %}x{% endif %}", "{% for in l %}{% endfor %}",
    "{% set 1 = 2 %}", "{% set none = 2 %}", "{% set x.y.z = 1 %}", "{# never", "{% raw %}x", "{{ n | }}", "{{ n is }}", "{{ a b }}", "{{ 1 ! 2 }}", "{{ f(a=1, 2) }}", "{{ f(**d, *l) }}", "{% macro f(a=1, b) %}{% endmacro %}",
    "{% break %}", "{% for x in l %}{% macro f() %}{% continue %}{% endmacro %}{% endfor %}", "{{ n is odd is odd }}", "{{ }}", "{% else %}", "{% for x in l %}{% elif t %}{% endfor %}", "{% block x %}", "{{ '\\x4' }}", "{{ d. }}", "{{ l[ }}", "{% call f %}{% endcall %}",
    "{% set ns = 1 %}{% set ns.x = 2 %}", "{% set d.x = 1 %}", "{% set a, b = [1] %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% macro f() %}{% endmacro %}{{ f(1) }}", "{% macro f() %}{% endmacro %}{{ f(x=1) }}", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "{% for x in l %}{{ loop(l) }}{% endfor %}", "{{ 00x }}", "{{ 1.e }}", "{{ @ }}", "{{ n; s }}", "{%- if t -%}", "{% for x in n %}{% endfor %}", "{% filter nofilter %}x{% endfilter %}", "{% set x = %}", "{{ not }}", "{{ l[] }}", "{{ {1} }}", "{{ *l }}",
]


NAMES = set(ENVIRONMENT.filters) | {"nofilter"}


def expressions(text):
    """One expression each. Lines separate them, and so does a bar that no filter's name follows."""
    begin, quote = 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "'\"":
            quote = c
        elif c == "\n" or (c == "|" and re.match(r"\w*", text[i + 1 :]).group() not in NAMES):
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def cases():
    yield from WHITESPACE
    yield from STATEMENTS
    for block in (EXPRESSIONS, FILTERS, TESTS, METHODS, ERRORS):
        yield from ("{{ " + expression + " }}" for expression in expressions(block))
    yield from SYNTAX_ERRORS


print(json.dumps(VARIABLES))
for source in cases():
    text = render(source, VARIABLES)
    print(json.dumps({"template": source, "text": None if isinstance(text, Exception) else text}))
