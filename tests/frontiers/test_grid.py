"""Tests of `ldpopt.frontiers`."""

import csv
import io
import math
import pickle

import numpy as np
import pytest
from design_problems import constraints, utility
from scipy.stats import norm

from ldpopt import (
    Channel,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    InvalidInput,
    LocalDP,
    MutualInformation,
    RenyiLDP,
    bounds,
    frontier,
    optimal_channel,
    plots,
    sweep,
)
from ldpopt.bounds import ghazi_issa
from ldpopt.divergences import CHI_SQUARED, JEFFREYS, KL, TOTAL_VARIATION
from ldpopt.frontiers import BASELINES
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import total_variation


@pytest.fixture(scope="module")
def table():
    return frontier(utility(5, 1, JEFFREYS), [0.5, 2.0], [0.1, 0.2, 1.0])


def test_rows_are_the_designs(table):
    """Every row holds the optimum of its own design and is certified."""
    for row in table:
        design = optimal_channel(table.utility, constraints(row.epsilon, row.eta))
        assert row.optimum == pytest.approx(design.value, rel=1e-12)
        assert row.certified


def test_no_mechanism_beats_the_optimum_and_no_bound_is_below_it(table):
    """Gaps of mechanisms are non-negative and those of [GI, Thm 6 and 7] non-positive."""
    for name in ("binary_with_erasure", "randomized_response_with_erasure", "erased_optimum"):
        assert (table.gap(name) >= -1e-9).all()
    for name in ("thm6", "thm7", "upper_bound"):
        assert (table.gap(name) <= 1e-9).all()
    first = table.rows[0]
    assert first.thm7 == ghazi_issa(table.utility.p0, table.utility.p1, 0.5, 0.1)


def test_randomized_response_is_erased_just_enough(table):
    """The k-RR column is the utility of k-RR erased until its own total variation meets eta."""
    for row in table:
        plain = randomized_response(5, row.epsilon)
        keep = min(1.0, row.eta / float(total_variation(plain)))
        assert row.randomized_response_with_erasure == pytest.approx(
            table.utility.value(plain.erase(1 - keep)), rel=1e-9
        )


def test_theorem_5_is_tight_in_the_table():
    """For total variation the bound column equals the optimum where eta binds."""
    table = frontier(utility(5, 1, TOTAL_VARIATION), [1.0], [0.1, 0.3])
    assert np.allclose(table.gap("tv_bound"), 0.0, atol=1e-9)
    assert all(row.thm6 is None for row in table)


def test_csv_and_pandas_agree(table):
    """CSV and DataFrame have the same columns and numbers, gaps included."""
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    frame = table.to_pandas()
    assert list(frame.columns) == list(rows[0])
    assert float(rows[3]["optimum"]) == frame.optimum[3] == table.rows[3].optimum
    assert "gap_thm7" in frame
    assert "gap_tv_bound" not in frame


def test_a_factory_gives_utilities_and_each_sees_every_row():
    """A function of (epsilon, eta) may give the utility, and `each` sees every row as it is made."""
    seen = []
    table = frontier(lambda epsilon, eta: utility(4, round(10 * eta)), [1.0], [0.1, 0.2], on_row=seen.append)
    assert tuple(seen) == table.rows
    assert table.rows[1].optimum == pytest.approx(optimal_channel(utility(4, 2), constraints(1.0, 0.2)).value)


def test_the_repr_shows_the_utility_and_losses(table):
    """The table shows its utility, and what each mechanism loses, as text and HTML."""
    assert "Jeffreys" in repr(table)
    assert repr(table).count("\n") == 1 + len(table)
    assert table._repr_html_().count("<tr>") == 1 + len(table)


def test_infinite_divergence_has_finite_frontier():
    """Hypotheses with an infinite divergence still have a finite frontier under LDP."""
    table = frontier(Divergence(KL, [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]), [1.0], [0.1, 0.4])
    assert all(math.isfinite(row.optimum) and row.certified for row in table)


