"""Ask one package what it does: ``python -m peer_probes PEER`` in an environment where PEER is, prints JSON.

A probe calls the package for one feature, checks what comes out, and says what was called; one whose check fails, or
that raises, is a finding too. Where a package has no probe for a feature, its public names are searched for the words
that such a function would be called by, and what matches is told: no line of the table is an opinion.

`docs/_ext/peers.py` installs the packages, runs this in each, and writes docs/peers.json. Nothing of ldpopt is imported
but by the probes of ldpopt's own column.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import math
import pkgutil
import re
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

FEATURES: dict[str, tuple[str, str]] = {
    "response": ("draws randomized responses of $k$ answers", r"randomi[sz]ed_?resp|randresp|GRR|DEClient"),
    "unary": ("draws unary encodings, symmetric (SUE) and optimized (OUE)", r"unary|\bUE|OUE|SUE|bitvec"),
    "hashing": ("draws local hashing (OLH)", r"hash|\bLH|OLH"),
    "thresholding": ("draws thresholded histograms (THE)", r"thresh|histogram_?enc|\bHE(?![a-z])|THE\b"),
    "subset": ("draws subset selection", r"subset_?sel|\bSS_"),
    "hadamard": ("draws Hadamard response", r"hadamard|hadarmard"),
    "number": ("draws noise for a number", r"laplace|geometric|gaussian(?!_calib)|piecewise|square_?wave"),
    "shares": ("estimates shares from reports", r"debias|aggregator|estimate(?!d)"),
    "intervals": ("gives shares with intervals", r"interval|confidence|conf_?int"),
    "bayes": ("estimates by expectation–maximization", r"ibu|bayesian_update|expectation_max|maximum_?likelihood"),
    "attributes": ("splits a budget over several attributes", r"SMP|SPL|RSpFD|split_budget|attribute"),
    "samples": ("weights, strata and clusters of the sample", r"strat(a|um)|cluster|taylor|replicate_?w|SampleDesign"),
    "replicates": ("replicate weights, raking, post-stratification", r"replicate|rak(e|ing)|post_?strat"),
    "power": ("sample size or power", r"power|sample_size|respondents"),
    "regression": ("regression on randomized answers", r"regress|glm"),
    "states": ("a mechanism states its own guarantee", r"^map$|local_dp|guarantee|privacy_loss|get_approxDP"),
    "epsilon": ("$\\varepsilon$ of an arbitrary matrix", r"smallest_epsilon|local_dp|is_private|audit"),
    "variation": ("total variation of an arbitrary matrix", r"total_var"),
    "renyi": ("Rényi divergence and zCDP of an arbitrary matrix", r"renyi|rdp|zcdp"),
    "leakage": ("mutual information and leakage of a matrix", r"leakage|mutual_info|shannon|capacity|vuln"),
    "tradeoff": ("trade-off curve (f-DP)", r"trade_?off|fdp|f_dp|beta$"),
    "composition": ("$(\\varepsilon, \\delta)$ of many responses together", r"compos|k_fold|kov"),
    "pairs": (
        "composes user-defined pairs of distributions",
        r"two_probability|from_pmf|FinitePair|create_from|prob.*mass",
    ),
    "training": ("subsampled Gaussians, for private training", r"subsampl.*gauss|poisson.*gauss|dpsgd|noisy_?sgd"),
    "loss": ("channel of least expected loss within $\\varepsilon$", r"min_loss|ExpectedLoss|optimal_(channel|mech)"),
    "optimal": (
        "best channel for a divergence or information within $\\varepsilon$ and $\\eta$", r"optimal_(channel|mech)"
    ),
    "certificate": ("a proof of optimality that can be checked", r"certificate|dual|upper_bound$"),
}  # fmt: skip
"""For each feature what the page calls it, and the words that functions for it would have in their names."""

PACKAGES = {
    "pure-ldp": "pure_ldp", "multi-freq-ldpy": "multi_freq_ldpy", "qif": "qif", "opendp": "opendp",
    "dp-accounting": "dp_accounting", "prv-accountant": "prv_accountant", "autodp": "autodp",
    "diffprivlib": "diffprivlib", "samplics": "samplics", "ldpopt": "ldpopt",
}  # fmt: skip

MODULES = {
    "pure-ldp": "pure_ldp_probes", "multi-freq-ldpy": "multi_freq_probes", "qif": "qif_probes",
    "opendp": "central_probes", "diffprivlib": "central_probes", "dp-accounting": "accounting_probes",
    "prv-accountant": "accounting_probes", "autodp": "accounting_probes", "samplics": "samplics_probes",
    "ldpopt": "own_probes",
}  # fmt: skip
"""Where the probes of each package are."""

Probe = Callable[[], str]
"""A probe returns the names that it called, and after a semicolon what is to be known of them."""

PROBES: dict[str, dict[str, Probe]] = {peer: {} for peer in PACKAGES}
PITFALLS: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {peer: {} for peer in PACKAGES}
FLIP = np.array([[0.75, 0.25], [0.25, 0.75]])
THREE = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.25, 0.5, 0.25]])
N = 4000


def probe(peer: str, feature: str) -> Callable[[Probe], Probe]:
    """Register a probe, which returns what it called."""

    def keep(function: Probe) -> Probe:
        assert feature in FEATURES
        PROBES[peer][feature] = function
        return function

    return keep


def pitfall(peer: str, name: str) -> Callable[[Any], Any]:
    """Register a measurement, which returns its numbers by name."""

    def keep(function: Any) -> Any:
        PITFALLS[peer][name] = function
        return function

    return keep


def near(found: float, expected: float, size: float) -> None:
    """Fail unless two numbers are within `size`."""
    if not abs(found - expected) <= size:
        raise AssertionError(f"{found!r}, not {expected!r}")


def exact_epsilon(epsilon: float, count: int, delta: float) -> float:
    """The epsilon at `delta` of `count` responses with two answers, from the binomial law of their loss [KOV15]."""
    odds = [math.lgamma(count + 1) - math.lgamma(i + 1) - math.lgamma(count - i + 1) for i in range(count + 1)]
    up, down = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    terms = [(odds[i] + i * up + (count - i) * down, (2 * i - count) * epsilon) for i in range(count + 1)]

    def left(at: float) -> float:
        return math.fsum(math.exp(log) * -math.expm1(at - loss) for log, loss in terms if loss > at)

    low, high = 0.0, count * epsilon
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) > delta else (low, middle)
    return high


EXACT = exact_epsilon(0.1, 100, 1e-6)
"""What a hundred responses of epsilon 0.1 have at delta = 1e-6."""


def drawn(share: float, expected: float, count: int = N) -> None:
    """Fail unless a share of `count` draws is within six standard errors of what it should be."""
    near(share, expected, 6 * math.sqrt(max(expected * (1 - expected), 1 / count) / count))


def names(peer: str) -> tuple[list[str], list[str]]:
    """The public functions, classes and methods of a package, without its tests; and modules that do not import."""
    root = PACKAGES[peer]
    found: set[str] = set()
    failed: list[str] = []
    queue, seen = [root], {root}
    while queue:
        name = queue.pop()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                module = importlib.import_module(name)
        except BaseException as error:
            failed.append(f"{name}: {type(error).__name__}")
            continue
        inside = pkgutil.iter_modules(getattr(module, "__path__", []), f"{name}.")
        more = [one.name for one in inside if "test" not in one.name.rsplit(".", 1)[1]]
        queue += [one for one in more if one not in seen and "._" not in one]
        seen.update(more)
        _gather(module, root, found, set())
    return sorted(found), sorted(failed)


def _gather(module: Any, path: str, found: set[str], seen: set[int]) -> None:
    if id(module) in seen:
        return
    seen.add(id(module))
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if inspect.ismodule(value):
            if value.__name__.startswith("qif"):  # Its modules are made inside one extension.
                _gather(value, f"{path}.{name}", found, seen)
        elif callable(value) and _home(value, path) in (path.split(".")[0], "pybind11_builtins"):
            found.add(name)
            if inspect.isclass(value):
                found.update(one for one in vars(value) if not one.startswith("_"))


def _home(value: Any, path: str) -> str:
    return str(getattr(value, "__module__", "") or path).split(".")[0]


def run(peer: str) -> dict[str, Any]:
    """What the probes of a package find, by feature, and what its names match where it has none."""
    public, failed = names(peer)
    answers: dict[str, Any] = {}
    for feature, (_, words) in FEATURES.items():
        asked = PROBES[peer].get(feature)
        if asked is None:
            answers[feature] = {"answer": "no", "names alike": [one for one in public if re.search(words, one, re.I)]}
        else:
            answers[feature] = answered(asked)
    return {"version": version(peer), "names": len(public), "not imported": failed, "features": answers}


def answered(asked: Probe) -> dict[str, str]:
    """What a probe finds: the names that it called and what is to be known of them, or why it failed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by, _, note = asked().partition("; ")
    except Exception as error:
        return {"answer": "failed", "by": f"{type(error).__name__}: {error}"[:200]}
    return {"answer": "yes", "by": by} | ({"note": note} if note else {})


def measured(peer: str) -> dict[str, Any]:
    """The numbers of a package's pitfalls."""
    found: dict[str, Any] = {}
    for name, measure in PITFALLS[peer].items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = measure()
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    return found
