"""The range of a likelihood ratio on cells encloses it, whoever chooses the cells; forged bounds are refused."""

import json
import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import stats

from ldpopt import Divergence, InvalidInput, LocalDP, optimal_channel
from ldpopt.design.design import Design
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design
from ldpopt.design.problems import likelihood
from ldpopt.design.problems.likelihood import posterior_range
from ldpopt.design.problems.reduction import Cells, dominating_pair
from ldpopt.design.two_hypotheses.method import _level_and_potentials
from ldpopt.design.two_hypotheses.proof import EnvelopeDual
from ldpopt.divergences import KL

PAIRS = {
    "shift": (stats.norm(0, 1), stats.norm(0.3, 1)),
    "spike": (stats.norm(0, 1), stats.norm(0, 0.001)),
    "wide": (stats.norm(2, 3), stats.norm(0, 1)),
    "Laplace": (stats.laplace(0, 1), stats.laplace(0.7, 0.5)),
    "logistic": (stats.logistic(0, 1), stats.logistic(1, 0.3)),
    "exponential": (stats.expon(), stats.expon(0.5, 2)),
    "gamma": (stats.gamma(3), stats.gamma(0.5, 0.25, 2)),
    "chi-squared": (stats.chi2(3), stats.gamma(2, scale=2)),
    "beta": (stats.beta(2, 3), stats.beta(0.5, 5)),
    "shifted beta": (stats.beta(2, 3, 0.1, 0.7), stats.uniform(0.2, 0.7)),
    "t": (stats.t(3), stats.norm(0.5, 1)),
    "Cauchy": (stats.cauchy(), stats.cauchy(1, 2)),
    "uniform": (stats.uniform(0, 1), stats.uniform(0.3, 2)),
    "lognormal": (stats.lognorm(1), stats.lognorm(0.5, scale=2)),
    "across": (stats.laplace(), stats.lognorm(0.3)),
    "Poisson": (stats.poisson(3), stats.poisson(6, loc=2)),
    "binomial": (stats.binom(20, 0.3), stats.binom(30, 0.4, loc=-5)),
    "geometric": (stats.geom(0.3), stats.poisson(4)),
    "negative binomial": (stats.nbinom(3.5, 0.3), stats.nbinom(0.7, 0.1)),
}


def log_density(law, x):
    """The log density in 40 digits."""
    shapes, loc, scale = law.dist._parse_args(*law.args, **law.kwds)
    x, scale = mpmath.mpf(x) - mpmath.mpf(float(loc)), mpmath.mpf(float(scale))
    y, log, a = x / scale, mpmath.log, [mpmath.mpf(float(one)) for one in shapes]
    name = law.dist.name
    with np.errstate(all="ignore"):
        match name:
            case "norm":
                return -(y**2) / 2 - log(2 * mpmath.pi) / 2 - log(scale)
            case "laplace":
                return -abs(y) - log(2 * scale)
            case "logistic":
                return -y - 2 * mpmath.log1p(mpmath.exp(-y)) - log(scale)
            case "expon":
                return -y - log(scale)
            case "uniform":
                return -log(scale)
            case "gamma":
                return (a[0] - 1) * log(y) - y - mpmath.loggamma(a[0]) - log(scale)
            case "chi2":
                return (a[0] / 2 - 1) * log(y / 2) - y / 2 - mpmath.loggamma(a[0] / 2) - log(2 * scale)
            case "beta":
                return (a[0] - 1) * log(y) + (a[1] - 1) * log(1 - y) - log(mpmath.beta(*a)) - log(scale)
            case "t" | "cauchy":
                v = a[0] if a else mpmath.mpf(1)
                size = mpmath.loggamma((v + 1) / 2) - mpmath.loggamma(v / 2) - log(v * mpmath.pi) / 2 - log(scale)
                return size - (v + 1) / 2 * mpmath.log1p(y**2 / v)
            case "lognorm":
                return -(log(y) ** 2) / (2 * a[0] ** 2) - log(a[0] * y) - log(2 * mpmath.pi) / 2 - log(scale)
            case "poisson":
                return x * log(a[0]) - a[0] - mpmath.loggamma(x + 1)
            case "geom":
                return (x - 1) * log(1 - a[0]) + log(a[0])
            case "binom":
                return log(mpmath.binomial(a[0], x)) + x * log(a[1]) + (a[0] - x) * log(1 - a[1])
            case "nbinom":
                chosen = mpmath.loggamma(x + a[0]) - mpmath.loggamma(a[0]) - mpmath.loggamma(x + 1)
                return chosen + a[0] * log(a[1]) + x * log(1 - a[1])
    raise AssertionError(name)


