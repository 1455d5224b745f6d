"""The grammar of tools: names, schemas, requests, calls and results; and the check that a call is valid.

Names are composed or invented, so that a model can only copy them. One name in eight, by its hash, is kept
for the held-out part: no training text has it.
"""
import json
import zlib

from training.grammar import pick, with_article

ONSETS = "b c d f g h j k l m n p r s t v w z br cr dr fl gl kr pl pr sk sl st tr vr".split()
VOWELS = "a e i o u ai ee ou".split()
CODAS = ["", "", "", "n", "l", "k", "x", "r", "s", "m", "t"]


def invented_word(rng):
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(rng.choice([1, 2, 2, 3])))


def is_held_out_name(name):
    return zlib.crc32(name.encode()) % 8 == 0


def join_words(rng, parts):
    """snake_case, camelCase, PascalCase or kebab-case."""
    style = rng.random()
    if style < 0.55:
        return "_".join(parts)
    if style < 0.8:
        return parts[0] + "".join(p.capitalize() for p in parts[1:])
    return "".join(p.capitalize() for p in parts) if style < 0.9 else "-".join(parts)


def tool_name(rng, verb, noun, held_out):
    while True:
        parts = [verb] + noun.split()
        form = rng.random()
        if form < 0.15:
            parts = noun.split() + [verb]
        elif form < 0.35:
            parts = [verb, invented_word(rng)]
        elif form < 0.55:
            parts = [invented_word(rng) for _ in range(rng.choice([1, 2, 2]))]
        elif form < 0.65:
            parts += [rng.choice(["v2", "now", "all", "by_id", invented_word(rng), pick(rng, "thing")])]
        name = join_words(rng, parts)
        if rng.random() < 0.08:
            name = f"mcp__{invented_word(rng)}__{name}"
        if is_held_out_name(name) == held_out:
            return name


def made_up(rng):
    return rng.choice([pick(rng, "thing"), invented_word(rng)])


def text_value(rng, name):
    if name in ("city", "origin", "destination", "location"):
        return pick(rng, "city")
    if name in ("user", "owner", "recipient", "author"):
        return pick(rng, "name")
    if name in ("date", "start_date", "deadline"):
        return f"{rng.randint(2020, 2031)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    if name in ("email", "address"):
        return f"{pick(rng, 'name').lower()}@{made_up(rng)}.{rng.choice(['com', 'org', 'net'])}"
    if name in ("path", "file", "folder"):
        return rng.choice(["", "/", "src/", "docs/"]) + made_up(rng) + rng.choice([".txt", ".md", ".py", ".csv", ""])
    if name.endswith("id") or name in ("code", "reference"):
        return rng.choice([f"{invented_word(rng)[:3].upper()}-{rng.randint(1, 9999)}", str(rng.randint(100, 99999)),
                           f"{invented_word(rng)}{rng.randint(1, 99)}"])
    return rng.choice([f"{pick(rng, 'adjective')} {pick(rng, 'thing')}", pick(rng, "thing"), invented_word(rng),
                       f"{pick(rng, 'thing')} {pick(rng, 'thing')}",
                       f"the {pick(rng, 'adjective')} {pick(rng, 'thing')}"])


# What a parameter of each kind may be called.
NAMES = {
    "string": """city origin destination location user owner recipient author date start_date deadline email address
        path file folder id item_id code reference title name query label message topic category keyword comment
        color subject""".split(),
    "integer": """count limit priority minutes page quantity year days seats level hours retries width height offset
        age""".split(),
    "number": "amount weight price latitude longitude ratio distance score rate volume speed threshold".split(),
    "boolean": "urgent dry_run notify recursive force verbose public silent overwrite repeat".split(),
    "enum": "unit format mode kind order priority_level size status style option type".split(),
    "array": "tags names items".split(),
}
KIND_WEIGHTS = [46, 18, 10, 9, 14, 3]


def decorated(rng, name):
    roll = rng.random()
    if roll < 0.6:
        return name
    if roll < 0.75:
        return invented_word(rng)
    return join_words(rng, [rng.choice(["target", "new", "item", "max", "my", pick(rng, "thing")])] + name.split("_"))


def choices(rng):
    """The values of an enum."""
    if rng.random() < 0.7:
        return pick(rng, "group").split()
    return [made_up(rng) for _ in range(rng.randint(2, 4))]


def typed(rng, kind, name):
    """A schema and a value that fits it."""
    if kind == "string":
        return {"type": "string"}, text_value(rng, name)
    if kind == "integer":
        return {"type": "integer"}, rng.choice([rng.randint(1, 12), rng.randint(1, 100), rng.randint(1, 3000)])
    if kind == "number":
        return {"type": "number"}, round(rng.uniform(0.1, rng.choice([2, 20, 500])), rng.choice([1, 2]))
    if kind == "boolean":
        return {"type": "boolean"}, rng.random() < 0.6
    if kind == "enum":
        values = choices(rng)
        return {"type": "string", "enum": values}, rng.choice(values)
    return ({"type": "array", "items": {"type": "string"}},
            [pick(rng, "thing") for _ in range(rng.randint(1, 3))])


def parameter(rng):
    """(name, schema, value): the value is what the user will ask for."""
    kind = rng.choices(list(NAMES), KIND_WEIGHTS)[0]
    base = rng.choice(NAMES[kind])
    name = decorated(rng, base)
    schema, value = typed(rng, kind, base)
    if rng.random() < 0.5:
        text = f"The {base.replace('_', ' ')}{rng.choice(['', ' to use', ' of the item', ''])}"
        description = {"description": text + rng.choice(["", "."])}
        schema = {**description, **schema} if rng.random() < 0.3 else {**schema, **description}
    return name, schema, value


