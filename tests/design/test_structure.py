"""Which staircase patterns are optimal, and where that changes."""

import csv
import importlib
import io
import itertools
import math

import numpy as np
import pytest
from design_problems import random_pair, utility
from scipy.optimize import brentq

from ldpopt import Divergence, InvalidInput, MutualInformation, optimal_channel
from ldpopt.design import LocalDP, PatternLP, TotalVariation
from ldpopt.design.structure import structures
from ldpopt.divergences import KL, TOTAL_VARIATION, hockey_stick
from ldpopt.errors import SolverError
from ldpopt.mechanisms import randomized_response


def partitions(answers):
    """All partitions of a list, contiguous in any order or not."""
    if len(answers) == 1:
        yield [answers]
        return
    first, *rest = answers
    for smaller in partitions(rest):
        for i, block in enumerate(smaller):
            yield [*smaller[:i], [first, *block], *smaller[i + 1 :]]
        yield [[first], *smaller]


def response(blocks, k, epsilon):
    """Randomized response on the block of the answer."""
    label = np.zeros(k, dtype=int)
    for number, block in enumerate(blocks):
        label[list(block)] = number
    return randomized_response(len(blocks), epsilon).matrix[label] if len(blocks) > 1 else np.ones((k, 1))


def test_break_points_are_where_two_structures_keep_the_same():
    """Each break point of the KL divergence is the root of the difference of the two neighbours' utilities."""
    problem = utility(5, 1)
    found = structures(problem, 0.01, 12.0)
    assert len(found) >= 3
    for before, after, (low, high) in zip(found.pieces, found.pieces[1:], found.breaks, strict=False):

        def lead(epsilon, before=before, after=after):
            kept = [problem.value(response(piece.patterns, 5, epsilon)) for piece in (before, after)]
            return kept[0] - kept[1]

        root = brentq(lead, low - 0.05, high + 0.05, xtol=1e-13)
        assert high - low <= 1e-9
        assert low - 2e-9 <= root <= high + 2e-9


def test_no_partition_at_all_is_better():
    """At every epsilon the structure's channel is the best of all partitions, contiguous or not [SPR]."""
    problem = utility(5, 4)
    found = structures(problem, 0.05, 8.0, tolerance=1e-6)
    for epsilon in np.geomspace(0.05, 8.0, 15):
        best = max(problem.value(response(p, 5, epsilon)) for p in partitions(list(range(5))))
        patterns = found.structure_at(epsilon).patterns
        assert problem.value(response(patterns, 5, epsilon)) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_optima_are_binary_for_small_epsilon_and_randomized_response_for_large(seed):
    """For small epsilon the binary mechanism on {P0 >= P1} is optimal, for large epsilon k-RR [KOV14, Thm 5 and 6]."""
    p0, p1 = random_pair(6, seed)
    found = structures(Divergence(KL, p0, p1), 0.001, 40.0, tolerance=1e-6)
    first, last = found.pieces[0], found.pieces[-1]
    larger = set(np.flatnonzero(p0 >= p1).tolist())
    assert first.name == "binary mechanism"
    assert larger in [set(pattern) for pattern in first.patterns]
    assert last.name == "randomized response"
    assert len(last.patterns) == 6


def test_total_variation_is_always_binary():
    """For total variation the binary mechanism is optimal at every epsilon, with erasure under a cap [GI, Thm 5]."""
    problem = utility(6, 2, TOTAL_VARIATION)
    assert [piece.name for piece in structures(problem, 0.01, 10.0)] == ["binary mechanism"]
    capped = structures(problem, 0.01, 10.0, eta=0.2)
    assert [piece.name for piece in capped] == ["binary mechanism", "binary mechanism with erasure"]
    low, high = capped.breaks[0]
    assert low <= 2 * math.atanh(0.2) <= high


def test_patterns_are_those_of_the_linear_program():
    """Within every piece the pattern program's optimal channel has exactly the structure's columns."""
    problem = utility(4, 6)
    for eta in (1.0, 0.3):
        for piece in structures(problem, 0.1, 6.0, eta=eta, tolerance=1e-6):
            epsilon = (piece.low + piece.high) / 2
            design = optimal_channel(problem, [LocalDP(epsilon), TotalVariation(eta)], method=PatternLP())
            high = [column > column.min() * math.exp(epsilon / 2) for column in design.channel.matrix.T]
            used = {tuple(np.flatnonzero(column).tolist()) for column in high}
            assert used == set(piece.patterns)


def test_mutual_information_has_the_same_regimes():
    """A binary mechanism on a set of mass nearest to 1/2 comes first, k-RR last [KOV14, Thm 8 and 9]."""
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    found = structures(MutualInformation(prior), 0.1, 6.0, tolerance=1e-5, grid=12)
    first = found.pieces[0]
    assert first.name == "binary mechanism"
    masses = [prior[list(s)].sum() for n in range(1, 4) for s in itertools.combinations(range(4), n)]
    assert min(abs(prior[list(first.patterns[0])].sum() - 0.5), 1) == pytest.approx(
        np.abs(np.array(masses) - 0.5).min()
    )
    assert found.pieces[-1].name == "randomized response"
    assert (np.diff(found.breaks) <= 1e-5).all()


def test_a_zero_optimum_is_erasure():
    """Below log(gamma) no epsilon-LDP channel keeps a hockey-stick divergence of gamma: erasure."""
    found = structures(utility(5, 1, hockey_stick(1.5)), 0.01, 3.0)
    assert found.pieces[0].name == "erasure"
    assert found.pieces[0].patterns == ((),)
    assert found.breaks[0, 0] >= math.log(1.5)


def test_tables_name_every_structure_and_its_patterns():
    """Text, HTML and CSV name every structure and its patterns by their labels."""
    problem = Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6], inputs=("low", "middle", "high"))
    found = structures(problem, 0.1, 5.0, tolerance=1e-6)
    assert "binary mechanism: {low} {middle|high}" in repr(found)
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["structure"] for row in rows] == [piece.name for piece in found]
    assert float(rows[1]["low"]) == found.breaks[0, 1]
    assert found._repr_html_().count("<tr>") == 1 + len(found)
    assert found.structure_at(0.1) is found.pieces[0]
    assert found.structure_at(5.0) is found.pieces[-1]
    with pytest.raises(InvalidInput, match="epsilon"):
        found.structure_at(6.0)


def test_bad_ranges_and_utilities_are_refused(monkeypatch):
    """Ranges, tolerances and utilities are checked; ties along a range are said to be ties."""
    problem = utility(3, 1)
    with pytest.raises(InvalidInput, match="above low"):
        structures(problem, 1.0, 1.0)
    with pytest.raises(InvalidInput, match="tolerance"):
        structures(problem, 1.0, 2.0, tolerance=0.0)
    with pytest.raises(InvalidInput, match="grid"):
        structures(problem, 1.0, 2.0, grid=1)
    with pytest.raises(InvalidInput, match="utility"):
        structures(MutualInformation(np.full(15, 1 / 15)), 1.0, 2.0)
    module = importlib.import_module("ldpopt.design.structure")
    monkeypatch.setattr(module, "_partition_patterns", lambda u, epsilon, eta: ((epsilon,),))
    with pytest.raises(SolverError, match="tied"):
        structures(problem, 1.0, 2.0, tolerance=1e-4)
