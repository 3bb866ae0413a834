"""Two programs that share no line, the package's kernel and `ldpopt_check`, judge the same design files.

    python experiments/trust/agreement.py [--designs 300] [--forgeries 300] [--seed 1] [--show]

Designs: plain problems of 2 to 40 answers, all named divergences and two families, epsilon from 1e-6 to 400, a cap on
total variation from 1e-9 to 1 or none, zeros, ties, tiny masses, hypotheses 1e-9 apart. Each is saved and read back.
Both programs must accept it, and their values and bounds must agree to 1e-9 of themselves.

Forgeries: files of such designs with fields changed so that something they claim is false. Where that is not so by
construction, 60 digits of mpmath say so. Both programs must refuse each. Ends with exit code 1 on any disagreement.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from honest_design_files import excess, normalised

from ldpopt import LocalDP, TotalVariation, load_design, optimal_channel
from ldpopt.design import Design, Divergence, EnvelopeDual, is_certified
from ldpopt.divergences import NAMED, alpha, hockey_stick
from ldpopt.errors import InvalidInput

Document = dict[str, Any]

CLOSE = 1e-9
"""How far the two programs may differ, relatively."""

KINDS = ("ordinary", "zeros", "ties", "close", "tiny", "points")
DIVERGENCES = (
    *NAMED.values(), *map(hockey_stick, (0.4, 1.0, 1.5, 20.0)), *map(alpha, (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)),
)  # fmt: skip


checker: Any = importlib.import_module("ldpopt_check")
read: Any = importlib.import_module("ldpopt_check.__main__").read


# --- Designs ----------------------------------------------------------------------------------------------------------


def hypotheses(kind: str, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two distributions on k answers."""
    p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
    if kind == "zeros":
        for p in (p0, p1):
            p[rng.permutation(k)[: rng.integers(0, max(1, k // 2))]] = 0.0
        p0[0], p1[0] = 0.3, 0.4
    if kind == "ties":
        ratios = rng.choice([0.0, 0.5, 1.0, 2.0], k)
        ratios[:2] = 0.5, 2.0
        p0 = ratios * p1
    if kind == "close":
        p1 = p0 * (1 + 1e-9 * rng.standard_normal(k))
    if kind == "tiny":
        p0[0], p1[-1] = p0[0] * 10.0 ** -rng.uniform(3, 290), p1[-1] * 10.0 ** -rng.uniform(3, 290)
    return p0 / p0.sum(), p1 / p1.sum()


def dyadic(k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two distributions whose masses are multiples of 2^-20 and add up to one without rounding."""
    p0, p1 = (rng.multinomial(2**20 - 16 * k, rng.dirichlet(np.ones(k))) + 16 for _ in range(2))
    return p0 / 2.0**20, p1 / 2.0**20


def designed(seed: int, number: int, largest: int = 40) -> tuple[str, Design]:
    """The design of a random problem of at most `largest` answers, and what kind it is."""
    rng = np.random.default_rng([seed, number])
    f, kind = DIVERGENCES[number % len(DIVERGENCES)], KINDS[int(rng.integers(len(KINDS)))]
    k = int(rng.integers(2, largest + 1)) if rng.random() < 0.25 else int(rng.integers(2, 9))
    p0, p1 = dyadic(k, rng) if kind == "points" else hypotheses(kind, k, rng)
    # Powers of a ratio of e^400 are no floats.
    most = 100.0 if f.recipe is not None and f.recipe[0] == "alpha" else 400.0
    constraints: list[Any] = [LocalDP(float(np.exp(rng.uniform(math.log(1e-6), math.log(most)))))]
    if rng.random() < 0.6:
        constraints.append(TotalVariation(float(10.0 ** -rng.uniform(0, 9 if rng.random() < 0.5 else 1))))
    design = optimal_channel(Divergence(f, p0, p1), constraints)
    return kind, by_points(design) if kind == "points" else design


def by_points(design: Design) -> Design:
    """The same channel, proved by points that dominate the hypotheses: each answer split in two, without rounding."""
    halves = [
        np.concatenate([p * (1 + s) / 2, p * (1 - s) / 2])
        for p, s in zip(design.utility.pair, (0.25, -0.25), strict=True)
    ]
    finer = optimal_channel(Divergence(design.utility.f, *halves), design.constraints).certificate
    if not isinstance(finer, EnvelopeDual):
        return design
    points = np.column_stack(halves)
    proof = EnvelopeDual(design.utility, design.constraints, design.channel, finer.level, finer.potentials, points)
    held = is_certified(design.value, proof.bound, design.tolerance, error=False, logarithmic=False)
    return replace(design, certificate=proof, upper_bound=proof.bound, certified=held)


# --- What the two programs say ----------------------------------------------------------------------------------------


def apart(one: float, two: float) -> float:
    """The relative difference."""
    return 0.0 if one == two else abs(one - two) / max(abs(one), abs(two))


def saved(design: Design, folder: Path) -> tuple[Path, Document]:
    """The file of a design, and what stands in it."""
    path = folder / "design.json"
    design.save(path, force=True)
    return path, json.loads(path.read_text(encoding="utf-8"))


def disagreement(design: Design, folder: Path) -> str:
    """How the two programs differ about a design that both should accept; empty if they do not."""
    path, _ = saved(design, folder)
    found = load_design(path).verify()
    try:
        other = checker.check(read(path))
    except checker.BadInput as error:
        return f"the checker cannot judge it: {error}"
    if not found.proved:
        return f"the kernel refuses: {found.reasons}"
    if other.failures:
        return f"the checker refuses: {other.failures}"
    for what, ours, stated, (low, high) in (
        ("values", found.value, design.value, other.value),
        ("bounds", found.bound, design.upper_bound, other.bound),
    ):
        if not max(apart(ours, end) for end in (low, high, stated)) <= CLOSE:
            return f"the {what} differ: {ours!r} by the kernel, {low!r} to {high!r} by the checker, {stated!r} stated"
    return ""


def accepted_by(document: Document, folder: Path) -> list[str]:
    """Which of the two programs accept a file."""
    path = folder / "forged.json"
    path.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
    said = []
    with suppress(InvalidInput):
        said += ["the kernel"] * load_design(path).verify().proved
    with suppress(checker.BadInput):
        said += ["the checker"] * (not checker.check(read(path)).failures)
    return said


# --- Forgeries --------------------------------------------------------------------------------------------------------


def kept(document: Document) -> Any:
    """D_f of the marginals of the report, in 60 digits."""
    utility = document["utility"]
    laws = [normalised(utility[p]) for p in ("p0", "p1")]
    columns = [*zip(*(normalised(row) for row in document["channel"]["matrix"]), strict=True)]
    pairs = [[mpmath.fdot(law, column) for law in laws] for column in columns]
    return mpmath.fsum(excess(utility["f"], a, b) if b else mpmath.inf for a, b in pairs if a or b)


def ratio(document: Document) -> Fraction:
    """The largest ratio of two entries of a column, without rounding."""
    exact = [[Fraction(x) for x in row] for row in document["channel"]["matrix"]]
    rows = [[x / sum(row) for x in row] for row in exact]
    return max(max(column) / min(column) for column in zip(*rows, strict=True))


def variation(document: Document) -> Fraction:
    """The largest total variation of two rows, without rounding."""
    exact = [[Fraction(x) for x in row] for row in document["channel"]["matrix"]]
    rows = [[x / sum(row) for x in row] for row in exact]
    return max(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p in rows for q in rows)


def too_low(document: Document) -> bool:
    """Whether the channel keeps less than the value that is claimed."""
    return bool(kept(document) < mpmath.mpf(document["value"]) * (1 - mpmath.mpf(CLOSE)))


def exceeds_caps(document: Document) -> bool:
    """Whether the channel breaks a constraint, or is worse than a guarantee that is stated."""
    for part in [*document["constraints"], *document["guarantees"]]:
        if part.get("kind", part.get("notion")) in ("LocalDP", "local_dp"):
            limit = part["epsilon"] if "kind" in part else part["value"]
            if mpmath.log(mpmath.mpf(ratio(document).numerator) / ratio(document).denominator) > limit * (1 + 1e-9):
                return True
        elif variation(document) > Fraction(part["eta"] if "kind" in part else part["value"]) * (
            1 + Fraction(1, 10**9)
        ):
            return True
    return False


def below_value(document: Document) -> bool:
    """Whether the bound is below what the channel keeps, which no bound is."""
    return bool(document["upper_bound"] < kept(document) * (1 - mpmath.mpf(1e-12)))


def always(document: Document) -> bool:
    """False by construction."""
    return True


def _bound_lowered(made: Document, rng: np.random.Generator) -> None:
    made["upper_bound"] = made["value"] * (1 - 10.0 ** -rng.uniform(1, 9))


def _both_lowered(made: Document, rng: np.random.Generator) -> None:
    factor = 1 - 10.0 ** -rng.uniform(1, 9)
    made["value"] = made["lower_bound"] = made["value"] * factor
    made["upper_bound"] = made["value"]


def _value_raised(made: Document, rng: np.random.Generator) -> None:
    made["value"] = made["lower_bound"] = max(made["value"], float(kept(made))) * (1 + 10.0 ** -rng.uniform(1, 8))
    made["upper_bound"] = max(made["value"], made["upper_bound"])


def _rows_swapped(made: Document, rng: np.random.Generator) -> None:
    rows = made["channel"]["matrix"]
    i, j = rng.choice(len(rows), 2, replace=False)
    rows[i], rows[j] = rows[j], rows[i]


def _row_constant(made: Document, rng: np.random.Generator) -> None:
    rows = made["channel"]["matrix"]
    i, j = rng.choice(len(rows), 2, replace=False)
    rows[i] = list(rows[j])


def _entry_halved(made: Document, rng: np.random.Generator) -> None:
    row = made["channel"]["matrix"][int(rng.integers(len(made["channel"]["matrix"])))]
    least, most = int(np.argmin(row)), int(np.argmax(row))
    row[least], row[most] = row[least] / 2, row[most] + row[least] / 2


def _column_split(made: Document, rng: np.random.Generator) -> None:
    """Full disclosure, with labels to go with it."""
    k = len(made["channel"]["matrix"])
    made["channel"] |= {"matrix": np.eye(k).tolist(), "outputs": list(range(k))}


def _epsilon_lowered(made: Document, rng: np.random.Generator) -> None:
    made["constraints"][0]["epsilon"] *= 1 - 10.0 ** -rng.uniform(0.1, 4)


def _eta_lowered(made: Document, rng: np.random.Generator) -> None:
    eta = float(variation(made)) * (1 - 10.0 ** -rng.uniform(0.1, 6))
    caps = [part for part in made["constraints"] if part["kind"] == "TotalVariation"]
    made["constraints"] = [part for part in made["constraints"] if part not in caps]
    made["constraints"].append({"kind": "TotalVariation", "eta": eta})
    made["guarantees"] = [part for part in made["guarantees"] if part["notion"] == "local_dp"]


def _guarantee_bettered(made: Document, rng: np.random.Generator) -> None:
    part = made["guarantees"][int(rng.integers(len(made["guarantees"])))]
    part["value"] *= 1 - 10.0 ** -rng.uniform(0.1, 6)


def _hypotheses_swapped(made: Document, rng: np.random.Generator) -> None:
    made["utility"]["p0"], made["utility"]["p1"] = made["utility"]["p1"], made["utility"]["p0"]


def _hypotheses_mixed(made: Document, rng: np.random.Generator) -> None:
    p0, p1 = (np.array(made["utility"][p]) for p in ("p0", "p1"))
    made["utility"]["p0"] = (p0 + (p1 - p0) * 10.0 ** -rng.uniform(0.5, 4)).tolist()


def _input_dropped(made: Document, rng: np.random.Generator) -> None:
    made["utility"]["p0"][0] = 0.0


def _another_divergence(made: Document, rng: np.random.Generator) -> None:
    made["utility"]["f"] = {"name": str(rng.choice([*NAMED]))}


def _potentials_cheap(made: Document, rng: np.random.Generator) -> None:
    """Potentials and a level that pay too little, and the bound that they would prove if they paid."""
    proof, factor = made["certificate"], 1 - 10.0 ** -rng.uniform(0.3, 6)
    proof["potentials"] = [u * factor for u in proof["potentials"]]
    proof["level"] *= factor
    made["upper_bound"] *= factor


def _potentials_flat(made: Document, rng: np.random.Generator) -> None:
    made["certificate"] |= {"level": 0.0, "potentials": [0.0] * len(made["certificate"]["potentials"])}


def _potentials_shuffled(made: Document, rng: np.random.Generator) -> None:
    made["certificate"]["potentials"].reverse()
    made["upper_bound"] = made["value"] * 0.5


def _potentials_cut(made: Document, rng: np.random.Generator) -> None:
    made["certificate"]["potentials"].pop()


def _level_negative(made: Document, rng: np.random.Generator) -> None:
    made["certificate"]["level"] = -abs(made["certificate"]["level"]) - made["value"]


def _potentials_huge(made: Document, rng: np.random.Generator) -> None:
    made["certificate"]["potentials"][int(rng.integers(len(made["certificate"]["potentials"])))] = 1e308
    made["certificate"]["potentials"][-1] = 0.0


def _points_poor(made: Document, rng: np.random.Generator) -> None:
    """Points that do not dominate: one for all answers, which tells nothing apart."""
    made["certificate"] = {"kind": "EnvelopeDual", "level": 0.0, "potentials": [0.0, 0.0], "points": [[1.0, 1.0]]}
    made["upper_bound"] = made["value"]


def _contraction(made: Document, rng: np.random.Generator) -> None:
    made["certificate"] = {"kind": "Contraction"}
    made["upper_bound"] = made["value"] * (1 - 10.0 ** -rng.uniform(1, 6))


def _no_certificate(made: Document, rng: np.random.Generator) -> None:
    made["certificate"] = None


def _certified_afar(made: Document, rng: np.random.Generator) -> None:
    """A true bound, an honest "not certified", and that flipped."""
    made["upper_bound"] *= 1 + 10.0 ** -rng.uniform(0, 3)
    made["certified"] = True


def _tolerance_wide(made: Document, rng: np.random.Generator) -> None:
    made["upper_bound"] *= 1 + 10.0 ** -rng.uniform(0, 3)
    made |= {"certified": True, "tolerance": 10.0}


def _infinite(made: Document, rng: np.random.Generator) -> None:
    made |= {"value": "inf", "lower_bound": "inf", "upper_bound": "inf", "certified": True}


def _bound_minus_infinite(made: Document, rng: np.random.Generator) -> None:
    made["upper_bound"] = "-inf"


def _bounds_apart(made: Document, rng: np.random.Generator) -> None:
    made["lower_bound"] *= 1 + 10.0 ** -rng.uniform(1, 9)


def _wider_cap(made: Document, rng: np.random.Generator) -> None:
    """Larger caps, whose optimum is known to be larger: the channel of a design for them keeps more than the bound."""
    factor = 1 + 10.0 ** -rng.uniform(0, 2)
    for part in made["constraints"]:
        cap = "epsilon" if part["kind"] == "LocalDP" else "eta"
        part[cap] = min(part[cap] * factor, 1.0 if cap == "eta" else 400.0)


def optimum(document: Document, factor: float = 1.0, pair: Any = None) -> Design:
    """The design for the caps of a file, epsilon times a factor, and its hypotheses or others."""
    f, caps = document["utility"]["f"], {part["kind"]: part for part in document["constraints"]}
    families: dict[str, Any] = {"alpha": alpha, "hockey-stick": hockey_stick}
    own = families[f["name"]](f["parameter"]) if f["name"] in families else NAMED[f["name"]]
    asked: list[Any] = [LocalDP(caps["LocalDP"]["epsilon"] * factor)]
    if "TotalVariation" in caps:
        asked.append(TotalVariation(caps["TotalVariation"]["eta"] * min(factor, 1.0)))
    return optimal_channel(Divergence(own, *(pair or (document["utility"]["p0"], document["utility"]["p1"]))), asked)


def _exceeded(document: Document) -> bool:
    """Whether a channel within the caps keeps more than the bound, each by independent arithmetic."""
    made = copy.deepcopy(document)
    made["channel"]["matrix"] = optimum(made).channel.matrix.tolist()
    made["guarantees"] = []
    return not exceeds_caps(made) and bool(kept(made) > document["upper_bound"] * (1 + 1e-9))


def _made_poor(made: Document, rng: np.random.Generator) -> float:
    """An honest channel that keeps less than the optimum, so that a bound below that is above the value."""
    poor, best = optimum(made, factor=float(rng.uniform(0.3, 0.9))), made["value"]
    channel, guarantees = poor.channel, poor.to_dict()["guarantees"]
    made["channel"] |= {"matrix": channel.matrix.tolist(), "outputs": list(range(channel.matrix.shape[1]))}
    for part, better in zip(made["guarantees"], guarantees, strict=True):
        part["value"] = better["value"]
    made["value"] = made["lower_bound"] = poor.value
    made["certified"] = False
    # Between the two, nearly always far closer to the optimum.
    made["upper_bound"] = best - (best - poor.value) * 10.0 ** -rng.uniform(0.1, 6)
    return best


def _optimum_undercut(made: Document, rng: np.random.Generator) -> None:
    """An honest channel and value with a bound between the value and the optimum, and numbers that nearly prove it."""
    best, proof = _made_poor(made, rng), made["certificate"]
    share, way = made["upper_bound"] / best, int(rng.integers(4))
    u = proof["potentials"]
    if way == 0:
        proof |= {"potentials": [x * share for x in u], "level": proof["level"] * share}
    elif way == 1:
        proof["potentials"] = [u[0] + (x - u[0]) * share for x in u]
    elif way == 2:
        u[-1] -= (u[-1] - u[0]) * (1 - share)
    # Else the numbers stay, and prove another bound than is claimed.


def _points_garbled(made: Document, rng: np.random.Generator) -> None:
    """The same with an honest proof for points that are closer to each other than the hypotheses are."""
    _made_poor(made, rng)
    p0, p1 = (np.array(made["utility"][p]) for p in ("p0", "p1"))
    share = 10.0 ** -rng.uniform(0.5, 6)
    pair = p0 + (p1 - p0) * share, p1 + (p0 - p1) * share
    proof = optimum(made, pair=pair).certificate
    if isinstance(proof, EnvelopeDual) and np.isfinite(proof.bound):
        points = np.column_stack(pair).tolist()
        made["certificate"] |= {"level": proof.level, "potentials": proof.potentials.tolist(), "points": points}
        made["upper_bound"] = proof.bound


def _below_optimum(document: Document) -> bool:
    """Whether the optimum, which a channel attains, exceeds the bound, though the value does not."""
    honest = not exceeds_caps(document) and document["value"] <= document["upper_bound"]
    return honest and not too_low(document) and _exceeded(document)


Forgery = tuple[Callable[[Document, np.random.Generator], None], Callable[[Document], bool]]

FORGERIES: tuple[Forgery, ...] = (
    (_bound_lowered, below_value),
    (_both_lowered, below_value),
    (_value_raised, too_low),
    (_rows_swapped, too_low),
    (_row_constant, too_low),
    (_entry_halved, exceeds_caps),
    (_column_split, always),
    (_epsilon_lowered, exceeds_caps),
    (_eta_lowered, exceeds_caps),
    (_guarantee_bettered, exceeds_caps),
    (_hypotheses_swapped, too_low),
    (_hypotheses_mixed, too_low),
    (_input_dropped, too_low),
    (_another_divergence, too_low),
    (_potentials_cheap, below_value),
    (_potentials_flat, always),
    (_potentials_shuffled, below_value),
    (_potentials_cut, always),
    (_level_negative, always),
    (_potentials_huge, always),
    (_points_poor, always),
    (_contraction, below_value),
    (_no_certificate, always),
    (_certified_afar, always),
    (_tolerance_wide, always),
    (_infinite, always),
    (_bound_minus_infinite, always),
    (_bounds_apart, always),
    (_wider_cap, _exceeded),
    (_optimum_undercut, _below_optimum),
    (_points_garbled, _below_optimum),
)


def forgeries(seed: int) -> Iterator[tuple[str, Document]]:
    """Files with something false in them, without end: (how, file)."""
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        while True:
            rng = np.random.default_rng([seed, number, 1])
            _, design = designed(seed + 1000, number)
            _, document = saved(design, Path(folder))
            if isinstance(design.certificate, EnvelopeDual) and design.value > 0:
                start = int(rng.integers(len(FORGERIES)))
                for tamper, false in (FORGERIES[start], FORGERIES[-1 - number % 3]):
                    made = copy.deepcopy(document)
                    tamper(made, rng)
                    with mpmath.workdps(60):
                        if made != document and false(made):
                            yield tamper.__name__.strip("_"), made
            number += 1


def main() -> int:
    """Judge, count and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=300)
    parser.add_argument("--forgeries", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="count kinds of problems and of forgeries")
    given = parser.parse_args()
    wrong, counts, uncertified = 0, Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(given.designs):
            kind, design = designed(given.seed, number)
            counts[kind] += 1
            uncertified += not design.certified and kind != "points"
            said = disagreement(design, folder)
            if said:
                wrong += 1
            if said or (given.show and not design.certified and kind != "points"):
                text = f"{design.utility.f.name}, {kind}, {[c.bound for c in design.constraints]}"
                print(f"design {number} ({text}): {said or design.note}", flush=True)
        told = f"{given.designs} designs ({uncertified} not certified): {wrong} disagreements"
        taken = 0
        source = forgeries(given.seed)
        for number in range(given.forgeries):
            how, document = next(source)
            counts[how] += 1
            said_yes = accepted_by(document, folder)
            if said_yes:
                taken += 1
                print(f"forgery {number} ({how}): accepted by {' and '.join(said_yes)}", flush=True)
    if given.show:
        print(dict(sorted(counts.items())))
    print(f"{told}; {given.forgeries} forgeries: {taken} accepted")
    return 1 if wrong or taken else 0


if __name__ == "__main__":
    sys.exit(main())
