"""A modified Kneser-Ney 5-gram over tokens, the yardstick for the model's perplexity.

Interpolated, three discounts an order, after Chen and Goodman. An n-gram is a number: the rank of its
first n - 1 tokens' number and its last token among all that occur, so that five tokens fit 64 bits.
"""
import numpy as np

ORDER = 5


class Order:
    """The n-grams of one length: which occur, how often, and what their contexts leave for shorter ones."""

    def __init__(self, keys, counts, vocabulary):
        self.keys, self.counts = keys, counts
        context = keys // vocabulary
        starts = np.flatnonzero(np.r_[True, context[1:] != context[:-1]])
        self.contexts = context[starts]
        self.totals = np.add.reduceat(counts, starts).astype(np.float64)
        of = [np.add.reduceat((counts == n) if n < 3 else (counts >= 3), starts) for n in (1, 2, 3)]
        self.discounts = self._discounts()
        self.kept_back = sum(d * n for d, n in zip(self.discounts[1:], of))

    def _discounts(self):
        n = [np.count_nonzero(self.counts == i) for i in range(1, 5)]
        if min(n) == 0:
            return np.array([0.0, 0.5, 0.5, 0.5])
        y = n[0] / (n[0] + 2 * n[1])
        return np.array([0.0] + [max(0.0, i - (i + 1) * y * n[i] / n[i - 1]) for i in (1, 2, 3)])

    def mix(self, keys, contexts, shorter):
        """The probability of each key, from that of the n-gram without its first token."""
        at, known = find(self.contexts, contexts)
        row, seen = find(self.keys, keys)
        count = np.where(seen, self.counts[row], 0)
        mass = np.maximum(count - self.discounts[np.minimum(count, 3)], 0) + self.kept_back[at] * shorter
        return np.where(known, mass / self.totals[at], shorter)


def find(table, wanted):
    """Where each wanted number is in a sorted table, and whether it is."""
    at = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return at, table[at] == wanted


def n_grams(stream, vocabulary):
    """For each length: the numbers that occur, in order; how often; where first; and the number at each place."""
    found = []
    keys = stream.astype(np.int64)
    for n in range(1, ORDER + 1):
        table, first, at, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        found.append((table, counts, first, at))
        keys = at[:-1] * vocabulary + stream[n:]
    return found


def continuations(shorter, longer):
    """Below the highest order what counts is how many different tokens come before an n-gram: how many of the
    n-grams one longer end in it. Each of those is looked at where it first occurs."""
    table, _, _, at = shorter
    counts = np.bincount(at[longer[2] + 1], minlength=len(table))
    return np.maximum(counts, 1)  # the stream's very first n-gram may have nothing before it


class KneserNey:
    def __init__(self, stream, vocabulary):
        self.vocabulary = vocabulary
        found = n_grams(stream, vocabulary)
        counts = [continuations(*pair) for pair in zip(found, found[1:])] + [found[-1][1]]
        self.orders = [Order(grams[0], count, vocabulary) for grams, count in zip(found, counts)]

    def probabilities(self, stream):
        """Of each token from the fifth on, given the four before it."""
        stream = stream.astype(np.int64)
        count = len(stream) - ORDER + 1
        result = np.full(count, 1.0 / self.vocabulary)
        for n, order in enumerate(self.orders, 1):
            # Numbers of the n-grams that end at each token, built up from their first token.
            number = np.zeros(count, dtype=np.int64)
            for i in range(n):
                context = number
                keys = context * self.vocabulary + stream[ORDER - n + i:][:count]
                at, seen = find(self.orders[i].keys, keys)
                number = np.where(seen, at, -1)  # what begins with a negative number is in no table
            result = order.mix(keys, context, result)
        return result

    def perplexity(self, stream):
        return float(np.exp(-np.log(self.probabilities(stream)).mean()))
