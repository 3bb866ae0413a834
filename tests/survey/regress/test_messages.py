"""A regression that fails names the terms at fault, and --linear where the outcome is a number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import (
    QuestionSpec,
    Respondents,
    SampleDesign,
    Simulated,
    SurveySpec,
    linear_regression,
    logistic_regression,
    logit_by_moments,
    logit_regression,
    make_plan,
    privatize,
)
from ldpopt_survey.regress.result import dependent_terms, weak_terms

N = 600
Q = randomized_response(2, 1.0)
LOGITS = (logit_by_moments, logit_regression)


def data_of(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=N),
        "z": rng.uniform(1, 2, N),
        "g": rng.choice(list("abc"), N, p=[0.45, 0.45, 0.1]),
        "y": rng.integers(0, 2, N),
    }


def message_of(fit: Callable[..., Any], formula: str, data: dict[str, Any], kind: type[Exception], **more: Any) -> str:
    with pytest.raises(kind) as caught:
        fit(formula, data, {"y": Q}, **more)
    return str(caught.value)


@pytest.mark.parametrize("fit", [*LOGITS, linear_regression])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_collinear_columns_are_named_and_no_others(fit: Callable[..., Any], scale: float) -> None:
    data = data_of()
    data |= {"twice": 2 * scale * data["x"], "one": np.full(N, scale), "sum": data["x"] + data["z"]}
    for formula, terms in (
        ("y ~ z + x + g + twice", "x, twice"),
        ("y ~ x + one", "Intercept, one"),
        ("y ~ x + z + g + sum", "x, z, sum"),
        ("y ~ x + twice + z + one", "Intercept, x, twice, one"),
        ("y ~ g + I(0 * x)", "I(0 * x)"),
    ):
        assert message_of(fit, formula, data, InvalidInput).endswith(f"got collinear ones: {terms}"), formula


def test_at_most_six_terms_are_named() -> None:
    data = data_of() | {"f": np.arange(N) % 12, "h": np.arange(N) % 12 + 100}
    said = message_of(logit_by_moments, "y ~ C(f) + C(h)", data, InvalidInput)
    assert said.endswith("got collinear ones: f[1], f[2], f[3], f[4], f[5], f[6] and 16 more")


def test_collinear_columns_of_a_matrix_are_named() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(100, 2))
    with pytest.raises(InvalidInput, match="collinear ones: a, c"):
        logistic_regression(rng.integers(0, 2, 100), np.column_stack([x, 3 * x[:, 0]]), Q, names=("a", "b", "c"))
    # Columns of other units are no linear combinations.
    assert dependent_terms(x * [1e-200, 1e200], ("a", "b")) == ""
    assert dependent_terms(np.zeros((5, 1)), ("a",)) == "a"
    assert dependent_terms(np.ones((1, 2)), ("a", "b")) == "a, b"


@pytest.mark.parametrize("fit", LOGITS)
@pytest.mark.parametrize("sample", [None, SampleDesign(clusters=np.arange(N) // 6)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_separating_terms_are_named_and_no_others(fit: Callable[..., Any], sample: Any, scale: float) -> None:
    data = data_of()
    data["x"] = data["x"] * scale
    for formula, reports, terms in (
        ("y ~ x + g", np.where(data["g"] == "c", 1, data["y"]), "g[c]"),
        ("y ~ g + x", np.where(data["g"] == "c", 0, data["y"]), "g[c]"),
        ("y ~ x + z", (data["x"] > 0).astype(int), "x"),
        ("y ~ x + z + x:g", np.where(data["g"] == "b", data["x"] > 0, data["y"]).astype(int), "x:g[b]"),
        ("y ~ 1", np.ones(N, dtype=int), "Intercept"),
    ):
        said = message_of(fit, formula, data | {"y": reports}, SolverError, sample=sample)
        assert f"no finite coefficients of {terms} were reached" in said, formula


@pytest.mark.parametrize("fit", LOGITS)
def test_a_separating_reference_names_its_factor(fit: Callable[..., Any]) -> None:
    """All coefficients of the factor grow together, against the intercept."""
    data = data_of()
    said = message_of(fit, "y ~ x + g", data | {"y": np.where(data["g"] == "a", 1, data["y"])}, SolverError)
    assert "no finite coefficients of g[b], g[c] were reached" in said


def test_separation_in_several_equations_names_each_term_once() -> None:
    data, channel = data_of(), randomized_response(3, 2.0)
    reports = np.where(data["g"] == "c", 0, np.random.default_rng(3).integers(0, 3, N))
    for fit in LOGITS:
        with pytest.raises(SolverError, match=r"no finite coefficients of g\[c\] were reached"):
            fit("y ~ x + g", data | {"y": reports}, {"y": channel})


def test_the_weakest_direction_is_named_in_any_units() -> None:
    rng = np.random.default_rng(4)
    for scale in (1e-100, 1.0, 1e100):
        units = np.array([1.0, scale, 1.0])
        root = rng.normal(size=(30, 3)) * [1.0, 1e-5, 1.0] * units
        assert weak_terms(root.T @ root, units, ("a", "b", "c")) == "b"
    assert weak_terms(np.full((2, 2), np.nan), np.ones(2), ("a", "b")) == "some terms"


def test_reports_that_do_not_distinguish_coefficients_name_them() -> None:
    channels = {name: randomized_response(5, 0.75, inputs=range(5)) for name in ("u", "v")}
    channels["y"] = randomized_response(2, 0.75)
    messages = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        data = {name: rng.integers(0, len(channel.inputs), 300) for name, channel in channels.items()}
        data["x"] = rng.normal(size=300)
        try:
            logit_by_moments("y ~ x + u + v", data, channels)
        except SolverError as error:
            if "do not distinguish the coefficients of" in str(error):
                messages.append(set(str(error).partition("coefficients of ")[2].partition(" (")[0].split(", ")))
    assert len(messages) > 2
    assert all(terms & {"u", "v"} and terms <= {"x", "u", "v"} for terms in messages)


QUESTIONS = (
    QuestionSpec("count", tuple("0123456")),
    QuestionSpec("kind", tuple("abcdefg")),
    QuestionSpec("flag", ("0", "1")),
)
PLAN = make_plan(
    SurveySpec("demo", QUESTIONS, carry=("age", "sex", "town")),
    lambda question: randomized_response(len(question.categories), 1.0).matrix,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few reports of seven numbers, of seven categories, and of two numbers; the town tells the flag."""
    path, rng = tmp_path_factory.mktemp("messages"), np.random.default_rng(8)
    town = rng.choice(["x", "y", "z"], N, p=[0.48, 0.48, 0.04])
    columns = [
        rng.choice(list("0123456"), N), rng.choice(list("abcdefg"), N), rng.choice(["0", "1"], N),
        rng.integers(18, 90, N).astype(str), rng.choice(["f", "m"], N), town,
    ]  # fmt: skip
    lines = [",".join(row) for row in zip(*columns, strict=True)]
    (path / "answers.csv").write_text("count,kind,flag,age,sex,town\n" + "\n".join(lines) + "\n")
    (path / "plan.json").write_text(PLAN.to_json())
    privatize(PLAN, path / "answers.csv", path / "reports.csv", Simulated(rng))
    return path


