"""Designs of every kind that `ldpopt_check` covers, and changed files of them: three checks, the same verdicts.

    python experiments/trust/kinds.py [--designs N] [--mutants N a design] [--first N] [--csv FILE]

Honest designs must be accepted by `verify`, `verify --exact` and the checker, with `certified` as it stands in the
file. Of a changed file, the verdicts must be the same, but for what a check says it does not cover; where float64
leaves a claim open, the kernel's exact arithmetic decides. Half of the changes are of one number or two, half of what a
file says beside its numbers: labels, decisions, edges, lower ends and witnesses. By some of these a file is false or
none, whatever its numbers are, so that no check may accept it. Design number N and its mutants depend on N alone, so
that a long run can be cut into parts: each adds its counts to the file. Every disagreement is printed with what was
changed. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import copy
import csv
import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
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
    Marginals,
    MutualInformation,
    MVOptimal,
    RenyiLDP,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
    parse_design,
    verify_design,
)
from ldpopt.divergences import NAMED
from ldpopt.errors import LdpoptError

checker: Any = importlib.import_module("ldpopt_check")
Document = dict[str, Any]
SEED = 26
ROOM = 2.0**-36
CRITERIA = ("A", "weighted A", "C", "D", "MV")
UTILITIES = ("divergence", "information", "sum", "worst", "loss", "minimax", *CRITERIA, "marginals")
CONSTRAINTS = ("LDP", "LDP and TV", "a path", "epsilon, delta", "TV", "Renyi")


def utility_of(kind: str, k: int, rng: np.random.Generator) -> Any:
    """A random utility of a kind, of k answers; of an even number k, where it is of marginals."""
    p, q, r = rng.dirichlet(np.ones(k), 3)
    f = NAMED[str(rng.choice([*NAMED]))]
    if kind in CRITERIA or kind == "marginals":
        criterion = {
            "A": lambda: AOptimal(),
            "weighted A": lambda: AOptimal(rng.uniform(0.1, 1, k)),
            "C": lambda: COptimal(rng.normal(size=k)),
            "D": lambda: DOptimal(),
            "MV": lambda: MVOptimal(),
            "marginals": lambda: Marginals((2, k // 2), rng.uniform(0.5, 2, 2)),
        }
        return FisherInformation(p, criterion[kind]())
    posed = {
        "divergence": lambda: Divergence(f, p, q),
        "information": lambda: MutualInformation(p),
        "sum": lambda: WeightedSum([1.0, 0.5], [Divergence(f, p, q), MutualInformation(r)]),
        "worst": lambda: WorstOf(f, p, [q, r]),
        "loss": lambda: ExpectedLoss(p, rng.uniform(size=(k, k))),
        "minimax": lambda: ExpectedLoss(None, rng.uniform(size=(k, k))),
    }
    return posed[kind]()


def asked(name: str, k: int, rng: np.random.Generator) -> list[Any]:
    """Random constraints of a kind."""
    epsilon, eta = float(rng.uniform(0.1, 3)), float(rng.uniform(0.05, 0.6))
    return {
        "LDP": [LocalDP(epsilon)],
        "LDP and TV": [LocalDP(epsilon), TotalVariation(eta)],
        "a path": [LocalDP(epsilon, nx.path_graph(k))],
        "epsilon, delta": [ApproximateLDP(epsilon, eta / 4)],
        "TV": [TotalVariation(eta)],
        "Renyi": [RenyiLDP(2.0, epsilon / 2)],
    }[name]


def problem(rng: np.random.Generator) -> tuple[str, Any, list[Any]]:
    """A random problem with a few answers: its kind, its utility and its constraints."""
    kind, k = str(rng.choice(UTILITIES)), int(rng.choice([2, 3, 4, 5], p=[0.3, 0.35, 0.3, 0.05]))
    k = int(rng.choice([4, 6])) if kind == "marginals" else k
    name = CONSTRAINTS[int(rng.integers(3 if kind in CRITERIA or kind == "marginals" else 4))]
    k = min(k, 4) if name == "epsilon, delta" else k  # The 1,000 columns of five answers took half of all time.
    return kind, utility_of(kind, k, rng), asked(name, k, rng)


def honest(number: int) -> tuple[str, Document] | None:
    """The design of that number: (kind and certificate, file); None for what has no finite answer."""
    kind, utility, constraints = problem(np.random.default_rng([SEED, number]))
    try:
        document = json.loads(optimal_channel(utility, constraints).to_json())
    except LdpoptError:
        return None
    if number % 2:
        document = named(document)
    return f"{kind}, {(document['certificate'] or {}).get('kind')}", document


def named(document: Document) -> Document:
    """The same file with words for the labels of answers, and of decisions."""
    changed = copy.deepcopy(document)
    words = [f"answer {x}" for x in range(len(changed["channel"]["inputs"]))]
    utility, channel = changed["utility"], changed["channel"]
    for part in utility.get("utilities", [utility]):
        part["inputs"] = words
    channel["inputs"] = words
    if "decisions" in utility:
        utility["decisions"] = channel["outputs"] = [f"decision {y}" for y in range(len(channel["outputs"]))]
    for constraint in changed["constraints"]:
        if graph := constraint.get("graph"):
            graph["nodes"] = [words[node] for node in graph["nodes"]]
            graph["edges"] = [[words[one], words[other], weight] for one, other, weight in graph["edges"]]
    return changed


def restated(document: Document, rng: np.random.Generator) -> tuple[Document, str, bool] | None:
    """The file with something changed beside its numbers, what was changed, and whether that alone makes it false;
    None where there is nothing of the chosen kind to change.
    """
    changed = copy.deepcopy(document)
    utility, channel = changed["utility"], changed["channel"]
    graphs = [one["graph"] for one in changed["constraints"] if one.get("graph")]
    which = str(rng.choice(["inputs", "utility", "decisions", "word", "edge", "parallel", "claim", "name", "again"]))
    if which in ("inputs", "word", "again"):
        labels = list(channel["inputs"])
        order = rng.permutation(len(labels))
        while (order == np.arange(len(labels))).all():
            order = rng.permutation(len(labels))
        channel["inputs"] = [labels[x] for x in order]
        if which == "word":
            channel["inputs"] = [labels[0], *labels[2:], "another word"]
        if which == "again":
            channel["inputs"] = [*labels[:-1], labels[0]]
        return changed, f"inputs of the channel: {which}", True
    if which == "utility":
        part = utility.get("utilities", [utility])[-1]
        if part.get("inputs") is None:
            return None
        part["inputs"] = [*part["inputs"][1:], part["inputs"][0]]
        return changed, "inputs of the utility, turned", True
    if which == "decisions" and utility.get("decisions"):
        channel["outputs"] = [*channel["outputs"][1:], channel["outputs"][0]]
        return changed, "outputs of the channel, turned", True
    if which in ("edge", "parallel") and graphs and graphs[0]["edges"]:
        one, other, weight = graphs[0]["edges"][int(rng.integers(len(graphs[0]["edges"])))]
        longer = weight * float(rng.choice([1.0, 1.5, 0.5]))
        graphs[0]["edges"].append([other, one, longer])
        graphs[0]["multiple"] = which == "parallel"
        return changed, f"an edge of weight {longer} beside one of {weight}, {which}", which == "edge"
    if which == "claim" and changed["guarantees"]:
        guarantee = changed["guarantees"][int(rng.integers(len(changed["guarantees"])))]
        value = guarantee["value"] if isinstance(guarantee["value"], float) else 1.0
        claims: list[tuple[str, Any]] = [
            ("lower", value * 1.01 + 1e-9), ("lower", 1e300), ("reference", "[Nobody]"),
            ("witness", {"inputs": channel["inputs"][:1] * 2, "outputs": []}),
        ]  # fmt: skip
        key, claim = claims[int(rng.integers(len(claims)))]
        guarantee[key] = claim
        return changed, f"{key} of a guarantee: {claim}", True
    if which == "name":
        changed["note"] = "another note"
        return changed, "the note", False
    return None


def changed_file(document: Document, rng: np.random.Generator) -> tuple[Document, str, bool]:
    """A changed file, what was changed, and whether it is surely false."""
    if rng.uniform() < 0.5 and (found := restated(document, rng)) is not None:
        return found
    return *mutant(document, rng), False


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of the numbers of a document."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))
    elif isinstance(value, float):
        yield path


def mutant(document: Document, rng: np.random.Generator) -> tuple[Document, str]:
    """The file with one number changed, or two numbers exchanged, and what was changed."""
    changed = copy.deepcopy(document)
    claims = [(name,) for name in ("value", "lower_bound", "upper_bound", "tolerance")]
    places = [*leaves(changed), *claims * 4]
    parts, told = [], []
    for chosen in rng.choice(len(places), 2, replace=False):
        holder, path = changed, places[int(chosen)]
        for key in path[:-1]:
            holder = holder[key]
        parts.append((holder, path[-1], holder[path[-1]]))
    (holder, key, x), (other, place, y) = parts
    if rng.uniform() < 0.2:
        holder[key], other[place] = y, x
    elif isinstance(x, float):
        size = 10.0 ** -rng.uniform(0, 12)
        holder[key] = [x * (1 + size), x * (1 - size), x + size, -x, 0.0, 2 * x][int(rng.integers(6))]
    if rng.uniform() < 0.1:
        changed["certified"] = not changed["certified"]
    told = [f"{key}: {was!r} -> {where[key]!r}" for where, key, was in parts if where[key] != was]
    return changed, "; ".join(told)


def loosened(document: Document, caps: bool = True) -> Document:
    """The file with claims weaker by a rounding (docs/reference/formats/checker-specification.md): both must agree.

    caps : whether the caps of the constraints and the guarantees, too, are larger by a rounding.
    """
    weaker = copy.deepcopy(document)
    worse = 1 if document["utility"]["kind"] == "FisherInformation" else -1
    better = "lower_bound" if worse > 0 else "upper_bound"
    for name in ("value", "lower_bound", "upper_bound"):
        x = weaker[name]
        if isinstance(x, float):
            size = max(1.0, abs(x)) if document["utility"].get("criterion", {}).get("kind") == "DOptimal" else abs(x)
            weaker[name] = x + (-worse if name == better else worse) * ROOM * size
    for cap in weaker["constraints"] if caps else ():
        for name in {"epsilon", "eta", "delta"} & set(cap) - ({"epsilon"} if "delta" in cap else set()):
            cap[name] *= 1 + ROOM / 16
    for one in weaker["guarantees"] if caps else ():
        if isinstance(one["value"], float):
            one["value"] = one["value"] * (1 + ROOM / 16) + 2.0**-60
    return weaker


def verdicts(document: Document) -> str:
    """What the kernel and the checker say of a file."""
    said = both(document)
    if "alone" in said and any(both(loosened(document, caps)) == "accepted by both" for caps in (False, True)):
        return "true by less than a rounding"
    return said


def both(document: Document) -> str:
    """What the kernel, in both arithmetics, and the checker say of a file as it is."""
    try:
        design = parse_design(json.dumps(document))
        ours, exact = verify_design(design)[0].proved, design.verify(exact=True)
    except LdpoptError:
        ours, exact = False, None
    if exact is not None and exact.outcome != "not checked" and exact.proved is not ours:
        return f"accepted by the kernel{' in balls' * exact.proved} alone"
    try:
        theirs = not checker.check(document).failures
    except checker.BadInput as reason:
        return f"not covered: {reason}" if ours else "refused by both"
    if ours is theirs:
        return "accepted by both" if ours else "refused by both"
    return "accepted by the kernel alone" if ours else "accepted by the checker alone"


def main() -> int:
    """Judge, count and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=100)
    parser.add_argument("--mutants", type=int, default=10, help="of each design")
    parser.add_argument("--first", type=int, default=0, help="the number of the first design")
    parser.add_argument("--csv", type=Path, help="a file to which the counts are added")
    parser.add_argument("--quick", action="store_true", help="three designs with three mutants each")
    given = parser.parse_args()
    if given.quick:
        given.designs = given.mutants = 3
    counts = Counter[tuple[str, str, str]]()
    for number in range(given.first, given.first + given.designs):
        found = honest(number)
        if found is None:
            continue
        kind, document = found
        rng = np.random.default_rng([SEED, number, 1])
        files = [("design", document, "", False)]
        files += [("mutant", *changed_file(document, rng)) for _ in range(given.mutants)]
        for what, file, change, false in files:
            verdict = verdicts(file)
            if false and verdict != "refused by both":
                verdict = f"false, and accepted, though not by that alone: {verdict}"
            counts[kind, what, verdict.partition(":")[0]] += 1
            if "alone" in verdict or "not covered" in verdict or (what == "design" and "refused" in verdict):
                print(f"{what} of {number} ({kind}): {verdict} ({change})", flush=True)
    if given.csv:
        if given.csv.exists():
            with given.csv.open(newline="") as lines:
                counts.update({(a, b, c): int(n) for a, b, c, n in [*csv.reader(lines)][1:]})
        with given.csv.open("w", newline="") as lines:
            rows = [(*key, number) for key, number in sorted(counts.items())]
            csv.writer(lines, lineterminator="\n").writerows(
                [("kind and certificate", "file", "verdict", "number"), *rows]
            )
    totals = Counter[str]()
    for (_, what, verdict), number in counts.items():
        totals[f"{what}s {verdict}"] += number
    print("; ".join(f"{number} {what}" for what, number in sorted(totals.items())))
    return 1 if any("alone" in what or what == "designs refused by both" for what in totals) else 0


if __name__ == "__main__":
    sys.exit(main())
