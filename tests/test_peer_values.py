"""Values that other packages expect of themselves, and published formulas with 50 digits, against this package.

The values stand in ``data/peer_values.json``, each group with its source. dp-accounting states one direction of a pair
at a time: *remove* compares the release with a person to the release without, *add* the other way around.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import networkx as nx
import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.composition import compose, kov15
from ldpopt.mechanisms import (
    ContinuousPair,
    FinitePair,
    Gaussian,
    gaussian,
    laplace,
    randomized_response,
    staircase,
    truncated_geometric,
)
from ldpopt.privacy import local_dp, maximal_leakage, mutual_information
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs
from ldpopt.privacy.claims import PureDP
from ldpopt.privacy.conversions import pure_to_renyi, pure_to_zcdp_sharp

DATA = json.loads((Path(__file__).parent / "data" / "peer_values.json").read_text("utf-8"))
Bracket = tuple[float, float]


def noise(law: str, r: dict[str, Any]) -> Any:
    """The pair of densities of dp-accounting's parameters, with the person's release first."""
    if law == "laplace":
        base = laplace(r["sensitivity"] / r["parameter"]).pair
    else:
        moved = 2 if r["adjacency"] == "replace" else 1
        base = gaussian(1.0, moved * r["sensitivity"] / r["standard_deviation"]).pair
    return base.subsampled(r["sampling_prob"])


def lattice(law: str, r: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(places, p, q) of a discrete law: p of the person's release, moved to -sensitivity, and q at 0."""
    shift = int(r["sensitivity"])
    if law == "discrete_laplace":
        reach = bound = math.ceil(60 / r["parameter"])
    else:  # cut where dp-accounting cuts it
        reach = bound = int(r.get("truncation_bound") or math.ceil(11.6 * r["sigma"]))
    x = np.arange(-reach - shift, reach + shift + 1)

    def mass(away: np.ndarray) -> np.ndarray:
        if law == "discrete_laplace":
            weights = np.exp(-r["parameter"] * np.abs(away))
        else:
            weights = np.where(np.abs(away) <= bound, np.exp(-(away**2) / (2 * r["sigma"] ** 2)), 0.0)
        return weights / weights.sum()

    q, rate = mass(x), r["sampling_prob"]
    return x, rate * mass(x + shift) + (1 - rate) * q, q


def response(r: dict[str, Any]) -> FinitePair:
    """Randomized response of dp-accounting: with the noise parameter, the report is uniform over the buckets."""
    k, noise_parameter = r["num_buckets"], r["noise_parameter"]
    rows = np.full((k, k), noise_parameter / k) + (1 - noise_parameter) * np.eye(k)
    return FinitePair(rows[0], np.full(k, 1 / k) if "special" in r.get("relation", "") else rows[1])


def delta(law: str, r: dict[str, Any]) -> Bracket:
    reverse = r["adjacency"] == "add"
    if law.startswith("discrete"):
        _, p, q = lattice(law, r)
        low, high = hockey_stick_of_pairs(*((q, p) if reverse else (p, q)), r["epsilon"])
        return float(low[0]), float(high[0])
    pair = noise(law, r)
    low, high = pair._one_way(float(r["epsilon"]), reverse)
    assert pair.hockey_stick(r["epsilon"]).value >= min(high, 1.0)
    return low, high


def loss(law: str, r: dict[str, Any]) -> Bracket:
    sign = -1.0 if r["adjacency"] == "add" else 1.0
    if law.startswith("discrete"):
        x, p, q = lattice(law, r)
        at = int(np.flatnonzero(x == round(sign * r["x"]))[0])
        with np.errstate(divide="ignore"):
            found = sign * (float(np.log(p[at])) - float(np.log(q[at])))
        return found, found
    pair = noise(law, r)
    scale = r["parameter"] if law == "laplace" else r["standard_deviation"]
    y = sign * r["x"] / scale + r["sensitivity"] / scale
    if r["adjacency"] == "replace":
        y = r["x"] / scale + r["sensitivity"] / scale
    found = sign * (float(pair.log_p(y)) - float(pair.log_q(y)))
    return found, found


