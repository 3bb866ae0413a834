import numpy as np
import pandas as pd
import polars as pl
import pytest

from ldpopt.channel import Channel
from ldpopt.composition import compose
from ldpopt.datasets import load_anes96
from ldpopt.errors import InvalidInput
from ldpopt.values.deadline import UNLIMITED
from ldpopt_survey import Counts, Simulated, Survey, plan_survey
from ldpopt_survey.plan.booklets import BookletPlanner
from ldpopt_survey.plan.plan import Plan, composed_epsilon, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.plan.units import units_of


def anes(half):
    """The questions of the 1996 election study with pilots from one half of its respondents."""
    data = load_anes96()
    questions = []
    for name, epsilon in (("party", 1.5), ("education", 1.5), ("vote", 1.0)):
        column = data[name]
        pilot = np.bincount(column.codes[half], minlength=len(column.labels)) + 0.5
        questions.append(QuestionSpec(name, column.labels, pilot=pilot / pilot.sum(), epsilon=epsilon))
    return data, SurveySpec("ANES 1996", tuple(questions), epsilon=4.0)


def test_real_survey_from_plan_to_estimate():
    """Planned from half the sample, privatized (50 times over) and estimated, the other half's shares come back.

    5 standard errors for 16 shares (seeds 1 and 2).
    """
    rng = np.random.default_rng(1)
    half = rng.permutation(944) < 472
    data, spec = anes(half)
    planned = plan_survey(spec, n=472 * 50)
    assert all(design.certified for design in planned.designs.values())
    assert planned.plan.epsilon <= 4.0
    assert Plan.from_json(planned.plan.to_json()).checksum == planned.plan.checksum
    rest = np.tile(np.flatnonzero(~half), 50)
    frame = pd.DataFrame({q.name: np.array(data.labels(q.name))[data[q.name].codes[rest]] for q in spec.questions})
    survey = Survey(planned.plan)
    reports = survey.privatize(frame, Simulated(np.random.default_rng(2)))
    for question in planned.plan.questions:
        truth = np.bincount(data[question.name].codes[rest], minlength=len(question.categories)) / len(rest)
        found = survey.estimate(question.name, reports)
        assert np.abs(found.values - truth).max() < 5 * found.standard_errors.max()
        width = (found.intervals().width / 2).max()
        assert width == pytest.approx(question.expected["half_width_at_hand"], rel=0.15)


def test_a_budget_is_split_and_not_exceeded():
    """Questions without an epsilon share what the fixed ones leave; the proved claims stay within the budget."""
    questions = (
        QuestionSpec("a", ("no", "yes"), epsilon=0.5),
        QuestionSpec("b", ("no", "yes"), half_width=0.03),
        QuestionSpec("c", ("no", "yes"), half_width=0.1),
    )
    plan = plan_survey(SurveySpec("demo", questions, epsilon=2.0, design="split")).plan
    assert plan.epsilon <= 2.0
    assert plan.epsilon == pytest.approx(2.0, rel=1e-6)
    assert plan.question("b").epsilon > plan.question("c").epsilon
    assert plan.question("b").expected["respondents"] > 0


def test_a_question_without_epsilon_or_budget_is_refused():
    """Someone must say how private the answers are to be."""
    with pytest.raises(InvalidInput, match="expected an epsilon, or a budget"):
        plan_survey(SurveySpec("demo", (QuestionSpec("a", ("no", "yes")),)))
    fixed = (QuestionSpec("a", ("no", "yes"), epsilon=2.0), QuestionSpec("b", ("no", "yes")))
    with pytest.raises(InvalidInput, match="more than the fixed"):
        plan_survey(SurveySpec("demo", fixed, epsilon=1.0))


def test_a_plan_file_makes_a_survey(tmp_path):
    """`Survey.from_file` reads what the plan wrote, and frames of any library give the same counts."""
    survey = Survey(plan_survey(SurveySpec("demo", (QuestionSpec("a", ("no", "yes"), epsilon=1.0),))).plan)
    path = tmp_path / "plan.json"
    path.write_text(survey.plan.to_json())
    again = Survey.from_file(path)
    frame = pd.DataFrame({"a": ["no", "yes"] * 50})
    reports = again.privatize(frame, Simulated(np.random.default_rng(0)))
    from_arrow = survey.estimate("a", reports)
    from_pandas = survey.estimate("a", reports.to_pandas())
    from_polars = survey.estimate("a", pl.from_arrow(reports))
    np.testing.assert_array_equal(from_arrow.values, from_pandas.values)
    np.testing.assert_array_equal(from_arrow.values, from_polars.values)
    same = again.privatize(pl.from_pandas(frame), Simulated(np.random.default_rng(0)))
    assert same.equals(reports)


