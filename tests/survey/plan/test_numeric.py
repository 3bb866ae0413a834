import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp
from ldpopt.survey import numeric_question


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


def test_what_does_not_fit_is_refused():
    """Empty ranges, widths beyond them, pilots and numbers that are none."""
    for arguments in ((1, 1, 1.0, 0.1), (0, 1, 1.0, 2.0), (0, 1, 0.0, 0.1), (0, 1, 1.0, 0.0)):
        with pytest.raises(InvalidInput):
            numeric_question(*arguments)
    with pytest.raises(InvalidInput):
        numeric_question(0, 1, 1.0, 0.1, pilot=[np.nan, 1.0])
    with pytest.raises(InvalidInput):
        numeric_question(0, 1, 1.0, 0.1).on_grid([np.nan], np.random.default_rng(0))
