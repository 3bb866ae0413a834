"""Guarantees, reports and proofs in plain words. Numbers in a guarantee are rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal

import numpy as np

from ldpopt.channel import ERASED, Channel
from ldpopt.design import Design, Verification
from ldpopt.privacy import Guarantee
from ldpopt.rounding import ceil_digits, up
from ldpopt.tolerances import CERTIFIED_GAP


def guarantee_in_words(guarantee: Guarantee) -> str:
    """A sentence about what a guarantee means for the person who answers; without such a sentence, its symbols.

    >>> from ldpopt.privacy import local_dp
    >>> guarantee_in_words(local_dp([[0.75, 0.25], [0.25, 0.75]]))
    'Whatever you answer, any report is at most 3.001 (e^1.0987) times likelier than under any other answer.'
    """
    say = _SENTENCES.get(guarantee.notion)
    return f"{guarantee}." if say is None else say(guarantee.value)


def _local_dp(epsilon: float) -> str:
    if math.isinf(epsilon):
        return "Some report is possible under one answer and impossible under another, so it can rule answers out."
    if epsilon == 0:
        return "Every answer gives every report equally often: the report says nothing about it."
    ratio = ceil_digits(up(math.exp(epsilon)), 4) if epsilon < 700 else "more than 1e304"
    return (
        f"Whatever you answer, any report is at most {ratio} (e^{ceil_digits(epsilon, 5)}) times likelier than under "
        "any other answer."
    )


def _total_variation(eta: float) -> str:
    # Decimal arithmetic is exact here. In floats, eta = 0.2 would become 60.01 % by rounding.
    right = (50 * (1 + Decimal(eta))).quantize(Decimal("0.01"), ROUND_CEILING)
    return (
        f"Who hesitates between two equally likely answers of yours guesses right at most {float(right):g} % of the "
        "time with your report, and 50 % without it."
    )


_SENTENCES: dict[str, Callable[[float], str]] = {"local_dp": _local_dp, "total_variation": _total_variation}


def reports_in_words(
    channel: Channel, p0: object, p1: object, names: tuple[str, str]
) -> list[tuple[str, tuple[str, ...], str]]:
    """For every report: its label, the answers that make it likeliest, and what it says about the groups.

    An answer is listed if its probability of the report is within a billionth of the largest one.
    """
    m0, m1 = channel.push(p0), channel.push(p1)
    said = []
    for y, label in enumerate(channel.outputs):
        column = channel.matrix[:, y]
        silent = label == ERASED or np.ptp(column) <= 1e-9 * column.max()
        likely = (
            () if silent else tuple(str(channel.inputs[x]) for x in np.flatnonzero(column > column.max() * (1 - 1e-9)))
        )
        said.append((str(label), likely, _evidence(float(m0[y]), float(m1[y]), names)))
    return said


def _evidence(m0: float, m1: float, names: tuple[str, str]) -> str:
    low, high = min(m0, m1), max(m0, m1)
    if high <= low * (1 + 1e-9):
        return "says nothing about the group"
    times = f"{high / low:.3g} times" if low > 0 else "only"
    return f"{times} as likely from {names[0] if m0 > m1 else names[1]}" if low > 0 else f"only from {names[m1 > m0]}"


def proof_in_words(design: Design, found: Verification) -> list[str]:
    """The result of checking a design's proof, in sentences: the limits that hold, the value, the bound and the gap.

    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> made = optimal_channel(Divergence(TOTAL_VARIATION, [0.5, 0.5], [0.25, 0.75]), LocalDP(1.0))
    >>> proof_in_words(made, made.verify())[0]
    'The channel keeps its limit on local dp: measured ..., at most 1.0 is allowed.'
    """
    told = [
        f"The channel keeps its limit on {guarantee.title}: measured {guarantee.value!r}, at most {cap!r} is allowed."
        for guarantee, cap in zip(found.guarantees, [one.bound for one in design.constraints], strict=True)
    ]
    name, argument = design.utility.name, design.certificate.argument if design.certificate else ""
    if design.utility.error:
        told += [f"Its {name} is at most {design.value!r} for one respondent."]
        told += [f"No channel within these limits has less than {design.bound!r}: {argument}."]
    else:
        told += [f"It keeps at least {design.value!r} ({name})."]
        told += [f"No channel within these limits keeps more than {design.bound!r}: {argument}."]
    scale = "" if design.utility.logarithmic else " of the value"
    gap = f"So it is within {design.relative_gap:.3g}{scale} of the best"
    limit = f"{design.tolerance:g}"
    return [*told, f"{gap}: certified, to {limit}." if design.certified else f"{gap}: not certified to {limit}."]


def verdict(design: Design) -> str:
    """A sentence about whether the design's proof holds, after it was recomputed.

    >>> from ldpopt import Divergence, LocalDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> verdict(optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0)))
    'optimal, proof checked'
    """
    if design.certificate is None:
        return "no proof asked for"
    checked = design.verify()
    if not checked:
        return "PROOF FAILED: " + "; ".join(checked.failures)
    if design.relative_gap <= CERTIFIED_GAP:
        return "optimal, proof checked"
    if math.isinf(design.relative_gap):
        return "no bound found"
    return f"within {float(ceil_digits(100 * design.relative_gap, 2)):g} % of the optimum, proof checked"
