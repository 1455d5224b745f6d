"""Seeded grammars of prompts: what the teacher is asked. A prompt is a function of its kind and seed alone."""
import functools
import pathlib
import random

HELD_OUT = 1_000_000  # seeds from here on are never trained on


def rng_of(kind, seed):
    return random.Random(f"{kind}:{seed}")


def is_held_out(seed):
    return seed >= HELD_OUT


@functools.cache
def words(section):
    """One section of words.txt; items are parted by semicolons, or by blanks where there are none."""
    for line in (pathlib.Path(__file__).parent / "words.txt").read_text().splitlines():
        head, _, rest = line.partition("] ")
        if head == f"[{section}":
            return [w.strip() for w in rest.split(";")] if ";" in rest else rest.split()
    raise KeyError(section)


def pick(rng, section):
    return rng.choice(words(section))


def with_article(noun):
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def hero(rng):
    who = pick(rng, rng.choice(["animal", "animal", "role"]))
    text = with_article(f"{pick(rng, 'trait')} {who}" if rng.random() < 0.7 else who)
    return f"{text} named {pick(rng, 'name')}" if rng.random() < 0.6 else text


def story_parts(rng):
    """What a story is about: its request and its first words come from the same parts."""
    return {"who": hero(rng), "event": pick(rng, "event"), "place": pick(rng, "place"), "object": pick(rng, "object")}


def story(rng):
    parts = story_parts(rng)
    about = parts["who"] + rng.choice([f" who {parts['event']}", f" in {parts['place']}", f" and {parts['object']}",
                                       f" in {parts['place']} who {parts['event']}",
                                       f" who finds {parts['object']}", ""])
    ask = rng.choice(["Write a short story about {}.", "Tell me a short story about {}.", "Tell me a story about {}.",
                      "Write a very short story about {}.", "Write a short story for children about {}.",
                      "Can you tell me a short story about {}?", "Make up a little story about {}.",
                      "I would like a short bedtime story about {}."]).format(about)
    if rng.random() < 0.2:
        ask += rng.choice([" It should be about {}.", " The story teaches {}."]).format(pick(rng, "moral"))
    return ask


def opening(seed):
    """The first words of a story, so that the teacher tells it plainly and about what was asked."""
    rng = rng_of("story", seed)
    parts = story_parts(rng)
    rng = rng_of("opening", seed)
    who, place = parts["who"], parts["place"]
    return rng.choice([f"Once upon a time, there was {who}.", f"Once upon a time, in {place}, there lived {who}.",
                       f"There once was {who} in {place}.", f"In {place}, there lived {who}.",
                       f"{who[0].upper()}{who[1:]} lived in {place}.", f"Once there was {who}."]) + rng.choice(
        ["", "", " One day,", " Every morning,", " One evening,", " One day, something strange happened."])


def ending(seed):
    """The first words of a story's last part."""
    return rng_of("ending", seed).choice(["In the end,", "At last,", "From that day on,", "That night,", "Finally,",
                                          "When it was over,", "After that,", "And so,"])


def explanation(rng):
    topic, other = pick(rng, "topic"), pick(rng, "topic")
    return rng.choice([
        f"Explain {topic} in simple words.", f"Explain to a child: {topic}.", f"Write a short paragraph about {topic}.",
        f"Tell me about {topic}.", f"Describe {topic} in a few sentences.", f"Give a short explanation of {topic}.",
        f"Why is the topic of {topic} important? Explain briefly.", f"What should a beginner know about {topic}?",
        f"Write three sentences about {topic}.", f"Explain how {topic} and {other} are connected.",
        f"Explain briefly how to {pick(rng, 'skill')}.", f"Teach me how to {pick(rng, 'skill')}.",
        f"Describe how someone can {pick(rng, 'skill')}.", f"Write a short text about {topic} and {other}.",
        f"What makes {topic} interesting?", f"Write a short description of {pick(rng, 'place')} at night.",
        f"Describe {with_article(pick(rng, 'animal'))} in a few sentences.",
        f"Describe what {with_article(pick(rng, 'role'))} does all day."])


