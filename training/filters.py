"""The filters of texts, in the order they are tried. Each says why it drops a text; training/README.md lists them."""
import collections
import re
import zlib

import numpy as np

# Words in an answer, least and most.
LENGTHS = {"story": (40, 320), "explanation": (20, 260), "question": (3, 200), "smalltalk": (2, 100),
           "followup": (3, 200), "ending": (3, 80), "reason": (4, 40), "result": (3, 40)}
# Under the teacher, each text by itself: the shorter and the more full of codes, the higher by nature.
MOST_PERPLEXITY = {"story": 16, "explanation": 20, "question": 80, "smalltalk": 80, "followup": 80, "ending": 60,
                   "reason": 100, "result": 2000}
MOST_REPEATS = 3  # of any 4-gram of words
ENDS = ('.', '!', '?', '."', '!"', '?"', ".'", "!'", "?'", ".”", "!”", "?”")
ABOUT_ITSELF = re.compile(r"\b(SmolLM|Hugging ?Face|OpenAI|as an AI|language model|AI assistant)\b", re.IGNORECASE)
ODD = re.compile(r"[^\x20-\x7e\n‘’“”–—…éèü°]|https?:|[{}<>|\\]|```|\[[A-Z]")


def word_grams(text, n):
    parts = re.findall(r"[\w']+", text.lower())
    return list(zip(*(parts[i:] for i in range(n))))


def most_repeats(text, n=4):
    """How often the commonest n words in a row occur."""
    return max(collections.Counter(word_grams(text, n)).values(), default=0)


def ends_in_sentence(text):
    return text.rstrip().endswith(ENDS)


def text_fault(kind, row):
    text = row["text"]
    least, most = LENGTHS[kind]
    if not least <= len(text.split()) <= most:
        return "length"
    if not ends_in_sentence(text):
        return "no end"
    if ODD.search(text):
        return "odd characters"
    if ABOUT_ITSELF.search(text):
        return "about itself"
    if most_repeats(text) > MOST_REPEATS:
        return "repetition"
    if row["perplexity"] > MOST_PERPLEXITY[kind]:
        return "perplexity"
    return None


class NearDuplicates:
    """MinHash over five words in a row: 24 hashes in 6 bands of 4; one equal band drops the later text."""

    BANDS, ROWS, SHINGLE, PRIME = 6, 4, 5, (1 << 31) - 1
    FACTORS, OFFSETS = np.random.default_rng(1).integers(1, PRIME, (2, BANDS * ROWS, 1), dtype=np.uint64)

    def __init__(self):
        self.seen = set()

    @classmethod
    def bands(cls, text):
        parts = re.findall(r"\w+", text.lower())
        shingles = {" ".join(parts[i:i + cls.SHINGLE]) for i in range(max(1, len(parts) - cls.SHINGLE + 1))}
        hashes = np.array([zlib.crc32(s.encode()) & 0x7fffffff for s in shingles], dtype=np.uint64)
        least = ((cls.FACTORS * hashes + cls.OFFSETS) % cls.PRIME).min(axis=1)
        return [(i, band.tobytes()) for i, band in enumerate(least.reshape(cls.BANDS, cls.ROWS))]

    def fault(self, bands):
        if not self.seen.isdisjoint(bands):
            return "near duplicate"
        self.seen.update(bands)
        return None


def examine(job):
    """(kind, row) to the row's own fault, or None and its bands: the part of filtering that runs in parallel."""
    kind, row = job
    why = text_fault(kind, row)
    return (why, None) if why else (None, NearDuplicates.bands(row["text"]))
