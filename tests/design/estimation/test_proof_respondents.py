"""Tests of `ldpopt.design.estimation.proof`: what a report tells at most, and how many must be asked."""

import itertools
import math
from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    COptimal,
    DOptimal,
    FisherInformation,
    Marginals,
    RespondentsBound,
    SharedInformation,
    load_respondents,
)
from ldpopt.design.estimation.proof import information_limit, root_trace
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import EXACT, FLOAT

ARITHMETICS = pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])


def scores(p, factor, epsilon):
    """The squares |a(q)|^2 of all columns with entries 1 and e^epsilon, for functions that are made orthonormal."""
    centred = factor - p @ factor
    values, vectors = np.linalg.eigh((centred * p[:, None]).T @ centred)
    used = values > 1e-12 * values.max()
    phi = centred @ (vectors[:, used] / np.sqrt(values[used]))
    sets = np.array(list(itertools.product([0, 1], repeat=len(p))))
    columns = 1 + math.expm1(epsilon) * sets
    return ((((columns * p) @ phi) / (columns @ p)[:, None]) ** 2).sum(axis=1)


def marginals_of(shape):
    """(K, answers) the indicators of all answers of all questions."""
    cells = np.array(list(itertools.product(*map(range, shape))))
    return np.hstack([np.equal.outer(cells[:, j], np.arange(k)) for j, k in enumerate(shape)]).astype(float)


@ARITHMETICS
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 2.0, 5.0])
def test_no_column_exceeds_the_bound_of_scarf(arithmetic, epsilon):
    """rho^2 <= sinh^2(epsilon/2) holds for any distribution and any functions [Scarf]."""
    rng = np.random.default_rng(3)
    limit = information_limit(arithmetic.of(epsilon), 0)
    with mpmath.workdps(50):
        assert limit.lower <= mpmath.sinh(mpmath.mpf(epsilon) / 2) ** 2 <= limit.upper
    for _ in range(30):
        k = int(rng.integers(2, 9))
        p = rng.dirichlet(np.full(k, rng.choice([0.1, 1.0, 10.0])))
        assert scores(p, rng.normal(size=(k, int(rng.integers(1, k)))), epsilon).max() <= limit.upper * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, math.log(3), 1.2, 2.0, 3.5])
def test_even_questions_tell_less(epsilon):
    """For up to three yes/no questions the limit is the best column's score; for more it is at least the rule."""
    for m in (1, 2, 3):
        found = scores(np.full(2**m, 2.0**-m), marginals_of((2,) * m), epsilon).max()
        assert float(information_limit(FLOAT.of(epsilon), m).upper) == pytest.approx(found, rel=1e-9)
    gain = math.expm1(epsilon)
    for m in (8, 20, 1000):
        rule = max(c * (gain / (2.0**c + gain)) ** 2 for c in range(1, min(m, 60)))
        least, most = (float(information_limit(FLOAT.of(epsilon), count).upper) for count in (m, 0))
        assert rule * (1 - 1e-12) <= least <= most
    if epsilon < math.log(3):
        assert least == pytest.approx(math.tanh(epsilon / 2) ** 2, rel=1e-12)


@ARITHMETICS
def test_the_trace_of_the_root_is_not_overstated(arithmetic):
    """tr S^(1/2) by mpmath is at least what is proved, and nearly that; wide, narrow and singular functions."""
    rng = np.random.default_rng(4)
    for k, r in ((2, 1), (5, 3), (3, 7), (6, 6)):
        p, factor = rng.dirichlet(np.ones(k)), rng.normal(size=(k, r)) * 10.0 ** rng.integers(-9, 9)
        if k == r:
            factor[:, -1] = factor[:, 0]
        proved = root_trace(p, arithmetic.of(factor))
        with mpmath.workdps(60):
            law = mpmath.matrix(p.tolist()) / mpmath.fsum(p.tolist())
            rows = mpmath.matrix(factor.tolist())
            a = mpmath.matrix(k, r)
            for x, j in itertools.product(range(k), range(r)):
                mean = mpmath.fsum(law[z] * rows[z, j] for z in range(k))
                a[x, j] = mpmath.sqrt(law[x]) * (rows[x, j] - mean)
            trace = mpmath.fsum(mpmath.svd_r(a, compute_uv=False))
            assert proved.lower <= trace
            assert proved.lower >= trace * (1 - mpmath.mpf(10) ** -12)