def rounded(law: str, r: dict[str, Any]) -> Bracket:
    """The probability of a loss in (interval (n - 1), interval n]."""
    n, h = int(r["loss"]), r["interval"]
    if law == "laplace":
        pair, reverse = noise(law, r), r["adjacency"] == "add"
        above, below = (pair._tails(h * k, reverse)[0] for k in (n - 1, n))
        return above - below, above - below
    if law == "response":
        pair = response(r)
        p, losses = (pair.q, -pair.losses) if r["relation"] == "special add" else (pair.p, pair.losses)
    else:
        _, p, q = lattice(law, r)
        p, q = (q, p) if r["adjacency"] == "add" else (p, q)
        losses = np.log(p / q)
    found = float(p[np.ceil(losses / h - 1e-9) == n].sum())
    return found, found


def dots(r: dict[str, Any]) -> Bracket:
    """The mass at one loss of the pair through the curve's points at the multiples of the interval."""
    pair, h = noise("laplace", r), r["interval"]
    grid = h * np.arange(math.ceil(pair.base.epsilon / h if r["sampling_prob"] < 1 else pair.epsilon / h) + 2)
    forward, back = ([pair._one_way(float(e), reverse)[1] for e in grid] for reverse in (False, True))
    made = FinitePair.through(grid, np.array(forward), grid, np.array(back))
    masses, losses = (made.q, -made.losses) if r["adjacency"] == "add" else (made.p, made.losses)
    found = float(masses[np.abs(losses - h * r["loss"]) < 1e-6].sum())
    return found, found


def mixture(r: dict[str, Any]) -> Bracket:
    deviation, shifts, shares = r["standard_deviation"], r["sensitivities"], r["sampling_probs"]

    def normal(x: float) -> float:
        return -x * x / 2 - math.log(2 * math.pi) / 2

    def mixed(x: float) -> float:
        parts = [math.log(w) + normal(x + s / deviation) for w, s in zip(shares, shifts, strict=True)]
        return float(np.logaddexp.reduce(parts))

    edges = sorted({0.0, *(-s / deviation for s in shifts)})
    pair = ContinuousPair(mixed, normal, (-math.inf, *edges, math.inf))
    assert not pair.hockey_stick(r["epsilon"]).exact
    return pair._one_way(r["epsilon"], r["adjacency"] == "add")


def bracket(guarantee: Any) -> Bracket:
    return guarantee.lower, guarantee.value


def sampled_renyi(pair: Any, r: dict[str, Any]) -> Bracket:
    low, high = bracket(pair.subsampled(r["rate"]).renyi(float(r["order"])))
    count = r.get("count", 1)
    return count * low, count * high


def scale_brackets(r: dict[str, Any], expected: float) -> None:
    """The scale is right to 0.1: a tenth more is private enough, and a tenth less is not."""
    for sign, private in ((1, True), (-1, False)):
        composed = compose([laplace(r["sensitivity"] / (expected + 0.1 * sign))], r["num_queries"])
        found = composed.approximate_dp(r["delta"])
        assert (found.value <= r["epsilon"]) is private


def sigma_at(r: dict[str, Any], expected: float) -> None:
    """At the expected deviation, the delta of all uses is the one asked for; it changes by 1e-4 with 1e-5 of sigma."""
    pair = gaussian(expected, r["sensitivity"]).pair.subsampled(r["sampling_prob"])
    found = (
        pair.hockey_stick(r["epsilon"])
        if r["num_queries"] == 1
        else compose([pair], r["num_queries"]).hockey_stick(r["epsilon"])
    )
    assert found.value == pytest.approx(r["delta"], rel=1e-5 if r["num_queries"] == 1 else 2e-2)
    assert found.lower <= r["delta"] * (1 + 1e-5)


def per_distance(matrix: np.ndarray, distance: np.ndarray) -> Bracket:
    k = len(matrix)
    found = max(
        FinitePair(matrix[a], matrix[b]).local_dp().value / distance[a, b] for a in range(k) for b in range(k) if a != b
    )
    return found, found


def exponential(distance: np.ndarray, epsilon: float) -> Bracket:
    weights = np.exp(-epsilon * distance / 2)
    return per_distance(weights / weights.sum(axis=1, keepdims=True), distance)


def line(r: dict[str, Any]) -> np.ndarray:
    at = r["step"] * np.arange(r["size"])
    return np.abs(np.subtract.outer(at, at))


