"""Every verdict, from the quick form of its experiment, with the numbers that the papers print."""

import math

import numpy as np
import pytest

from ldpopt.reproduce import EXPERIMENTS, Outcome, compute, recorded

EXPECTED = {
    "az-theorem-1": Outcome.LOOSELY,
    "bs-lemma-5-2": Outcome.HOLDS,
    "bs-lemmas-3-5-to-3-7": Outcome.LOOSELY,
    "bs-mcdp": Outcome.HOLDS,
    "bs-proposition-1-4": Outcome.LOOSELY,
    "bs-proposition-5-3": Outcome.LOOSELY,
    "bs-section-6": Outcome.LOOSELY,
    "bs-section-8": Outcome.LOOSELY,
    "cim-figures-1-2": Outcome.HOLDS,
    "cim-lemma-3": Outcome.FAILS,
    "cim-table-1": Outcome.FAILS,
    "cim-theorem-5": Outcome.FAILS,
    "cim-theorem-7": Outcome.LOOSELY,
    "cim-theorems-1-4": Outcome.LOOSELY,
    "dr-corollary-3-3": Outcome.FAILS,
    "dr-lemma-3-9": Outcome.LOOSELY,
    "dr-theorem-1-1": Outcome.LOOSELY,
    "dr-theorem-3-4": Outcome.LOOSELY,
    "dr-theorem-3-5": Outcome.LOOSELY,
    "gi-figure-3": Outcome.LOOSELY,
    "gi-figure-5": Outcome.LOOSELY,
    "gi-figures-1-2": Outcome.HOLDS,
    "gi-proposition-1": Outcome.HOLDS,
    "gi-proposition-2": Outcome.HOLDS,
    "gi-section-6": Outcome.HOLDS,
    "gi-theorem-2": Outcome.HOLDS,
    "gi-theorem-3": Outcome.HOLDS,
    "gi-theorem-5": Outcome.HOLDS,
    "gi-theorem-6": Outcome.LOOSELY,
    "gi-theorem-7": Outcome.LOOSELY,
    "gi-theorem-8": Outcome.LOOSELY,
    "kov-information": Outcome.HOLDS,
    "m-budget-curves": Outcome.LOOSELY,
    "m-corollary-1": Outcome.LOOSELY,
    "m-lemma-1-step": Outcome.FAILS,
    "m-proposition-1": Outcome.HOLDS,
    "m-proposition-2": Outcome.LOOSELY,
    "m-proposition-4": Outcome.LOOSELY,
    "m-table-1": Outcome.LOOSELY,
    "survey-savings": Outcome.HOLDS,
    "spr-envelope": Outcome.HOLDS,
}

_DONE = {}


def verdict_of(name):
    """The verdict of the quick form, computed once."""
    if name not in _DONE:
        experiment = EXPERIMENTS[name]
        _DONE[name] = experiment.judge(compute(experiment, experiment.quick))
    return _DONE[name]


def test_every_experiment_has_an_expected_verdict():
    """No experiment goes without a verdict that is asserted."""
    assert set(EXPERIMENTS) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_verdict(name):
    """The quick form reaches the verdict asserted here, the one recorded from the full form."""
    verdict = verdict_of(name)
    assert verdict.outcome is EXPECTED[name], verdict.detail
    assert recorded()[name]["outcome"] == verdict.outcome.value


def test_figure_4b():
    """[GI, Fig 4b] The deltas at epsilon = 1, alpha = 0.3, k = 5, from independent enumeration."""
    printed = [0.631089674853, 0.432692978469, 0.23934494912, 0.095372565921, 0.022184569426, 0.0]
    figures = verdict_of("gi-theorem-2").figures
    assert [figures[f"Figure 4b, δ_{j}"] for j in range(6)] == pytest.approx(printed, abs=1e-12)


def test_figure_5():
    """[GI, Fig 5] The two curves are 1/(2 (e^eps+1)^2) and 1/(min(2, e^eps) (e^eps+1)), both below what is kept."""
    experiment = EXPERIMENTS["gi-figure-5"]
    figures = verdict_of("gi-figure-5").figures
    assert figures["older share at ε = 1"] == pytest.approx(1 / (2 * (math.e + 1) ** 2), rel=1e-12)
    assert figures["newer share at ε = 1"] == pytest.approx(1 / (2 * (math.e + 1)), rel=1e-12)
    row = experiment.measure(epsilon=0.5, k=2, starts=1, steps=5)
    assert row["kairouz"] == pytest.approx(1 / (2 * (math.exp(0.5) + 1) ** 2), rel=1e-12)
    assert row["ghazi_issa"] == pytest.approx(1 / (math.exp(0.5) * (math.exp(0.5) + 1)), rel=1e-12)


def test_crossings_of_the_capacity_bounds():
    """[CIM, Fig 1a, 2a] The bounds cross the Rényi divergence at 3.3 and 2.3, to the digits printed."""
    figures = verdict_of("cim-figures-1-2").figures
    assert round(figures["crossing in Figure 1a"], 1) == 3.3
    assert round(figures["crossing in Figure 2a"], 1) == 2.3


