"""Test vectors: random words, and the reports that every client must draw from them."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Any

from ldpopt.survey.collect.randomness import word_tags
from ldpopt.survey.collect.words import Respondents, SecretKey
from ldpopt.survey.kit.device import ID, report
from ldpopt.survey.plan.plan import Plan, PlannedQuestion

FORMAT = "ldpopt-vectors"
VERSION = 1

ROWS = 6
STEPS = 8
"""The most answers and steps of a question with vectors: the first, the last, and some between."""

IDS = (ID, "a", "fourteen bytes", "fifteen bytes..", "\u05d0\u2192\U0001f3b2, an id of more than one block")


def vectors(plan: Plan, seed: int = 1) -> dict[str, Any]:
    """The vectors of a plan as JSON-ready values (schema ``ldpopt-vectors``, version 1).

    reports : lists [question, answer, word, report] of positions, with the 64-bit word in hexadecimal digits. The words
        are those on both sides of each step of the cumulative weights, the first and the last word, and random ones.
    words : lists [key, id, tag, word]: a 256-bit AES key made for this test, an id, a tag of the plan, and the word
        that results.
    """
    rng = random.Random(seed)
    drawn = [
        [at, x, f"{word:016x}", report(question, x, word)]
        for at, question in enumerate(plan.questions)
        for x in _some(len(question.categories), ROWS)
        for word in boundary_words(question, x, rng)
    ]
    return {"format": FORMAT, "version": VERSION, "plan": plan.checksum, "reports": drawn, "words": _words(plan, rng)}


def boundary_words(question: PlannedQuestion, answer: int, rng: random.Random) -> list[int]:
    """Words around the steps of one answer, at the ends of the range, and a few at random."""
    spare = 64 - question.channel.bits
    every = list(accumulate(question.channel.weights[answer].tolist()))
    found = {0, (1 << 64) - 1, *(rng.getrandbits(64) for _ in range(4))}
    for step in (every[at] for at in _some(len(every), STEPS)):
        # The first word at the step, the last word before it, and the last word with the same top bits as the step.
        found |= {step << spare, (step << spare) - 1, (step << spare) + (1 << spare) - 1}
    return sorted(word for word in found if 0 <= word < 1 << 64)


def memo_key(key: SecretKey) -> bytes:
    """The AES-256 key of memoised words, which a browser keeps as the key of its device."""
    return key.derive(b"ldpopt memo")


def _words(plan: Plan, rng: random.Random) -> list[list[str]]:
    import pyarrow as pa

    if plan.respondent is None:
        return []
    made = []
    for question in plan.questions[:ROWS]:
        tags = word_tags(plan, question)
        for tag in (tags[0], tags[-1]):
            key = SecretKey(rng.randbytes(32))
            words = Respondents(key, pa.array(IDS, pa.string())).macs(tag)[:, 0].tolist()
            hexadecimal = memo_key(key).hex()
            made += [[hexadecimal, one, tag.hex(), f"{word:016x}"] for one, word in zip(IDS, words, strict=True)]
    return made


def _some(count: int, most: int) -> list[int]:
    """At most `most` positions below `count`, spread evenly and including the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(at * (count - 1) / (most - 1)) for at in range(most)})
