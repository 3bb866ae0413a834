"""The view "Tell two populations apart": the certified optimum for a state, checked by the kernel at once."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike
from ldpopt.deadline import Progress
from ldpopt.design import (
    ApproximateLDP,
    Constraint,
    Design,
    Divergence,
    LocalDP,
    Outputs,
    RenyiLDP,
    TotalVariation,
    Verification,
    optimal_channel,
)
from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.divergences import KL, FDivergence
from ldpopt.divergences.base import spelled
from ldpopt.errors import InvalidInput, Phrase
from ldpopt.plots.channel import ratio_order
from ldpopt.reports.words import guarantee_in_words, reports_in_words
from ldpopt.studio.fields import State, field, law, names_of, number, take, text, texts, whole, wrong
from ldpopt.survey.hypothesis_tests import checked_level
from ldpopt.survey.two_hypotheses import respondents_to_tell

MAX_ANSWERS = 5000
"""The most answers on the page; the library takes more."""
_READ = ("p0", "p1", "labels", "names", "divergence", "epsilon", "eta", "delta", "renyi_order", "renyi", "outputs")


@dataclass(frozen=True)
class Posed:
    """The problem of a state: the utility, the constraints, and the names of the populations.

    quick : whether the constraint is pure epsilon with or without a cap eta, which takes milliseconds.
    """

    utility: Divergence
    constraints: tuple[Constraint, ...]
    names: tuple[str, str]
    epsilon: float
    eta: float | None
    quick: bool


@dataclass(frozen=True)
class Solved:
    """A problem's design, the kernel's verification of it, and the seconds for each."""

    posed: Posed
    design: Design
    checked: Verification
    seconds: Mapping[str, float]


def posed(state: State) -> Posed:
    """The problem of a state; `FieldError` for a wrong field.

    p0, p1 : distributions, lists of k numbers. labels : k names of answers, if any. names : of the populations, if any.
    divergence : as on the command line, ``kl`` or ``hockey-stick:1.5``. epsilon : in nats. eta : a cap in [0, 1], if
        any.
    delta, renyi_order with renyi, outputs : further limits, if any.

    >>> posed({"p0": [0.5, 0.5], "p1": [0.2, 0.8], "epsilon": 1.0}).quick
    True
    """
    first, second = take(state, "p0", law), take(state, "p1", law)
    k = len(first)
    if not 2 <= k <= MAX_ANSWERS:
        raise wrong("p0", f"2 to {MAX_ANSWERS} answers", k)
    if len(second) != k:
        raise wrong("p1", f"{k} entries, as many as p0", len(second))
    labels = names_of(take(state, "labels", texts, None), k)
    names = take(state, "names", texts, ("P0", "P1"))
    if len(names) != 2 or not all(names):
        raise wrong("names", "two names", Phrase(len(names)))
    f = take(state, "divergence", divergence, KL)
    epsilon = take(state, "epsilon", positive_epsilon)
    eta = take(state, "eta", unit_interval, None)
    delta = take(state, "delta", unit_interval, None)
    limits: list[Constraint] = []
    with field("delta"):
        limits.append(ApproximateLDP(epsilon, delta) if delta else LocalDP(epsilon))
    if eta is not None:
        limits.append(TotalVariation(eta))
    renyi = take(state, "renyi", number, None)
    if renyi is not None:
        order = take(state, "renyi_order", number)
        with field("renyi_order" if not 1 < order < math.inf else "renyi"):
            limits.append(RenyiLDP(order, renyi))
    outputs = take(state, "outputs", whole, None)
    if outputs is not None:
        with field("outputs"):
            limits.append(Outputs(outputs))
    with field("p1"):
        utility = Divergence(f, first, second, inputs=labels)
    quick = not delta and renyi is None and outputs is None
    return Posed(utility, tuple(limits), (names[0], names[1]), epsilon, eta, quick)


def solved(state: State) -> Solved:
    """The design of a state, and whether it verifies. The last few are cached.

    >>> bool(solved({"p0": [0.5, 0.5], "p1": [0.2, 0.8], "epsilon": 1.0}).checked)
    True
    """
    return _solved(json.dumps({name: state.get(name) for name in _READ}, sort_keys=True))


@lru_cache(maxsize=8)
def _solved(state: str) -> Solved:
    return _found(json.loads(state), False)


def _found(state: State, report: Progress) -> Solved:
    problem = posed(state)
    begun = time.perf_counter()
    design = optimal_channel(problem.utility, problem.constraints, progress=report)
    found = time.perf_counter()
    checked = design.verify()
    return Solved(problem, design, checked, {"design": found - begun, "verify": time.perf_counter() - found})


def view(state: State) -> dict[str, Any]:
    """The content of the page for a state: sorted answers, the channel by blocks, value, bound and proof.

    >>> shown = view({"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3})
    >>> shown["proof"]["verified"], round(shown["value"], 6)
    (True, 0.029225)
    """
    return _shown(state, solved(state))


def _shown(state: State, made: Solved) -> dict[str, Any]:
    """The same of a design that was found."""
    design, utility, names = made.design, made.posed.utility, made.posed.names
    p0, p1 = np.asarray(utility.p0), np.asarray(utility.p1)
    ratio, order = ratio_order(p0, p1)
    m0, m1 = design.channel.push(p0), design.channel.push(p1)
    whole_value = float(utility.unprivate)
    told = reports_in_words(design.channel, p0, p1, names)
    return {
        "names": names,
        "answers": [
            {"at": int(x), "label": str(design.channel.inputs[x]), "p0": p0[x], "p1": p1[x], "ratio": _ratio(ratio[x])}
            for x in order
        ],
        "blocks": blocks(design.channel.matrix[order]),
        "reports": [
            {"label": label, "m0": m0[y], "m1": m1[y], "likely": likely[:6], "evidence": evidence}
            for y, (label, likely, evidence) in enumerate(told)
        ],
        "divergence": utility.name,
        "value": design.value,
        "bound": design.bound,
        "gap": design.gap,
        "relative_gap": design.relative_gap,
        "unprivate": whole_value,
        "share": design.value / whole_value if 0 < whole_value < math.inf else None,
        "proof": proof(design, made.checked),
        "guarantees": [
            {"title": one.title, "value": one.value, "cap": limit.bound, "words": guarantee_in_words(one)}
            for one, limit in zip(design.guarantees, design.constraints, strict=True)
        ],
        "reach": math.tanh(made.posed.epsilon / 2),
        "method": design.method,
        "note": design.note,
        "respondents": respondents(state, design),
        "seconds": made.seconds,
    }


def job(state: State, report: Callable[[float], None]) -> dict[str, Any]:
    """The content of `view`, for problems that take long."""
    return _shown(state, _found(state, report))


def warm() -> None:
    """Design and verify once, so that the first picture does not wait for imports."""
    view({"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3})


def proof(design: Design, checked: Verification) -> dict[str, Any]:
    """The badge. It is green only if the kernel has verified this design and the design is certified."""
    return {
        "verified": bool(checked),
        "certified": bool(checked) and design.certified,
        "tolerance": design.tolerance,
        "argument": design.certificate.argument if design.certificate else "",
        "failures": list(checked.failures),
    }


def blocks(rows: Any) -> list[dict[str, Any]]:
    """Runs of equal rows of a channel whose answers are sorted.

    Answers of one run have the same distribution of reports.

    >>> [(run["start"], run["stop"]) for run in blocks(np.array([[0.7, 0.3], [0.3, 0.7], [0.3, 0.7]]))]
    [(0, 1), (1, 3)]
    """
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    stops = [*starts[1:].tolist(), len(rows)]
    return [{"start": int(a), "stop": int(b), "row": rows[a]} for a, b in zip(starts, stops, strict=True)]


def respondents(state: State, design: Design) -> dict[str, Any]:
    """The respondents that the best test of one population against the other needs, with and without privacy."""
    power = take(state, "power", checked_level, 0.8)
    level = take(state, "level", checked_level, 0.05)
    utility = design.utility
    private, open_ = (needed(channel, utility, power, level) for channel in (design.channel, np.eye(len(utility.p0))))
    return {"power": power, "level": level, "private": private, "open": open_}


def divergence(value: Any, what: str) -> FDivergence:
    """The divergence that a text names, as on the command line."""
    return spelled(text(value, what))


def needed(channel: ChannelLike, utility: Divergence, power: float, level: float) -> int | None:
    """The respondents for a test between the populations; None if both give the same reports."""
    try:
        return respondents_to_tell(channel, utility.p0, utility.p1, power, level).respondents
    except InvalidInput:
        return None


def _ratio(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