def square(r: dict[str, Any]) -> np.ndarray:
    at = r["step"] * np.array([(a, b) for a in range(r["width"]) for b in range(r["width"])])
    return np.sqrt(((at[:, None] - at) ** 2).sum(axis=2))


def information(r: dict[str, Any]) -> Bracket:
    low, high = bracket(mutual_information(r["channel"], r["prior"]))
    return low / math.log(2), high / math.log(2)


def capacity(r: dict[str, Any]) -> Bracket:
    shares = np.linspace(0.4, 0.6, 4001)
    found = max(float(mutual_information(r["channel"], [t, 1 - t])) for t in shares[::20]) / math.log(2)
    fine = max(float(mutual_information(r["channel"], [t, 1 - t])) for t in shares[1800:2800]) / math.log(2)
    return max(found, fine), max(found, fine)


def geometric(r: dict[str, Any]) -> Bracket:
    size = r["size"]
    return bracket(local_dp(truncated_geometric(size, r["epsilon"] * (size - 1)), nx.path_graph(size)))


def stated_probability(r: dict[str, Any]) -> Bracket:
    k, p = r["categories"], r["probability"]
    return bracket(local_dp(Channel(np.full((k, k), (1 - p) / (k - 1)) + (p - (1 - p) / (k - 1)) * np.eye(k))))


def response_renyi(r: dict[str, Any]) -> Bracket:
    if r["k"] == 2:
        value = pure_to_renyi(PureDP(r["epsilon"]), r["order"]).epsilon
        return value * (1 - 1e-12), value
    matrix = randomized_response(r["k"], r["epsilon"]).matrix
    return bracket(FinitePair(matrix[0], matrix[1]).renyi(r["order"]))


def variation(value: float) -> Bracket:
    return value * (1 - 1e-12), value


def advanced(r: dict[str, Any]) -> Bracket:
    fold = kov15(r["epsilon"], r["delta"], r["num_queries"])
    return variation(float(fold.epsilons[fold.deltas <= r["total_delta"] * (1 + 1e-12)].min()))


MEASURES: dict[str, Callable[[dict[str, Any]], Bracket]] = {
    **{f"{law} delta": lambda r, law=law: delta(law, r)
       for law in ("laplace", "gaussian", "discrete_laplace", "discrete_gaussian")},
    **{f"{law} loss": lambda r, law=law: loss(law, r)
       for law in ("laplace", "gaussian", "discrete_laplace", "discrete_gaussian")},
    **{f"{law} rounded loss": lambda r, law=law: rounded(law, r)
       for law in ("laplace", "discrete_laplace", "response")},
    "laplace dots": dots,
    "mixture delta": mixture,
    "one response renyi": lambda r: bracket(response(r).renyi(float(r["order"]))),
    "special response renyi": lambda r: bracket(response(r | {"relation": "special"}).renyi(float(r["order"]))),
    "sampled gaussian renyi": lambda r: sampled_renyi(gaussian(r["sigma"]).pair, r),
    "sampled laplace renyi": lambda r: sampled_renyi(laplace(r["epsilon"]).pair, r),
    "gaussian sigma": lambda r: variation(Gaussian.for_approximate_dp(
        r["epsilon"], r["delta"], r["sensitivity"] * math.sqrt(r["num_queries"])).sigma),
    "advanced epsilon": advanced,
    "mutual information, bits": information,
    "Shannon capacity, bits, at the prior that attains it": capacity,
    "multiplicative capacity": lambda r: variation(math.exp(maximal_leakage(
        np.array(r["channel"]) / np.sum(r["channel"], axis=1, keepdims=True)).value)),
    "smallest epsilon": lambda r: bracket(local_dp(r["channel"])),
    "geometric epsilon per step": geometric,
    "exponential epsilon per distance": lambda r: exponential(line(r), r["epsilon"]),
    "exponential grid epsilon per distance": lambda r: exponential(square(r), r["epsilon"]),
    "response epsilon": lambda r: bracket(local_dp(randomized_response(r["size"], r["epsilon"]))),
    "probability response epsilon": stated_probability,
    "gaussian epsilon": lambda r: bracket(gaussian(r["sigma"]).pair.approximate_dp(r["delta"])),
    "laplace renyi": lambda r: bracket(laplace(r["epsilon"]).pair.renyi(r["order"])),
    "response renyi": response_renyi,
    "staircase variation": lambda r: variation(staircase(r["epsilon"], r["gamma"]).eta),
    "laplace variation": lambda r: bracket(laplace(r["epsilon"]).pair.total_variation()),
    "laplace restricted kl": lambda r: bracket(laplace(r["epsilon"]).restricted_kl()),
    "response zcdp": lambda r: variation(pure_to_zcdp_sharp(PureDP(r["epsilon"])).rho),
}  # fmt: skip
ABOVE = {("sampled gaussian renyi", 1.5)}
"""dp-accounting's value at this order is 3 per cent above the integral, which is a bound; ours must not exceed it."""