def one_at_random(m, epsilon):
    """One of m yes/no questions at random, by randomized response."""
    truth = 1 / (1 + math.exp(-epsilon))
    cells = np.array(list(itertools.product([0, 1], repeat=m)))
    blocks = [np.where(np.equal.outer(cells[:, j], [0, 1]), truth, 1 - truth) / m for j in range(m)]
    return Channel(np.hstack(blocks))


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 1.09])
def test_one_question_at_random_is_optimal(epsilon):
    """At even pilots and epsilon <= log 3 the bound is what one question at random attains."""
    for m in (1, 2, 4, 6):
        criterion = Marginals((2,) * m)
        utility = FisherInformation(criterion.pilot(), criterion)
        made = SharedInformation(utility, (LocalDP(epsilon * (1 + 1e-12)),), one_at_random(m, epsilon))
        found = made.verify(), made.verify(exact=True)
        assert all(found)
        for one in found:
            assert one.bound == pytest.approx(one.value, rel=1e-9)
            assert one.bound == pytest.approx(m * m / 2 / math.tanh(epsilon / 2) ** 2, rel=1e-9)


@pytest.mark.parametrize("criterion", [AOptimal(), AOptimal([3, 0, 1, 1]), COptimal([1, 0, -1, 0.5])])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_bound_is_above_the_optimum(criterion, epsilon):
    """For any linear criterion and any pilot the bound is below the certified optimum, with TV or without."""
    for pilot in ([0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.97, 0.01, 0.01, 0.01], [0.5, 0.5, 0.0, 0.0]):
        utility = FisherInformation(pilot, criterion)
        if math.isinf(utility.value_without_privacy) or not min(pilot):
            continue
        design = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(0.9)])
        made = SharedInformation(utility, design.constraints, design.channel)
        assert made.verify()
        assert 0 < made.bound <= design.value


def test_unsupported_problems_are_refused_in_words():
    """A criterion that is not a sum of variances, and a missing epsilon between all inputs, are refused in words."""
    channel = one_at_random(2, 1.0)
    for criterion, constraint, words in (
        (DOptimal(), LocalDP(1.0), "no sum of variances"),
        (AOptimal(), TotalVariation(0.5), "LocalDP between all inputs"),
    ):
        made = SharedInformation(FisherInformation([0.25] * 4, criterion), (constraint,), channel)
        assert made.bound == -math.inf
        assert any(words in failure for failure in made.verify().failures)


def bound(epsilon=1.0, m=3, pilot=(0.5, 0.5), width=0.05):
    """Of m yes/no questions with one half-width at 95 %."""
    tau = (width / 1.959963984540054) ** 2
    parts = [np.array(pilot)] * m, [np.eye(2)] * m, [np.full(2, tau)] * m, [np.ones(2)] * m
    return RespondentsBound.from_targets(epsilon, *map(tuple, parts))


@pytest.mark.parametrize(("m", "least"), [(2, 3598), (5, 8995), (10, 17989), (30, 53966)])
def test_the_least_respondents_of_even_questions_agree_with_the_formula(m, least):
    """m coth^2(1/2)/(4 tau), computed by hand."""
    made = bound(m=m)
    assert made.least == least
    for exact in (False, True):
        assert made.verify(exact)
        assert not replace(made, least=least + 1).verify(exact)
        assert replace(made, least=least - 1).verify(exact)


def test_uneven_questions_agree_with_the_formula():
    """The sum of (tr C^(1/2))^2/sum tau over sinh^2(epsilon/2), in mpmath."""
    epsilon, pilots, taus = 1.7, ([0.3, 0.7], [0.5, 0.3, 0.2]), ([1e-4, 2e-4], [1e-4] * 3)
    with mpmath.workdps(40):
        need, weights = mpmath.mpf(0), []
        for p, tau in zip(pilots, taus, strict=True):
            law = [mpmath.mpf(x) / mpmath.fsum(p) for x in p]
            c = mpmath.matrix([[law[i] * ((i == j) - law[j]) for j in range(len(p))] for i in range(len(p))])
            root = mpmath.fsum(mpmath.sqrt(abs(x)) for x in mpmath.eigsy(c, eigvals_only=True))
            need += root**2 / mpmath.fsum(tau)
            weights.append(np.full(len(p), float((root / mpmath.fsum(tau)) ** 2)))
        true = need / mpmath.sinh(mpmath.mpf(epsilon) / 2) ** 2
    parts = [tuple(map(np.array, each)) for each in (pilots, [np.eye(2), np.eye(3)], taus)]
    made = RespondentsBound.from_targets(epsilon, *parts, tuple(weights))
    for arithmetic in (FLOAT, EXACT):
        assert made.proved(arithmetic) <= true
        assert made.proved(arithmetic) >= true * (1 - mpmath.mpf(10) ** -9)