@pytest.mark.full
def test_every_kind_of_utility_has_a_frontier():
    """Informations, errors, losses and real hypotheses have a frontier, with the comparisons that apply to them."""
    said = {
        MutualInformation([0.5, 0.3, 0.2]): ["randomized_response_with_erasure", "erased_optimum"],
        FisherInformation([0.5, 0.3, 0.2]): [],
        ExpectedLoss(None, 1 - np.eye(3)): [],
        Divergence(KL, norm(0, 1), norm(0.5, 1)): ["erased_optimum"],
    }
    for posed, names in said.items():
        table = frontier(posed, [1.0], [0.3])
        for row in table:
            design = optimal_channel(posed, constraints(row.epsilon, row.eta))
            assert row.optimum == pytest.approx(design.value, rel=1e-6)
            assert row.lower_bound <= row.optimum <= row.upper_bound
        assert [name for name in BASELINES if f"gap_{name}" in table.to_pandas()] == names
        for name in names:
            assert (table.gap(name) >= -1e-9).all()
        assert plots.frontier(table).get_ylabel() == table.plot().get_ylabel()


def test_bad_grids_and_utilities_are_refused():
    """Empty grids, bad caps, unknown columns and values that are not utilities are refused."""
    problem = utility(3, 0, CHI_SQUARED)
    with pytest.raises(InvalidInput, match="at least one epsilon and one eta"):
        frontier(problem, [], [0.1])
    with pytest.raises(InvalidInput, match="eta: expected"):
        frontier(problem, [1.0], [2.0])
    with pytest.raises(InvalidInput, match="utility: expected a utility"):
        frontier(lambda epsilon, eta: 3, [1.0], [0.1])
    with pytest.raises(InvalidInput, match="column: expected one of"):
        frontier(problem, [1.0], [0.1]).column("optimum_")


def test_one_number_is_a_grid_of_one_point():
    """A single epsilon, eta or parameter stands for a list of it; anything else is told in one line."""
    posed = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    assert frontier(posed, 1.0, 0.2).column("optimum") == frontier(posed, [1.0], [0.2]).column("optimum")
    assert len(frontier(posed, np.float64(1.0), np.array([0.1, 0.2]))) == 2
    assert len(sweep(posed, LocalDP, 1.0)) == 1
    for call in (
        lambda: frontier(posed, None, [0.2]),
        lambda: frontier(posed, "1.0", [0.2]),
        lambda: frontier(posed, [1.0], None),
        lambda: sweep(posed, LocalDP, None),
        lambda: bounds.compare(posed, "x"),
    ):
        with pytest.raises(InvalidInput, match="expected"):
            call()


def rotated(epsilon: float, k: int = 3) -> np.ndarray:
    """Randomized response written down by hand, in floats whose rounding knows no epsilon."""
    table = np.ones((k, k)) + np.eye(k) * math.expm1(epsilon)
    return table / table.sum(axis=1, keepdims=True)


THREE = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])


def test_an_own_mechanism_stands_beside_the_optimum():
    """By name in every form of the table, with the value of the very channel that was measured, erased for eta."""
    own = {"by hand": rotated, "fixed, $1": Channel(rotated(0.9)), "both": lambda epsilon, eta: np.full((3, 1), 1.0)}
    table = frontier(THREE, [0.5, 1.0, 2.0], [0.0, 1e-12, 0.1, 0.3, 1.0], baselines=own)
    assert table.names == tuple(own)
    np.testing.assert_allclose(table.gap("by hand")[1:], table.gap("randomized_response_with_erasure")[1:], atol=1e-2)
    np.testing.assert_allclose(
        table.column("by hand"), table.column("randomized_response_with_erasure"), rtol=2e-3, atol=0
    )
    for name in own:
        assert (table.gap(name)[~np.isnan(table.gap(name))] >= -1e-9).all()
    assert [row.baselines["fixed, $1"] is None for row in table] == [row.epsilon < 0.9 for row in table]
    assert (table.column("both") == 0).all()
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert float(rows[-1]["by hand"]) == table.rows[-1].baselines["by hand"] == table.to_pandas()["by hand"].iloc[-1]
    assert float(rows[-1]["gap_fixed, $1"]) == table.gap("fixed, $1")[-1]
    assert "fixed, $1" in repr(table)
    assert table.to_dict()["rows"][0]["baselines"]["by hand"] == 0
    legend = [text.get_text() for text in table.plot().get_legend().get_texts()]
    assert {"by hand", "fixed, \\$1", "both"} <= set(legend)
    assert "by hand" in plots.gap_maps({"x": table}, "by hand")[0].figure.axes[-1].get_ylabel()
    assert pickle.loads(pickle.dumps(table)) == table