def test_the_false_rows_of_table_1():
    """[CIM, Table 1] At epsilon = 0.1 the exact values for orders 3 and 6 exceed the printed bounds as theory says."""
    measure = EXPERIMENTS["cim-table-1"].measure
    for order, exact, bound in ((3.0, 0.00739299, 0.00199601), (6.0, 0.0127003, 6.3999e-06)):
        row = measure(row="Rényi, Laplace", shift=0.1, order=order)
        assert row["exact"] == pytest.approx(exact, rel=1e-5)
        assert row["printed"] == pytest.approx(bound, rel=1e-4)
        assert row["exact"] == pytest.approx(row["small_shift"], rel=0.2)
    gaussian = measure(row="Rényi, Gaussian", shift=1 / 3, order=6.0)
    assert gaussian["exact"] == pytest.approx(0.15372, rel=1e-4)
    assert gaussian["printed"] == pytest.approx(0.0254577, rel=1e-4)


def test_rho_of_epsilon_and_eta():
    """rho(1, eta) is 0.323482 with 0.3 erased and 0.082192, not epsilon eta, with 0.9 erased."""
    measure = EXPERIMENTS["bs-proposition-1-4"].measure
    assert measure(epsilon=1.0, share=0.7)["exact"] == pytest.approx(0.323482, abs=1e-6)
    assert measure(epsilon=1.0, share=0.1)["exact"] == pytest.approx(0.082192, abs=1e-6)


def test_worst_looseness_of_corollary_2():
    """The largest looseness of Corollary 2 is min(2, e^eps)(e^eps+1)/2, approached by nearly equal populations."""
    figures = verdict_of("gi-theorem-7").figures
    assert figures["loosest"] == pytest.approx(figures["loosest, limit in closed form"], rel=1e-3)
    assert figures["loosest"] <= figures["loosest, limit in closed form"] * (1 + 1e-6)
    assert figures["tightest"] >= 1


def test_erasure_is_not_optimal():
    """[GI, Thm 8] Erasing the optimum loses about a tenth at epsilon = 2, eta = tanh(1)/2 for all four divergences."""
    figures = verdict_of("gi-theorem-8").figures
    losses = [value for name, value in figures.items() if name.startswith("largest loss")]
    assert len(losses) == 4
    assert all(0.08 < loss < 0.15 for loss in losses)


def test_survey_savings():
    """At p = (0.9, 0.025 x 4) and epsilon = 1 the best subset selection, of 2, has 10.8698, the optimum 10.150574."""
    row = EXPERIMENTS["survey-savings"].measure(part="formula", k=5, epsilon=1.0, top=0.9)
    assert row["size"] == 2
    assert row["optimum"] == pytest.approx(10.150574, abs=1e-5)
    assert row["randomized_response"] == pytest.approx(11.617251, abs=1e-6)
    assert verdict_of("survey-savings").figures["saving at p = (0.9, 0.025 x 4), ε = 1"] == pytest.approx(
        1 - row["optimum"] / row["subset_selection"], abs=1e-6
    )


def test_the_staircase_of_figure_4():
    """[GI, VI-C] gamma = 0.0139 at epsilon = 1 corresponds to alpha = 0.3."""
    assert verdict_of("gi-section-6").figures["α at ε = 1, γ = 0.0139"] == pytest.approx(0.3, abs=5e-4)


def test_group_standard_of_gaussian_noise():
    """[DR, Cor 3.3] At sigma = 1/2 the printed tau of a group of s is s, the exact one 2 s."""
    row = EXPERIMENTS["dr-corollary-3-3"].measure(sigma=0.5, size=3)
    assert (row["tau_printed"], row["mu_printed"]) == (3, 18)
    assert (row["tau"], row["mu"]) == (pytest.approx(6), pytest.approx(18))


def test_exact_rho_of_approximate_privacy():
    """[BS, Cor 8.7] Once delta is removed, the pair that dominates (eps, delta) has rho = eps tanh(eps/2)."""
    row = EXPERIMENTS["bs-section-8"].measure(part="Cor 8.7", delta=0.01, epsilon=1.0)
    assert row["exact"] == pytest.approx(math.tanh(0.5), rel=1e-6)
    assert row["claimed"] == pytest.approx(0.5)


def test_verdicts_are_computed():
    """A claim that the numbers contradict is judged false: shrink every claimed value and the verdicts turn."""
    for name, column in (
        ("dr-theorem-3-5", "mu_claimed"),
        ("bs-proposition-1-4", "printed"),
        ("m-proposition-4", "claimed"),
        ("m-proposition-2", "claimed"),
        ("m-corollary-1", "claimed"),
        ("m-table-1", "claimed"),
        ("bs-section-6", "bound"),
        ("bs-section-8", "claimed"),
        ("bs-lemma-5-2", "bound"),
        ("cim-theorem-7", "bound"),
        ("cim-theorems-1-4", "claimed"),
        ("dr-lemma-3-9", "bound"),
        ("gi-proposition-1", "claimed"),
        ("gi-proposition-2", "bound"),
        ("gi-section-6", "printed"),
        ("gi-theorem-6", "ratio"),
    ):
        experiment = EXPERIMENTS[name]
        table = compute(experiment, experiment.quick)
        rows = (row | {column: 0.01 * float(row[column])} if column in row else row for row in table.rows)
        shrunk = type(table)(tuple(rows))
        assert experiment.judge(shrunk).outcome is Outcome.FAILS
        assert np.isfinite(list(experiment.judge(table).figures.values())).all()