def posterior(pair, x):
    """p0/(p0 + p1) of the densities at x in 40 digits; None where neither law has mass."""
    has = [law.support()[0] <= x <= law.support()[1] for law in pair]
    if not all(has):
        return None if not any(has) else float(has[0])
    return 1 / (1 + mpmath.exp(log_density(pair[1], x) - log_density(pair[0], x)))


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", PAIRS)
def test_every_posterior_of_a_cell_is_in_its_range(name):
    """Whatever the cells, wide or narrow, at the ends of supports or across turning points, no answer is outside."""
    pair = PAIRS[name]
    rng = np.random.default_rng(len(name))
    discrete = likelihood.is_discrete(pair[0])
    with mpmath.workdps(40):
        for count in (1, 12):
            quantiles = np.concatenate([law.ppf(rng.random(count)) for law in pair])
            edges = np.unique(np.concatenate([quantiles, rng.normal(0, 3, 2), quantiles[:1] + 1e-9]))
            low, high = posterior_range(*pair, edges)
            assert (low <= high).all()
            ends = [max(-60.0, edges[0] - 50), *edges.tolist(), edges[-1] + 50]
            for cell, (left, right) in enumerate(pairwise(ends)):
                if discrete:
                    inside = np.arange(math.floor(left) + 1, math.floor(right) + 1)
                else:
                    inside = left + (right - left) * np.concatenate([rng.random(8), [1e-9, 0.5, 1 - 1e-9]])
                    inside = inside[(inside > left) & (inside < right)]
                for x in inside.tolist():
                    s = posterior(pair, x)
                    assert s is None or low[cell] <= s <= high[cell], (x, left, right)


@pytest.mark.parametrize("name", PAIRS)
def test_the_range_is_narrow_where_cells_are(name):
    """On the cells of a design the ranges are hardly wider than the step from one cell to the next."""
    cells = Cells.cut(*PAIRS[name], 4000)
    p0, p1 = cells.masses
    low, high = posterior_range(*PAIRS[name], cells.edges)
    assert ((p0 + p1) * (high - low)).sum() < 2e-2


def forged(p0, p1, cuts):
    """A design whose bound is proved from these cuts: its channel and its numbers are as good as the cuts allow."""
    fine = np.asarray(cuts, dtype=float)
    first, second = Cells(p0, p1, fine).endpoints()
    points = dominating_pair(first / first.sum(), second / second.sum(), np.linspace(0, 1, 400))
    level, potentials = _level_and_potentials(KL, *points, 1.0, 0.0)
    honest = optimal_channel(Divergence(KL, p0, p1), LocalDP(1.0))
    dual = EnvelopeDual(
        honest.utility, honest.constraints, honest.channel, level, potentials, np.column_stack(points), fine,
        edges=honest.edges,
    )  # fmt: skip
    return honest, dual


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("p1", "cuts", "claimed"),
    [
        (stats.norm(0, 0.001), [-3.0, -2.0, 1.9, 3.0], 0.0014131),
        (stats.norm(0, 0.01), [-3.0, -1.0, 0.9, 3.0], 0.058),
    ],
    ids=["0.001", "0.01"],
)
def test_cuts_beside_the_mass_prove_nothing_that_is_false(p1, cuts, claimed):
    """A bound that is below what a channel keeps is refused, however the cuts of the proof are chosen."""
    honest, dual = forged(stats.norm(0, 1), p1, cuts)
    assert honest.certified
    assert honest.value > 7 * claimed
    assert not dual.bound < honest.value


def test_sampled_points_do_not_pass_for_dominating_ones(monkeypatch):
    """The forgery that nine samples of a cell proved is refused now: a bound 325 times below the value."""

    def sampled(p0, p1, edges):
        left, right = edges[:-1], edges[1:]
        x = left[:, None] + (right - left)[:, None] * np.linspace(0, 1, 9)
        s = 1 / (1 + np.exp(np.minimum(p1.logpdf(x) - p0.logpdf(x), 700)))
        step = np.abs(np.diff(s, axis=1)).max(axis=1)
        low, high = np.clip(s.min(axis=1) - step, 0, 1), np.clip(s.max(axis=1) + step, 0, 1)
        return np.concatenate([[0.0], low, [0.0]]), np.concatenate([[1.0], high, [1.0]])

    cuts = [-3.0, -2.0, 1.9, 3.0]
    with monkeypatch.context() as patched:
        patched.setattr("ldpopt.design.problems.reduction.posterior_range", sampled)
        patched.setattr("ldpopt.design.problems.reduction.check_masses", lambda *_: None)
        honest, dual = forged(stats.norm(0, 1), stats.norm(0, 0.001), cuts)
        assert dual.bound < honest.value / 5
    for exact in (False, True):
        assert not dual.verify(exact)


LAW = {"kind": "scipy.stats", "name": "norm", "args": [0.0, 1.0], "kwds": {}}
HONEST = optimal_channel(Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)), LocalDP(1.0))


