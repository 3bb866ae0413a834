""""""

import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp
from ldpopt_survey import multi_select, numeric_question


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_mean_is_unbiased_and_as_precise_as_planned(epsilon):
    """Numbers moved to the grid, through the channel, and back: error and standard error are those of the plan."""
    rng = np.random.default_rng(371)
    made = numeric_question(0, 100, epsilon, 2.0)
    assert float(local_dp(made.channel)) <= epsilon
    x = rng.uniform(0, 100, 30_000)
    at = np.searchsorted(made.grid, made.on_grid(x, rng))
    reports = np.bincount(made.channel.sample_indices(at, rng), minlength=made.channel.shape[1])
    found = made.mean(dict(zip(made.channel.outputs, reports.tolist(), strict=True)))
    planned = np.sqrt(made.rows[0].variance / 30_000)
    assert abs(found.values[0] - 50) < 5 * planned
    assert found.standard_errors[0] == pytest.approx(planned, rel=0.05)


def test_it_needs_no_more_than_the_literature():
    """At every epsilon fewer respondents than Laplace noise, and at most those of the piecewise mechanism."""
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        made = numeric_question(0, 1, epsilon, 0.02)
        needed = {row.name: row.respondents for row in made.rows}
        assert made.rows[0].respondents <= needed["piecewise mechanism"] * 1.0001
        assert made.rows[0].respondents < needed["Laplace noise"]
        assert made.rows[-1].name == "without privacy"


def test_moving_to_the_grid_keeps_the_mean():
    """Numbers outside go to the ends, those inside to a neighbour, on average where they were."""
    made = numeric_question(-1, 1, 2.0, 0.05)
    rng = np.random.default_rng(372)
    moved = made.on_grid(np.full(100_000, 0.3), rng)
    assert abs(moved.mean() - 0.3) < 0.02
    assert set(made.on_grid([-9.0, 9.0], rng)) == {-1.0, 1.0}


def test_invalid_ranges_widths_and_pilots_are_refused():
    """Empty ranges, widths beyond them, pilots and numbers that are none."""
    for arguments in ((1, 1, 1.0, 0.1), (0, 1, 1.0, 2.0), (0, 1, 0.0, 0.1), (0, 1, 1.0, 0.0)):
        with pytest.raises(InvalidInput):
            numeric_question(*arguments)
    with pytest.raises(InvalidInput):
        numeric_question(0, 1, 1.0, 0.1, pilot=[np.nan, 1.0])
    with pytest.raises(InvalidInput):
        numeric_question(0, 1, 1.0, 0.1).on_grid([np.nan], np.random.default_rng(0))


OPTIONS = ["cash", "card", "phone", "cheque", "other"]


@pytest.mark.parametrize("j", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_every_way_keeps_epsilon_for_the_whole_answer(j, epsilon):
    """No report tells two sets apart by more than epsilon, in any of the designs."""
    for design in multi_select(OPTIONS[:j], epsilon).designs:
        assert float(local_dp(design.channel)) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_variances_are_those_of_simulated_reports(epsilon):
    """The variance of the option shares from many reports, each design decoded without bias, at equally likely sets."""
    rng = np.random.default_rng(361)
    made = multi_select(OPTIONS[:3], epsilon)
    answers = rng.integers(0, 8, 40_000)
    truth = np.array([((answers >> at) & 1).mean() for at in range(3)])
    for design in made.designs:
        reports = np.bincount(design.channel.sample_indices(answers, rng), minlength=design.channel.shape[1])
        found = made.estimate(dict(zip(design.channel.outputs, reports.tolist(), strict=True)), design)
        error = math.sqrt(design.variance / 40_000)
        assert np.abs(found.values - truth).max() < 5 * error
        assert np.sqrt((found.standard_errors**2).mean()) == pytest.approx(error, rel=0.05)


def test_the_best_way_depends_on_epsilon():
    """Of three options: one at random is proved best where privacy is strong; where it is weak, sets are reported."""
    strong, weak = multi_select(OPTIONS[:3], 1.0), multi_select(OPTIONS[:3], 3.0)
    assert strong.best.name.startswith("one option")
    assert weak.best.name == "a whole set"
    for made in (strong, weak):
        proved = next(design for design in made.designs if design.name == "best channel over the sets")
        assert "no channel" in proved.why
        assert made.best.variance == pytest.approx(proved.variance, rel=1e-6)
    assert strong.designs[-1].name == "the budget split"


def test_sets_are_named():
    """The empty set is an answer, too."""
    assert multi_select(["a", "b"], 1.0).sets == ("none", "a", "b", "a + b")


def test_sets_that_do_not_fit_are_refused():
    """One option, too many, the same twice, no width."""
    for options in (["a"], [str(i) for i in range(11)], ["a", "a"]):
        with pytest.raises(InvalidInput):
            multi_select(options, 1.0)
    with pytest.raises(InvalidInput):
        multi_select(["a", "b"], 1.0, half_width=0.0)