def tool(rng, held_out):
    """A tool, what it does in words, and the values of a request for it."""
    verb, noun = pick(rng, "verb"), pick(rng, "noun")
    name = tool_name(rng, verb, noun, held_out)
    parameters = {p[0]: p for p in (parameter(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])))}
    required = [p for p in parameters if rng.random() < 0.7]
    schema = {"type": "object", "properties": {p: parameters[p][1] for p in parameters}}
    if required or rng.random() < 0.5:
        schema["required"] = required
    description = rng.choice([f"{verb.capitalize()} {with_article(noun)}", f"{verb.capitalize()} the {noun}",
                              f"Use this to {verb} {with_article(noun)}", f"{verb.capitalize()} one {noun}"])
    function = {"name": name, "description": description + rng.choice([".", ""]), "parameters": schema}
    mentioned = [p for p in parameters if p in required or rng.random() < 0.5]
    return {"definition": {"type": "function", "function": function}, "verb": verb, "noun": noun,
            "arguments": {p: parameters[p][2] for p in mentioned}}


def tool_set(rng, held_out):
    """One to four tools of different names and purposes."""
    chosen = {}
    for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
        made = tool(rng, held_out)
        if all((made["verb"], made["noun"]) != (t["verb"], t["noun"]) for t in chosen.values()):
            chosen[made["definition"]["function"]["name"]] = made
    return list(chosen.values())


def in_words(name):
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return spaced.replace("_", " ").replace("-", " ").strip()


def said(rng, name, value):
    """How a user gives one value."""
    phrase = name if rng.random() < 0.3 else in_words(name)
    if isinstance(value, bool):
        return f"{phrase} {rng.choice(['set to', 'is', 'should be', '='])} {str(value).lower()}"
    if isinstance(value, list):
        return f"{phrase} {', '.join(value)}"
    quote = rng.choice(['"', "'", "", ""]) if isinstance(value, str) else ""
    return f"{phrase}{rng.choice([' ', ' ', ' = ', ': ', ' set to '])}{quote}{value}{quote}"


def request(rng, made):
    """A user's words for one call."""
    do = f"{made['verb']} {rng.choice(['the', 'the', 'a', 'my', 'this'])} {made['noun']}"
    if rng.random() < 0.15:
        do = f"{rng.choice(['use', 'call', 'run'])} {made['definition']['function']['name']}"
    arguments = list(made["arguments"].items())
    if rng.random() < 0.3:
        rng.shuffle(arguments)
    parts = [said(rng, name, value) for name, value in arguments]
    if not parts:
        return sentence(rng.choice(["Please {}.", "{}.", "Can you {}?", "I want to {}.", "{} now, please."]), do)
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    return sentence(rng.choice(["Please {} with {}.", "{} with {}.", "Can you {} with {}?", "I need to {}: {}.",
                                "Could you {}? Use {}.", "{}; {}.", "{} for me, {}.", "I want to {} with {}, please."]),
                    do, listed)


def sentence(form, *parts):
    text = form.format(*parts)
    return text[0].upper() + text[1:]


def doing(made):
    return f"{made['verb']} the {made['noun']}"


def call_message(made):
    function = {"name": made["definition"]["function"]["name"], "arguments": made["arguments"]}
    return {"type": "function", "function": function}


def result(rng, made):
    """What the tool gives back, as JSON, and one value in it that an answer should say."""
    value = rng.choice([pick(rng, "city"), pick(rng, "thing"),
                        f"{invented_word(rng)[:3].upper()}-{rng.randint(1, 999)}", rng.randint(1, 500),
                        round(rng.uniform(0.1, 99), 1), pick(rng, "name")])
    noun = made["noun"].replace(" ", "_")
    key = rng.choice(["result", "id", "value", "name", "reference", noun, "total", "answer"])
    body = {key: value}
    if rng.random() < 0.5:
        body = {"status": rng.choice(["ok", "done", "success"]), **body}
    return body, key, value


def result_answer(rng, key, value):
    """The first words of an answer that tells the result."""
    name = key.replace("_", " ")
    return rng.choice([f"Done. The {name} is {value}", f"The {name} is {value}", f"That worked: the {name} is {value}",
                       f"I did that. The {name} is {value}"])


def refusal(rng, made):
    do = f"{made['verb']} {with_article(made['noun'])}"
    return rng.choice([f"I have no tool to {do}.", f"Sorry, none of my tools can {do}.",
                       f"I cannot {do}: there is no tool for it.", f"I do not have a tool that can {do}."])


TYPE_CHECKS = {"string": lambda v: isinstance(v, str), "boolean": lambda v: isinstance(v, bool),
               "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
               "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
               "array": lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v)}


def fault(text, definitions):
    """None if the text holds one valid call of these tools, else what is wrong with it."""
    before, opened, rest = text.partition("<tool_call>")
    inside, closed, _ = rest.partition("</tool_call>")
    if not opened or not closed:
        return "no call"
    try:
        call = json.loads(inside)
    except ValueError:
        return "not JSON"
    if not isinstance(call, dict) or set(call) != {"name", "arguments"} or not isinstance(call["arguments"], dict):
        return "not a call"
    known = {d["function"]["name"]: d["function"]["parameters"] for d in definitions}
    if call["name"] not in known:
        return "unknown name"
    schema, arguments = known[call["name"]], call["arguments"]
    if any(name not in arguments for name in schema.get("required", [])):
        return "missing argument"
    for name, value in arguments.items():
        wanted = schema["properties"].get(name)
        if wanted is None:
            return "unknown argument"
        if not TYPE_CHECKS[wanted["type"]](value) or value not in wanted.get("enum", [value]):
            return "wrong value"
    return None
