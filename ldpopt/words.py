"""Designs, proofs and guarantees in plain sentences: the numbers in a guarantee are rounded up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

import numpy as np

from ldpopt.channel import ERASED, Channel
from ldpopt.design import Design, Verification
from ldpopt.design.kernel.certificate import trust_suffix, unproved_assumptions
from ldpopt.files import strict
from ldpopt.files.escapes import filled
from ldpopt.numbers.rounding import ceil_digits, up
from ldpopt.numbers.tolerances import CERTIFIED_GAP
from ldpopt.privacy import Guarantee
from ldpopt.values.labels import Label, as_text

__all__ = [
    "ARITHMETIC", "ENGLISH", "Words", "english", "guarantee_in_words", "guessed_right", "label_in_words",
    "proof_in_words", "recomputed_in", "reports_in_words", "unchecked_in_words", "verdict",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Words:
    """Sentences in one language, by key: `said`.

    >>> Words({"hello": "Hello, {name}."}).say("hello", name="you")
    'Hello, you.'
    """

    sentences: Mapping[str, str]

    def say(self, key: str, **places: object) -> str:
        """Format a sentence with the values of its placeholders."""
        return filled(self.sentences[key], **places)

    def number(self, digits: str) -> str:
        """Convert a number from English notation to that of the language."""
        return digits.translate({ord(","): self.sentences.get("thousands", ","), ord("."): self.sentences["decimal"]})


def english() -> Mapping[str, str]:
    """Load the English sentences about guarantees.

    >>> english()["constant"]
    'Every answer gives every report equally often: the report says nothing about it.'
    """
    return strict.shipped("ldpopt", "data/guarantees-en.json")


ENGLISH = Words(english())


def guarantee_in_words(guarantee: Guarantee, words: Words = ENGLISH, scope: str = "", **places: object) -> str:
    """Describe the meaning of a guarantee for a respondent in one sentence.

    Without such a sentence, its symbols are returned.

    - `words` : the sentences of a language, English by default.
    - `scope` : the end of a sentence's key: ".all" for all reports of a person, ".rounds" for those of all rounds.
    - `places` : further values for the placeholders of the sentence.

    >>> from ldpopt import local_dp, randomized_response
    >>> guarantee_in_words(local_dp(randomized_response(2, 1.0)))[:71]
    'Whatever you answer, each possible report is at most 2.719 times (e^1) '
    """
    value, parameters = guarantee.value, guarantee.parameters
    if guarantee.notion == "shuffled_dp" and "delta" in parameters:
        if math.isinf(value):
            return words.say("shuffled.certain")
        people = words.number(f"{parameters['respondents']:,}")
        ratio = words.number(ceil_digits(up(math.exp(min(value, 700.0))), 6))
        bound = {"times": ratio, "epsilon": words.number(ceil_digits(value, 5))}
        delta = words.number(ceil_digits(parameters["delta"]))
        return words.say(f"shuffled{scope}", **{"people": people, "apart": "", "delta": delta} | bound | places)
    if guarantee.notion == "local_dp":
        if value in (0, math.inf):
            return words.say("certain" if value else "constant")
        ratio = words.number(ceil_digits(up(math.exp(value)), 4)) if value < 700 else words.say("large")
        return words.say(f"ratio{scope}", times=ratio, epsilon=words.number(ceil_digits(value, 5)), **places)
    if guarantee.notion == "total_variation":
        return words.say(f"guess{scope}", right=words.number(guessed_right(value)), **places)
    return f"{guarantee}."


def guessed_right(eta: float) -> str:
    """Compute the largest percentage of right guesses between two answers, rounded up.

    >>> guessed_right(0.2)
    '60.01'
    """
    # Decimal arithmetic is exact here. In floats, eta = 0.2 would become 60.01 % by rounding.
    return f"{float((50 * (1 + Decimal(eta))).quantize(Decimal('0.01'), ROUND_CEILING)):g}"


def reports_in_words(
    channel: Channel, p0: object, p1: object, names: tuple[str, str]
) -> list[tuple[str, tuple[str, ...], str]]:
    """Describe every report: its label, the likeliest answers, and its evidence about the groups.

    >>> from ldpopt import randomized_response
    >>> channel = randomized_response(2, 1.0, inputs=("no", "yes"))
    >>> reports_in_words(channel, [0.9, 0.1], [0.5, 0.5], ("east", "west"))[1]
    ('yes', ('yes',), '1.59 times as likely from west')
    """
    m0, m1 = channel.push(p0), channel.push(p1)
    descriptions = []
    for y, label in enumerate(channel.outputs):
        column = channel.matrix[:, y]
        uninformative = label == ERASED or np.ptp(column) <= 1e-9 * column.max()
        likely = () if uninformative else np.flatnonzero(column > column.max() * (1 - 1e-9))
        (low, _), (high, group) = sorted([(float(m0[y]), names[0]), (float(m1[y]), names[1])], key=lambda pair: pair[0])
        evidence = f"{high / low:.3g} times as likely from {group}" if low > 0 else f"only from {group}"
        if high <= low * (1 + 1e-9):
            evidence = "says nothing about the group"
        descriptions.append((str(label), tuple(str(channel.inputs[x]) for x in likely), evidence))
    return descriptions


def proof_in_words(design: Design, verification: Verification) -> list[str]:
    """Describe the result of checking a design's proof, or list the failures.

    >>> from ldpopt import KL, Divergence, LocalDP, optimal_channel
    >>> design = optimal_channel(Divergence(KL, [0.9, 0.1], [0.5, 0.5]), LocalDP(1.0))
    >>> proof_in_words(design, design.verify())[-1]
    'So it is within ... of the best: certified, to 1e-06.'
    """
    if not verification.proved:
        outcome = "is not proved" if verification.failures else "was not checked"
        stated_sentence = (
            f"The file states a value of {design.value!r} and a bound of {design.bound!r}, which {outcome}."
        )
        return [stated_sentence, *verification.reasons]
    sentences = [
        f"The channel keeps its limit on {guarantee.title}: measured {guarantee.value!r}, at most {limit.bound!r} is "
        "allowed."
        for guarantee, limit in zip(verification.guarantees, design.constraints, strict=True)
    ]
    utility, argument = design.utility, design.certificate.argument if design.certificate else ""
    if utility.error:
        sentences.append(f"Its {utility.name} is at most {design.value!r} for one respondent.")
    else:
        sentences.append(f"It keeps at least {design.value!r} ({utility.name}).")
    comparison = "has less" if utility.error else "keeps more"
    scale = "" if utility.logarithmic else " of the value"
    verdict_text = f"{'certified,' if design.certified else 'not certified'} to {design.tolerance:g}"
    suffix = trust_suffix(unproved_assumptions(design.utility, design.constraints))
    return [
        *sentences,
        f"No channel within these limits {comparison} than {design.bound!r}: {argument}.",
        f"So it is within {design.relative_gap:.3g}{scale} of the best: {verdict_text}{suffix}.",
    ]


ARITHMETIC = {
    False: "float64, rounded outward",
    True: "balls of 256 bits (and float64, rounded outward, where that settles a comparison)",
}
"""How a proof was recomputed, by whether it was exact."""


def recomputed_in(design: Design, exact: bool) -> str:
    """Describe the arithmetic of a design's verification, and its unproved assumptions.

    >>> from ldpopt import KL, Divergence, LocalDP, optimal_channel
    >>> design = optimal_channel(Divergence(KL, [0.9, 0.1], [0.5, 0.5]), LocalDP(1.0))
    >>> recomputed_in(design, exact=False)
    'float64, rounded outward'
    """
    return ARITHMETIC[exact] + trust_suffix(unproved_assumptions(design.utility, design.constraints))


def unchecked_in_words(design: Design) -> str:
    """Format the sentence that names the unchecked parts of a design; empty for none.

    >>> from ldpopt import KL, Divergence, LocalDP, optimal_channel
    >>> design = optimal_channel(Divergence(KL, [0.9, 0.1], [0.5, 0.5]), LocalDP(1.0))
    >>> unchecked_in_words(design)
    ' Not checked: method and reference.'
    """
    parts = design.unchecked_parts
    return f" Not checked: {listed_in_words(parts)}." if parts else ""


def listed_in_words(names: Sequence[str]) -> str:
    """Join names by commas, and "and" before the last."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def verdict(design: Design) -> str:
    """Describe, after recomputation, whether the design's proof holds.

    >>> from ldpopt import KL, Divergence, LocalDP, optimal_channel
    >>> design = optimal_channel(Divergence(KL, [0.9, 0.1], [0.5, 0.5]), LocalDP(1.0))
    >>> verdict(design)
    'optimal, proof checked'
    """
    if design.certificate is None:
        return "no proof asked for"
    verification = design.verify()
    if verification.failures:
        return "PROOF FAILED: " + "; ".join(verification.failures)
    if verification.unchecked:
        return "; ".join(verification.unchecked)
    suffix = trust_suffix(verification.trusted)
    if design.relative_gap <= CERTIFIED_GAP:
        return f"optimal, proof checked{suffix}"
    if math.isinf(design.relative_gap):
        return "no bound found"
    return f"within {float(ceil_digits(100 * design.relative_gap, 2)):g} % of the optimum, proof checked{suffix}"


def label_in_words(label: Label) -> str:
    """Format a label as text; that of several questions with commas between.

    >>> label_in_words(("yes", 3))
    'yes, 3'
    """
    return ", ".join(map(as_text, label)) if isinstance(label, tuple) else as_text(label)
