"""jinja2 set up as the `transformers` package sets it up for chat templates."""

import datetime
import functools
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1760000000  # 2025-10-09 08:53:20 UTC


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(form):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(form)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


ENVIRONMENT = environment()


@functools.lru_cache
def compiled(source):
    return ENVIRONMENT.from_string(source)


def render(source, variables):
    """The text, or the exception that rendering ends in."""
    try:
        return compiled(source).render(**variables)
    except Exception as e:  # whatever a template may run into
        return e