def test_a_delta_in_the_budget_is_composed_and_kept():
    """With [budget] delta the questions share (epsilon, delta): each gets more than without, and no more composed."""
    text = """
    [survey]
    name = "demo"
    [budget]
    epsilon = 1.0
    design = "split"
    {delta}
    """ + "".join(f'[[questions]]\nname = "q{i}"\ncategories = ["no", "yes"]\nhalf_width = 0.05\n' for i in range(4))
    plain = plan_survey(SurveySpec.from_toml(text.format(delta="")))
    loose = plan_survey(SurveySpec.from_toml(text.format(delta="delta = 1e-2")))
    assert loose.plan.epsilon > plain.plan.epsilon
    assert composed_epsilon(loose.plan, 1e-2) <= 1.0
    assert "at delta 0.01" in repr(loose)
    # The k-fold composition of Theorem 2, from the plan's own claims, says the same.
    claims = [(q.epsilon, 0.0, q.eta) for q in loose.plan.questions]
    assert float(compose(claims).delta_at(1.0)) <= 1e-2
    with pytest.raises(InvalidInput, match="delta"):
        SurveySpec.from_toml(
            '[survey]\nname = "d"\n[budget]\ndelta = 0.1\n[[questions]]\nname = "a"\ncategories = [1, 2]'
        )


def test_fixed_questions_count_in_a_composed_budget():
    """A question of fixed epsilon is composed with those that share the rest."""
    questions = (
        QuestionSpec("a", ("no", "yes"), epsilon=0.4),
        QuestionSpec("b", ("no", "yes")),
        QuestionSpec("c", (1, 2)),
    )
    planned = plan_survey(SurveySpec("demo", questions, epsilon=1.0, delta=1e-2))
    assert composed_epsilon(planned.plan, 1e-2) <= 1.0 < planned.plan.epsilon
    with pytest.raises(InvalidInput, match="more than the fixed"):
        plan_survey(SurveySpec("demo", questions, epsilon=0.3, delta=1e-9))


def test_estimates_of_every_question_come_from_counts_of_the_plan():
    """All questions at once, each as by itself; counts of another plan are refused."""
    spec = SurveySpec("demo", (QuestionSpec("a", ("no", "yes"), epsilon=1.0), QuestionSpec("b", (0, 1), epsilon=1.0)))
    survey = Survey(plan_survey(spec).plan)
    counts = Counts(survey.plan.checksum, 100, {("a",): np.array([60, 40]), ("b",): np.array([30, 70])})
    made = survey.estimates(counts)
    assert list(made) == ["a", "b"]
    assert made["b"].values.tolist() == survey.estimate("b", np.array([30, 70])).values.tolist()
    with pytest.raises(InvalidInput, match="another plan"):
        survey.estimates(Counts("0" * 64, 100, counts.tables))


def test_few_counts_are_not_taken_for_reports():
    """Counts that look like the labels of reports, as those of few respondents over many reports do, are counts."""
    channel = Channel(np.full((3, 6), 1 / 6) + np.kron(np.eye(3), [0.1, 0.1]) - 1 / 30, ("a", "b", "c"))
    spec = SurveySpec("few", (QuestionSpec("q", ("a", "b", "c")),))
    plan = make_plan(spec, {"q": channel})
    counts = Counts(plan.checksum, 12, {("q",): np.array([4, 3, 2, 1, 0, 2])})
    assert Survey(plan).estimates(counts)["q"].n == 12


def test_pilots_of_which_nothing_can_be_planned_are_refused() -> None:
    """One answer alone has no error to plan for; a test needs shares that differ from the pilot."""
    with pytest.raises(InvalidInput, match="question 'a': pilot: expected shares of at least two answers"):
        QuestionSpec("a", ("no", "yes"), pilot=[0.0, 1.0])
    with pytest.raises(InvalidInput, match="alternative: expected shares that differ from the pilot"):
        QuestionSpec("a", ("no", "yes"), pilot=[0.5, 0.5], alternative=[0.5, 0.5])


def test_a_cap_that_puts_longer_booklets_out_of_reach_leaves_shorter_ones() -> None:
    """Under eta the search takes at most 40 cells; a wanted table beyond says which questions, and what to do."""
    sizes = {"a": 2, "b": 3, "c": 3, "d": 5}
    asked = tuple(QuestionSpec(name, tuple(range(size))) for name, size in sizes.items())
    planner = BookletPlanner(units_of(asked), 2.0, 0.5, search_joint=True)
    assert planner._booklet(tuple(planner.units[1:]), UNLIMITED) is None  # 45 cells
    wide = tuple(QuestionSpec(name, tuple(range(20))) for name in ("x", "y"))
    with pytest.raises(InvalidInput, match=r"together: x and y: .*join answers, or name both in `everyone`"):
        plan_survey(SurveySpec("s", (*wide, asked[0]), epsilon=1.0, together=(("x", "y"),)))