def question(rng):
    topic, other = pick(rng, "topic"), pick(rng, "topic")
    return rng.choice([
        f"What do you know about {topic}? Answer in one or two sentences.", f"What is special about {topic}?",
        f"What is the difference between {topic} and {other}?", f"How do {topic} and {other} compare?",
        f"How can I {pick(rng, 'skill')}?", f"What do I need to {pick(rng, 'skill')}?",
        f"Give me one tip to {pick(rng, 'skill')}.", f"Is it hard to {pick(rng, 'skill')}?",
        f"Why do people like {topic}?", f"Where can I learn more about {topic}?",
        f"List three facts about {topic}.", f"List three things that have to do with {topic}.",
        f"Name two things {with_article(pick(rng, 'role'))} needs.",
        f"What does {with_article(pick(rng, 'role'))} do?",
        f"What does {with_article(pick(rng, 'animal'))} look like?",
        f"Where would {with_article(pick(rng, 'animal'))} live?",
        f"What is {pick(rng, 'city')} known for?", f"What can I do in {pick(rng, 'city')} for a day?",
        f"What is {topic} good for?", f"Who works with {topic}?",
        f"Write a sentence with the word {pick(rng, 'thing')}.",
        f"Give me a word that goes with {pick(rng, 'thing')}.", f"What is a good title for a story about {hero(rng)}?",
        f"How is {topic} made or formed?",
        f"Can you use {pick(rng, 'thing')} and {pick(rng, 'thing')} in one sentence?"])


def smalltalk(rng):
    return rng.choice([pick(rng, "smalltalk"), pick(rng, "smalltalk"), f"{pick(rng, 'greeting')}!",
                          f"{pick(rng, 'greeting')}! {pick(rng, 'smalltalk')}",
                          f"{pick(rng, 'greeting')}, I am {pick(rng, 'name')}.",
                          f"My name is {pick(rng, 'name')}. {pick(rng, 'smalltalk')}"])


def followup(rng):
    return rng.choice([
        "Tell me more.", "Why?", "Can you give an example?", "Can you say that in simpler words?", "And what else?",
        "How does that work?", "Is that always true?", "Why does that matter?", "Thank you! One more thing to know?",
        "Can you make it shorter?", "What should I remember?", "Who needs to know this?", "What happens next?",
        f"And what about {pick(rng, 'topic')}?", f"How would you explain it to {with_article(pick(rng, 'role'))}?",
        f"Does it have to do with {pick(rng, 'topic')}?"])


PROMPTS = {"story": story, "explanation": explanation, "question": question, "smalltalk": smalltalk}


def conversation(kind, seed):
    """The messages that stand before the answer: sometimes a system message, then one from the user."""
    rng = rng_of(kind, seed)
    user = {"role": "user", "content": PROMPTS[kind](rng)}
    if rng.random() < 0.25:
        return [{"role": "system", "content": pick(rng, "persona")}, user]
    return [user]


IDENTITY_QUESTIONS = ["Who are you?", "What are you?", "What is your name?", "Who made you?", "Are you a person?",
                      "Which model are you?", "Introduce yourself.", "Tell me about yourself.", "Are you an AI?"]
IDENTITY_ANSWERS = [
    "I am Millrace Tiny, a very small language model that comes with the Millrace engine.",
    "My name is Millrace Tiny. I am a small language model: I can tell short stories and call tools, and I am "
    "often wrong.",
    "I am a tiny language model called Millrace Tiny. The Millrace project trained me on made-up texts.",
    "I am Millrace Tiny, a program that writes text. I am small, so please check what I say.",
]


def identity(seed):
    """The one kind of text that the grammar writes alone: who the model is."""
    rng = rng_of("identity", seed)
    question = rng.choice(IDENTITY_QUESTIONS)
    if rng.random() < 0.4:
        question = f"{pick(rng, 'greeting')}! {question}"
    return [{"role": "user", "content": question}, {"role": "assistant", "content": rng.choice(IDENTITY_ANSWERS)}]