CHECKED = {"laplace scale": scale_brackets, "sampled gaussian sigma": sigma_at}


def disagreement(group: dict[str, Any], row: list[Any]) -> str | None:
    """How a case disagrees with its expected value, or None."""
    arguments, measure, places = dict(zip(group["names"], row[:-1], strict=True)), group["measure"], group["places"]
    if measure in CHECKED:
        CHECKED[measure](arguments, float(row[-1]))
        return None
    low, high = MEASURES[measure](arguments)
    with mpmath.workdps(50):
        expected = mpmath.mpf(row[-1])
        if mpmath.isinf(expected):
            return None if low == high == float(expected) else f"{arguments}: [{low!r}, {high!r}], expected {expected}"
        if places == "enclosed" and (measure, arguments.get("k")) != ("response renyi", 7):
            good = low <= expected <= high and high <= expected * (1 + mpmath.mpf(10) ** -7)
        elif (measure, arguments.get("order")) in ABOVE:
            good = 0.96 * expected <= low <= high <= expected
        elif isinstance(places, str):
            good = abs(high - expected) <= 1e-4 * abs(expected) + 1e-8 and low <= expected * (1 + 1e-4) + 1e-8
        else:
            room = 0.5 * mpmath.mpf(10) ** -places + 1e-12
            good = abs(high - expected) <= room and abs(low - expected) <= room
        return None if good else f"{arguments}: [{low!r}, {high!r}], expected {mpmath.nstr(expected, 20)}"


@pytest.mark.full(but=9)
@pytest.mark.parametrize("group", DATA["groups"], ids=lambda group: f"{group['source']}: {group['measure']}")
def test_values_agree_with_those_of_other_packages(group):
    """Each value lies within the digits of its source, or between the two ends of the guarantee."""
    assert [text for row in group["cases"] if (text := disagreement(group, row)) is not None] == []


def test_there_are_many_and_each_has_a_source():
    """More than 600 values of other packages and more than 300 of published formulas; no case stands there twice."""
    peers = sum(len(group["cases"]) for group in DATA["groups"] if not group["source"].startswith("["))
    total = sum(len(group["cases"]) for group in DATA["groups"])
    assert peers > 600
    assert total - peers > 300
    assert all(group["source"] and group["cases"] for group in DATA["groups"])
    assert {group["measure"] for group in DATA["groups"]} == {*MEASURES, *CHECKED}


def test_a_wrong_value_is_noticed():
    """The comparison has power: a value moved by ten times its digits is refused, in each group."""
    for group in DATA["groups"]:
        row = group["cases"][-1]
        if group["measure"] in CHECKED or str(row[-1]) in ("inf", "-inf"):
            continue
        moved = float(row[-1]) * 1.01 + 1e-4
        assert disagreement(group, [*row[:-1], moved]) is not None, (group["source"], group["measure"])


def test_losses_that_are_rounded_sum_to_one():
    """The cells of one pair, in the data, hold all of its mass: none is missing among the values."""
    cells: dict[Any, float] = {}
    for group in DATA["groups"]:
        if group["measure"] == "laplace rounded loss" and "discretization" not in group["source"]:
            for row in group["cases"]:
                key = tuple(v for n, v in zip(group["names"], row[:-1], strict=True) if n != "loss")
                cells[key] = cells.get(key, 0.0) + row[-1]
    assert len(cells) >= 10
    assert all(total == pytest.approx(1, abs=1e-6) for total in cells.values())