def test_an_own_mechanism_is_measured(tmp_path):
    """What it is said to guarantee does not matter: beyond the limits it is refused before anything is designed."""
    designed = []
    leaky = {
        "a little": lambda epsilon: rotated(epsilon * (1 + 1e-6)),
        "much": lambda epsilon: np.eye(3),
        "of both": lambda epsilon, eta: rotated(epsilon),
        "nowhere": Channel(rotated(3.0)),
        "of four": lambda epsilon: rotated(epsilon, 4),
        "nothing": lambda epsilon: None,
        "without arguments": lambda: np.full((3, 2), 0.5),
        "of three": lambda epsilon, eta, delta: np.full((3, 2), 0.5),
        "of a keyword": lambda *, epsilon: np.full((3, 2), 0.5),
    }
    for name, mechanism in leaky.items():
        with pytest.raises(InvalidInput, match=f"baseline '{name}'"):
            frontier(THREE, [1.0], [0.3], baselines={name: mechanism}, on_row=designed.append, resume=tmp_path / name)
    for name in ("optimum", "gap_mine", "", "a\nb", 3):
        with pytest.raises(InvalidInput, match="baselines"):
            frontier(THREE, [1.0], [0.3], baselines={name: rotated})
    for others in ([rotated], rotated, None, {"x": 3}):
        with pytest.raises(InvalidInput, match="baseline"):
            frontier(THREE, [1.0], [0.3], baselines=others)
    assert not designed


def test_a_resumed_frontier_takes_other_mechanisms(tmp_path):
    """They are measured again, not read: one folder serves any, with the same rows as without it."""
    grid = ([1.0], [0.1, 0.3])
    frontier(THREE, *grid, resume=tmp_path / "kept")
    again = frontier(THREE, *grid, resume=tmp_path / "kept", baselines={"mine": rotated}, jobs=2)
    assert again == frontier(THREE, *grid, baselines={"mine": rotated})


def test_a_sweep_takes_own_mechanisms():
    """Under the constraints of each parameter, whatever they are."""
    own = {"by hand": rotated, "fixed": Channel(rotated(0.5))}
    table = sweep(THREE, LocalDP, [0.4, 1.0], baselines=own)
    assert list(table.to_pandas()["by hand"]) == list(table.baseline("by hand"))
    assert np.isnan(table.baseline("fixed")).tolist() == [True, False]
    assert (table.baseline("by hand") <= table.value).all()
    assert "by hand" in repr(table)
    assert {"by hand", "fixed"} <= {text.get_text() for text in table.plot().get_legend().get_texts()}
    renyi = sweep(THREE, lambda epsilon: RenyiLDP(2.0, epsilon), [0.4], baselines={"erased": lambda e: np.ones((3, 1))})
    assert renyi.baseline("erased")[0] == 0
    with pytest.raises(InvalidInput, match="baseline 'x': expected a channel that meets RenyiLDP"):
        sweep(THREE, lambda epsilon: RenyiLDP(2.0, epsilon), [0.4], baselines={"x": lambda e: rotated(3 * e)})
    with pytest.raises(InvalidInput, match="no columns"):
        sweep(THREE, LocalDP, [1.0], baselines={"local_dp": rotated})


def test_the_gap_of_an_error_is_a_positive_share():
    """Of an error less is better: the gap of a worse mechanism is positive as well."""
    table = frontier(FisherInformation([0.5, 0.3, 0.2]), [1.0], [0.3, 1.0], baselines={"by hand": rotated})
    assert (table.gap("by hand") >= -1e-8).all()  # the accuracy of its search
    assert (table.gap("lower_bound") <= 1e-8).all()
