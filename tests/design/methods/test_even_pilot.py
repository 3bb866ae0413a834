"""Designs for estimation at equal shares: few sets that treat all pairs alike are as good as all subsets of a size."""

import dataclasses
import math

import numpy as np
import pytest

from ldpopt.design import AOptimal, FisherInformation, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.columns.branches import Sizes
from ldpopt.design.columns.prices import Charges, subsets
from ldpopt.design.load import load_design
from ldpopt.design.methods.estimation import EstimationColumns
from ldpopt.design.methods.variances import EvenPilot
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import subset_selection
from ldpopt.numbers.enclosures import EXACT, FLOAT


def even(k):
    return FisherInformation(np.full(k, 1 / k))


def closed_form(k, epsilon):
    """The error of subset selection of the best size (theory of subset selection [YB])."""
    e = math.exp(epsilon)
    return min((k - 1) ** 2 * (k + (e - 1) * s) ** 2 / ((e - 1) ** 2 * k * s * (k - s)) for s in range(1, k))


@pytest.mark.parametrize("k", [9, 11, 13, 16, 21, 31, 64])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_closed_form_is_reached_and_proved(k, epsilon):
    """Value and bound are those of subset selection of the best size, to ten digits, with at most k^2 reports."""
    design = optimal_channel(even(k), LocalDP(epsilon))
    best = closed_form(k, epsilon)
    assert "rotations" in design.method
    assert design.lower_bound <= best * (1 + 1e-14)
    assert design.value == pytest.approx(best, rel=1e-9)
    assert design.relative_gap < 1e-9
    assert design.channel.shape[1] <= k * (k // 2 + 1)
    assert design.verify()


def test_it_is_as_good_as_all_subsets_of_the_size():
    """The channel of all 84 subsets of 3 of 9 categories leaves the same error as the 36 reports that were found."""
    every = min(even(9).value(subset_selection(9, 1.0, size)) for size in range(1, 9))
    design = optimal_channel(even(9), LocalDP(1.0))
    assert design.value == pytest.approx(every, rel=1e-10)
    assert optimal_channel(even(9), LocalDP(1.0), method=EstimationColumns()).lower_bound <= design.value


def test_it_is_proved_in_balls_and_kept_in_files(tmp_path):
    """The bound holds in exact arithmetic, and is the same when the design is read again."""
    design = optimal_channel(even(10), LocalDP(1.0))
    assert design.certificate.verify(exact=True)
    design.save(tmp_path / "design.json")
    read = load_design(tmp_path / "design.json")
    assert isinstance(read.certificate.relaxed, Sizes)
    assert read.certificate.bound == design.certificate.bound
    forged = dataclasses.replace(design.certificate, rows=design.certificate.rows * 0.99)
    assert forged.bound <= closed_form(10, 1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_no_pattern_is_priced_above_what_sizes_say(seed, epsilon):
    """At any numbers, alike or not, all patterns of six inputs are below the bound, which alike ones reach."""
    rng = np.random.default_rng(seed)
    sets, none = subsets(6)[:-1], np.zeros((6, 6))
    for kernel, p, rows in [
        (rng.normal(size=(3, 6)), rng.dirichlet(np.ones(6)), rng.normal(size=6)),
        (np.eye(6), np.full(6, 1 / 6), np.full(6, rng.normal())),
    ]:
        for arithmetic in (FLOAT, EXACT):
            charges = Charges.of(arithmetic.of(kernel), p, rows, none)
            level = 1 / arithmetic.of(epsilon).expm1()
            true = charges.most(level * np.ones(len(sets)), arithmetic.of(sets))
            found = Sizes().most(charges, arithmetic.of(epsilon))
            assert found >= true - 1e-12 * abs(true)
            if len(kernel) == 6:
                assert found == pytest.approx(true, rel=1e-9)
    assert Sizes().most(Charges.of(FLOAT.of(kernel), p, rows, np.triu(none + 1, 1)), FLOAT.of(epsilon)) == math.inf


@pytest.mark.parametrize(
    ("utility", "constraints", "words"),
    [
        (even(8), [LocalDP(1.0)], "9 to 200"),
        (even(1000), [LocalDP(1.0)], "size 269 is optimal, of error 3675.33"),
        (FisherInformation([0.11] * 5 + [0.09] * 5), [LocalDP(1.0)], "not all equal"),
        (FisherInformation(np.full(10, 0.1), AOptimal(np.arange(1.0, 11))), [LocalDP(1.0)], "weight one"),
        (even(10), [LocalDP(1.0), TotalVariation(0.1)], "total variation"),
        (even(10), [LocalDP(31.0)], "above 30"),
    ],
)
def test_what_it_is_not_for_is_refused(utility, constraints, words):
    """The reason says which of its limits a problem is beyond."""
    with pytest.raises(InvalidInput, match=words):
        optimal_channel(utility, constraints, method=EvenPilot())