def test_any_weights_prove_a_bound():
    """Of even questions the even weights are best, so that no others prove more."""
    rng, made = np.random.default_rng(2), bound(2.0)
    for _ in range(50):
        other = replace(made, weights=tuple(np.exp(rng.normal(scale=2.0, size=2)) for _ in range(3)))
        assert 0 < other.proved(FLOAT) <= made.proved(FLOAT) * (1 + 1e-12)


def test_without_a_promise_the_sample_alone_counts():
    """p (1 - p)/tau of the widest question; and never less with an epsilon, however large."""
    tau = (0.05 / 1.959963984540054) ** 2
    assert bound(math.inf).proved(FLOAT) == pytest.approx(0.25 / tau, rel=1e-12)
    assert bound(700.0).proved(FLOAT) == bound(math.inf).proved(FLOAT)
    assert RespondentsBound.from_targets(1.0, (), (), (), ()).least == 0


def test_pilots_that_are_nearly_even_are_not_even():
    """The smaller limit of even questions is for exactly even laws alone, and for all of them."""
    near = bound(pilot=(0.5, math.nextafter(0.5, 0)))
    assert near.least < bound().least
    mixed = bound()
    mixed = replace(mixed, pilots=(*mixed.pilots[:2], near.pilots[2]))
    assert not mixed.verify()


