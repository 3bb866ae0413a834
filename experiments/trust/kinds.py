"""Designs of every kind that `ldpopt_check` covers, and files with one number changed: two programs, the same verdicts.

    python experiments/trust/kinds.py [--designs N] [--mutants N] [--seed S]

Honest designs must be accepted by both, with `certified` as it stands in the file. Of a changed file, the verdicts must
be the same, but for what the checker says it does not support; where float64 leaves a claim open, the kernel's exact
arithmetic decides. Ends with exit code 1 at any disagreement.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from ldpopt.design import (
    AOptimal,
    ApproximateLDP,
    COptimal,
    Divergence,
    DOptimal,
    ExpectedLoss,
    FisherInformation,
    LocalDP,
    MutualInformation,
    MVOptimal,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.files import design_text
from ldpopt.design.load import checked, design_of
from ldpopt.divergences import NAMED
from ldpopt.errors import LdpoptError

checker: Any = importlib.import_module("ldpopt_check")
Document = dict[str, Any]
CRITERIA = ("A", "weighted A", "C", "D", "MV")
UTILITIES = ("divergence", "information", "sum", "worst", "loss", "minimax", *CRITERIA)


def problem(rng: np.random.Generator) -> tuple[str, Any, list[Any]]:
    """A random problem with a few answers: its kind, its utility and its constraints."""
    kind, k = str(rng.choice(UTILITIES)), int(rng.integers(2, 6))
    p, q, r = rng.dirichlet(np.ones(k), 3)
    f = NAMED[str(rng.choice([*NAMED]))]
    loss = rng.uniform(size=(k, k))
    criteria = {
        "A": AOptimal(),
        "weighted A": AOptimal(rng.uniform(0.1, 1, k)),
        "C": COptimal(rng.normal(size=k)),
        "D": DOptimal(),
        "MV": MVOptimal(),
    }
    made = {
        "divergence": lambda: Divergence(f, p, q),
        "information": lambda: MutualInformation(p),
        "sum": lambda: WeightedSum([1.0, 0.5], [Divergence(f, p, q), MutualInformation(r)]),
        "worst": lambda: WorstOf(f, p, [q, r]),
        "loss": lambda: ExpectedLoss(p, loss),
        "minimax": lambda: ExpectedLoss(None, loss),
    }
    utility = FisherInformation(p, criteria[kind]) if kind in CRITERIA else made[kind]()
    epsilon, eta = float(rng.uniform(0.1, 3)), float(rng.uniform(0.05, 0.6))
    graph = nx.path_graph(k)
    asked: list[list[Any]] = [[LocalDP(epsilon)], [LocalDP(epsilon), TotalVariation(eta)], [LocalDP(epsilon, graph)]]
    if kind not in CRITERIA:
        asked += [[ApproximateLDP(epsilon, eta / 4)]]
    return kind, utility, asked[int(rng.integers(len(asked)))]


def designs(seed: int) -> Iterator[tuple[str, Document]]:
    """Honest designs without end: (kind and certificate, file)."""
    number = 0
    while True:
        kind, utility, constraints = problem(np.random.default_rng([seed, number]))
        number += 1
        try:
            document = json.loads(design_text(optimal_channel(utility, constraints)))
        except LdpoptError:
            continue  # such as hypotheses that are told apart without limit
        yield f"{kind}, {(document['certificate'] or {}).get('kind')}", document


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of the numbers of a document."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))
    elif isinstance(value, float):
        yield path


def mutant(document: Document, rng: np.random.Generator) -> Document:
    """The file with one number changed, or two numbers exchanged."""
    made = copy.deepcopy(document)
    claims = [(name,) for name in ("value", "lower_bound", "upper_bound", "tolerance")]
    every = [*leaves(made), *claims * 4]
    where = [every[int(at)] for at in rng.choice(len(every), 2, replace=False)]
    parts = []
    for path in where:
        holder = made
        for key in path[:-1]:
            holder = holder[key]
        parts.append((holder, path[-1]))
    (holder, key), (other, place) = parts
    x = holder[key]
    if rng.uniform() < 0.2:
        holder[key], other[place] = other[place], x
    elif isinstance(x, float):
        size = 10.0 ** -rng.uniform(0, 12)
        holder[key] = [x * (1 + size), x * (1 - size), x + size, -x, 0.0, 2 * x][int(rng.integers(6))]
    if rng.uniform() < 0.1:
        made["certified"] = not made["certified"]
    return made


def verdicts(document: Document) -> tuple[bool, bool | None]:
    """Whether the kernel and the checker accept a file; None where the checker does not judge it."""
    try:
        ours = bool(checked(design_of(json.dumps(document)))[0])
    except LdpoptError:
        ours = False
    try:
        theirs: bool | None = not checker.check(document).failures
    except checker.BadInput:
        theirs = None
    return ours, theirs


def main() -> int:
    """Judge, count and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=100)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts, wrong, honest, source = Counter[str](), 0, [], designs(given.seed)
    for number in range(given.designs):
        kind, document = next(source)
        found = verdicts(document)
        said = (
            {True: "both", False: "the kernel alone", None: "not covered"}[found[1]] if found[0] else "not the kernel"
        )
        counts[said] += 1
        if found[0] and found[1]:
            honest.append((kind, document))
        if not found[0] or found[1] is False:
            wrong += 1
            print(f"design {number} ({kind}): {said}", flush=True)
    refused, rng = Counter[str](), np.random.default_rng(given.seed)
    for number in range(given.mutants):
        kind, document = honest[number % len(honest)]
        made = mutant(document, rng)
        ours, theirs = verdicts(made)
        refused[
            {(True, True): "accepted by both", (False, False): "refused by both"}.get((ours, bool(theirs)), "differ")
        ] += 1
        if ours is not bool(theirs) and theirs is not None:
            wrong += 1
            print(f"mutant {number} ({kind}): kernel {ours}, checker {theirs}", flush=True)
    print(f"{given.designs} designs: {dict(counts)}; {given.mutants} mutants: {dict(refused)}; {wrong} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