def run(folder: Path, *arguments: str) -> Any:
    from typer.testing import CliRunner

    from ldpopt.cli import app

    paths = [str(folder / name) for name in ("plan.json", "reports.csv")]
    return CliRunner().invoke(app, ["survey", "regress", *paths, *arguments])


ADVICE = "is a quantity, pass --linear for its mean"


@pytest.mark.parametrize(("formula", "code"), [("count ~ town", 1), ("age ~ sex", 2), ("log(count + 1) ~ sex", 2)])
def test_a_number_is_referred_to_the_linear_regression_which_works(folder: Path, formula: str, code: int) -> None:
    said = run(folder, formula)
    assert said.exit_code == code
    outcome = "age" if "age" in formula else "count"
    assert f"; if '{outcome}' {ADVICE}" in said.stderr
    assert run(folder, formula, "--linear").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("kind ~ town",),  # its answers are no numbers
        ("flag ~ town", "--where", "town = z"),  # a constant predictor
        ("count ~ town", "--reference", "3"),
        ("count ~ town", "--odds"),
        ("count ~ town", "--moments"),
        ("count ~ town", "--likelihood"),
        ("age ~ sex + I(2 * sex)",),
        ("age ~ age",),
        ("age ~ sex", "--odds"),
        ("count ~ nothing",),
    ],
)
def test_others_are_not_referred_to_it(folder: Path, arguments: tuple[str, ...]) -> None:
    said = run(folder, *arguments)
    assert said.exit_code in (1, 2)
    assert ADVICE not in said.stderr


def test_two_numbers_are_categories(folder: Path) -> None:
    people = Respondents.read(PLAN, folder / "reports.csv", names=["age", "sex", "town"])
    assert people.fits_linear("count ~ town")
    assert people.fits_linear("age ~ sex")
    assert not people.fits_linear("flag ~ town")
    assert not people.fits_linear("kind ~ town")
    assert not people.fits_linear("sex ~ age")


def test_the_command_names_the_separating_and_the_collinear_terms(folder: Path) -> None:
    assert "no finite coefficients of town[z] were reached" in run(folder, "count ~ town + age").stderr
    assert "collinear ones: age, I(age * 2)" in run(folder, "flag ~ sex + age + I(age * 2)").stderr