FORGED = {
    "negative": ("weights", lambda x: (-x[0], *x[1:])),
    "no weight": ("weights", lambda x: (0 * x[0], *x[1:])),
    "NaN": ("weights", lambda x: (x[0] * math.nan, *x[1:])),
    "fewer": ("weights", lambda x: x[1:]),
    "words": ("weights", lambda x: ("much", *x[1:])),
    "list": ("weights", list),
    "free": ("variances", lambda x: (0 * x[0], *x[1:])),
    "below 0": ("variances", lambda x: (-x[0], *x[1:])),
    "wide": ("targets", lambda x: (np.eye(3), *x[1:])),
    "none": ("targets", lambda x: (np.zeros((0, 2)), *x[1:])),
    "infinite": ("targets", lambda x: (np.full((2, 2), math.inf), *x[1:])),
    "no law": ("pilots", lambda x: (-x[0], *x[1:])),
    "larger": ("variances", lambda x: tuple(2 * one for one in x)),
    "epsilon": ("epsilon", lambda x: 2 * x),
    "no epsilon": ("epsilon", lambda _: math.nan),
    "word": ("epsilon", lambda _: "1"),
    "many": ("least", lambda x: x * 2),
    "no number": ("least", lambda _: None),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_parts_are_refused_in_words(name):
    """Nothing that is malformed, or for other targets, proves the number; each failure says why."""
    field, forge = FORGED[name]
    made = bound()
    found = replace(made, **{field: forge(getattr(made, field))}).verify()
    assert not found
    assert found.failures


def test_files_of_bounds_survive_a_round_trip_and_false_ones_fail(tmp_path):
    """A bound that is saved is read back equal; a file that states more does not verify."""
    made = bound(pilot=(0.3, 0.7))
    path = tmp_path / "least.json"
    made.save(path)
    assert load_respondents(path) == made
    assert load_respondents(path).verify(exact=True)
    text = path.read_text("utf-8")
    path.write_text(text.replace(f'"least": {made.least}', f'"least": {made.least + 1}'), "utf-8")
    assert not load_respondents(path).verify()
    path.write_text(text.replace("ldpopt-respondents", "ldpopt-design"), "utf-8")
    with pytest.raises(InvalidInput, match="ldpopt-respondents"):
        load_respondents(path)


def test_a_plan_and_the_command_state_the_proved_number(tmp_path):
    """The planner's number is that of its proof; `survey plan --proof` writes it, and `verify` checks it."""
    from typer.testing import CliRunner

    from ldpopt.cli import app

    runner = CliRunner()
    survey, proof = tmp_path / "survey.toml", tmp_path / "proof.json"
    question = '[[questions]]\nname = "{}"\ncategories = ["no", "yes"]\nhalf_width = 0.05\n'
    head = '[survey]\nname = "s"\n[budget]\nepsilon = 1.0\n'
    survey.write_text(head + question.format("a") + question.format("b"), "utf-8")
    made = runner.invoke(app, ["survey", "plan", str(survey), "-o", str(tmp_path / "p.json"), "--proof", str(proof)])
    assert made.exit_code == 0, made.output
    assert "if the answers are independent, any survey needs 3,598, proved" in " ".join(made.output.split())
    found = runner.invoke(app, ["verify", str(proof)])
    assert found.exit_code == 0
    assert "fewer than 3,598" in found.output
    proof.write_text(proof.read_text("utf-8").replace('"least": 3598', '"least": 3600'), "utf-8")
    found = runner.invoke(app, ["verify", str(proof)])
    assert found.exit_code == 1
    assert "not 3,600" in found.output


@cache
def uneven_plan():
    """Three questions of 12 cells together, with different half-widths, at epsilon 2."""
    from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey

    pilots = {"a": (0.3, 0.7), "b": (0.6, 0.4), "c": (0.5, 0.2, 0.3)}
    asked = [
        QuestionSpec(name, tuple("xyz"[: len(pilot)]), pilot=pilot, half_width=width)
        for (name, pilot), width in zip(pilots.items(), (0.03, 0.05, 0.07), strict=True)
    ]
    return plan_survey(SurveySpec("uneven", tuple(asked), epsilon=2.0, design="joint"), prove=True)


@pytest.mark.full
def test_uneven_questions_together_need_as_many_as_their_plan(tmp_path):
    """The best channel is its own bound; the plan, without its rare reports, is within a fifth of it. The
    weights alone miss by a third; files keep the kernel, and the checker agrees. The value is checked by cvxpy over all
    patterns of the 12 cells."""
    import json

    import cvxpy as cp

    import ldpopt_check

    planned = uneven_plan()
    proof = planned.proof
    assert proof.kernel is not None
    assert replace(proof, kernel=None, rows=None).proved(FLOAT) < 0.7 * proof.least
    assert proof.least <= planned.respondents <= 1.2 * proof.least
    for exact in (False, True):
        assert proof.verify(exact)
        assert not replace(proof, least=proof.least + 1).verify(exact)
    path = tmp_path / "least.json"
    proof.save(path)
    assert load_respondents(path) == proof
    document = json.loads(path.read_text("utf-8"))
    assert not ldpopt_check.check(document).failures
    assert ldpopt_check.check({**document, "least": proof.least + 1}).failures

    pilot, rows = np.ones(1), []
    for own in proof.pilots:
        pilot = np.outer(pilot, own).ravel()
    cells = np.stack(np.unravel_index(np.arange(12), (2, 2, 3)), axis=1)
    for at, (targets, taus) in enumerate(zip(proof.targets, proof.variances, strict=True)):
        rows += [
            (target[cells[:, at]] - target[cells[:, at]] @ pilot) / math.sqrt(t)
            for target, t in zip(targets, taus, strict=True)
        ]
    columns = np.where((np.arange(2**12 - 1)[:, None] >> np.arange(12)) & 1, math.exp(2.0), 1.0)
    earned = (columns @ proof.kernel.T - np.outer(columns @ pilot, proof.kernel.sum(axis=1))) ** 2
    mass = columns @ pilot
    most = ((earned.sum(axis=1) / mass - columns @ proof.rows) / mass).max() + proof.rows.sum()
    told = sum((own @ row) ** 2 for own, row in zip(proof.kernel, rows, strict=True))
    assert math.ceil(told / most - 1e-6) >= proof.least - 1
    # The same number from the other side: the weights of all patterns that need the fewest respondents.
    used = columns[np.argsort((earned.sum(axis=1) / mass - columns @ proof.rows) / mass)[-300:]]
    theta, inverse = cp.Variable(len(used), nonneg=True), cp.Variable((len(rows), len(rows)), symmetric=True)
    information = used.T @ cp.diag(theta / (used @ pilot)) @ used
    f = np.array(rows).T
    program = cp.Problem(
        cp.Minimize(cp.max(cp.diag(inverse))),
        [cp.bmat([[inverse, f.T], [f, information]]) >> 0, used.T @ theta == 1],
    )
    program.solve(solver=cp.CLARABEL)
    assert program.value == pytest.approx(proof.least, rel=2e-3)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("field", ["kernel", "rows", "relaxed", "variances", "pilots"])
def test_forged_kernels_prove_no_bound(field):
    """Another kernel, other prices or a kernel for other targets do not prove the number."""
    proof = uneven_plan().proof
    forged = {
        "kernel": -2 * proof.kernel[::-1],
        "rows": 0.9 * proof.rows,
        "relaxed": object(),
        "variances": tuple(2 * one for one in proof.variances),
        "pilots": tuple(np.full(len(one), 1 / len(one)) for one in proof.pilots),
    }
    found = replace(proof, **{field: forged[field]}).verify()
    assert bool(found) == (field == "relaxed")  # 12 cells need no search
    for wrong in (proof.kernel[:-1], proof.kernel * math.nan, "much", proof.kernel * 1e300):
        assert not replace(proof, kernel=wrong).verify()
    for wrong in (None, proof.rows[:-1], proof.rows * math.inf):
        assert not replace(proof, rows=wrong).verify()