def with_laws(p0, p1, **fields):
    """The contents of an honest file with other laws."""
    data = json.loads(design_text(HONEST))
    data["utility"]["p0"], data["utility"]["p1"] = LAW | p0, LAW | p1
    return json.dumps(data | fields)


def poisson(mu, loc=0.0):
    return {"name": "poisson", "args": [mu], "kwds": {"loc": loc}}


@pytest.mark.parametrize(
    ("p0", "p1", "message"),
    [
        (poisson(3.0, 0.5), poisson(6.0, 0.5), "a whole loc"),
        (poisson(3.0), {}, "one of each"),
        ({}, poisson(3.0), "one of each"),
        (poisson(3.0, 1e300), poisson(3.0), "a whole loc"),
        (poisson(-1.0), poisson(3.0), "parameters of poisson"),
    ],
)
def test_incomparable_distributions_are_refused_in_one_line(p0, p1, message):
    """Discrete against continuous, and atoms between the integers: one sentence, for a file as for a call."""
    with pytest.raises(InvalidInput, match=message) as error:
        parse_design(with_laws(p0, p1))
    assert "\n" not in str(error.value)


def test_calls_refuse_the_same():
    """A call says what a file says, and takes no arrays of parameters."""
    with pytest.raises(InvalidInput, match="one of each"):
        optimal_channel(Divergence(KL, stats.poisson(3), stats.norm(0, 1)), LocalDP(1.0))
    with pytest.raises(InvalidInput, match="a number for each parameter"):
        Divergence(KL, stats.norm([0, 1]), stats.norm(0, 1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "p0",
    [
        {"args": [0.0, 1e-320]},
        {"args": [1e308, 1.0]},
        {"args": [0.0, 1e300]},
        {"name": "gamma", "args": [1e-300]},
        {"name": "beta", "args": [1e300, 1e-300]},
        {"name": "t", "args": [1e-9]},
        {"name": "lognorm", "args": [1e-200]},
        {"name": "weibull_min", "args": [2.0]},
        {"name": "uniform", "args": [0.0, 5e-324]},
        {"name": "cauchy", "args": [0.0, 1e-100]},
        {"name": "truncnorm", "args": [-1.0, 1.0]},
        {"name": "vonmises", "args": [1.0]},
        {"name": "kappa4", "args": [1.0, 1.0]},
    ],
    ids=str,
)
def test_extreme_and_unknown_distributions_in_a_file_fail_in_words(p0):
    """No distribution makes a file raise, warn or verify."""
    try:
        design = parse_design(with_laws(p0, {}))
    except InvalidInput:
        return
    found = design.verify()
    assert not found
    assert all("\n" not in line for line in found.failures)


def test_an_unknown_distribution_has_a_design_without_proof():
    """A design between laws that are in no table is not certified, says why, and no numbers in a file change that."""
    design = optimal_channel(Divergence(KL, stats.weibull_min(2), stats.weibull_min(3)), LocalDP(1.0))
    assert isinstance(design, Design)
    assert design.value > 0
    assert not design.certified
    assert "not proved: the likelihood ratio of the law 'weibull_min'" in design.note
    data = {"name": "weibull_min", "args": [2.0]}
    found = parse_design(with_laws(data, data | {"args": [3.0]})).verify()
    assert any(line.startswith("not proved: the likelihood ratio of the law 'weibull_min'") for line in found.failures)
    with pytest.raises(InvalidInput, match="not proved"):
        posterior_range(stats.norm.__class__(a=0.0, name="norm")(), stats.norm(), np.array([0.0, 1.0]))


def test_logarithms_of_densities_that_underflow_are_not_used():
    """Far in a tail scipy's Laplace density is subnormal, and its logarithm wrong in the first digit: no range is built
    on it.
    """
    far = likelihood.KnownLaw.from_distribution(stats.laplace()).log_density(np.array([1.0, 744.2, 800.0]))
    assert far.lower.tolist()[1:] == [-np.inf] * 2
    assert far.upper.tolist()[1:] == [np.inf] * 2
    assert far.lower[0] == pytest.approx(-1 - math.log(2), rel=1e-12)
    near = likelihood.KnownLaw.from_distribution(stats.norm()).log_density(np.array([100.0]))
    assert near.lower[0] == pytest.approx(-5000 - math.log(2 * math.pi) / 2, rel=1e-12)


def test_masses_that_contradict_the_densities_prove_nothing():
    """Where the distribution function and the density of a law disagree, neither is believed."""
    cells = Cells(stats.norm(0, 1), stats.norm(1, 1), np.linspace(-2, 3, 50))
    low, high = posterior_range(cells.p0, cells.p1, cells.edges)
    likelihood.check_masses(*cells.masses, low, high)
    with pytest.raises(InvalidInput, match="not proved: the probabilities"):
        likelihood.check_masses(*cells.masses[::-1], low, high)
