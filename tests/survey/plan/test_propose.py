"""What is proposed for a file: questions, bins, codes for no answer, ids, and the draft that plans at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import round_edges
from ldpopt_survey import ProposalOptions, Reading, SurveySpec, plan_survey, propose
from ldpopt_survey.datafiles.columns import profile
from ldpopt_survey.plan.draft import draft, draft_spec
from ldpopt_survey.plan.propose import Proposal
from ldpopt_survey.reports.promises import consent_paragraph


def proposed(folder: Path, columns: dict[str, list[object]], wishes: ProposalOptions | None = None) -> Proposal:
    path = folder / "a.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(";".join(map(str, row)) for row in [tuple(columns), *rows]) + "\n", "utf-8")
    return propose(profile(path, delimiter=";"), wishes)


@pytest.mark.parametrize(
    ("values", "codes", "categories"),
    [
        ([1, 2, 2, 9], ("9",), (1, 2)),
        ([1, 2, 8, 9], ("8", "9"), (1, 2)),
        ([1, 2, 3, 4, 5, 6, 7], (), (1, 2, 3, 4, 5, 6, 7)),
        (list(range(11)), (), tuple(range(11))),
        ([*range(11), 99], ("99",), tuple(range(11))),
        ([0, 1, -9, -1], ("-9",), (-1, 0, 1)),
        ([-2, -1, 0, 1, 2], (), (-2, -1, 0, 1, 2)),
        ([-2, -1, 1, 2], (), (-2, -1, 1, 2)),
        ([-1, 0, 1], (), (-1, 0, 1)),
        ([-5, -4, 0, 4, 5], (), (-5, -4, 0, 4, 5)),
        ([1, 2, 3, -99, -8], ("-99", "-8"), (1, 2, 3)),
        (["ja", "nein", "k.A."], ("k.A.",), ("ja", "nein")),
        (["yes", "no", "NA", "refused"], ("NA", "refused"), ("no", "yes")),
    ],
)
def test_codes_for_no_answer(tmp_path: Path, values: list[object], codes: tuple[str, ...], categories: tuple) -> None:
    """Words for it, the usual negative numbers, and 7 to 9, 97 to 99 far above the others."""
    made = proposed(tmp_path, {"q": values * 3}).questions[0].spec
    assert set(made.reading.missing_codes) == set(codes)
    assert [one for one in made.categories if one != "no answer"] == list(categories)


def test_ages_of_99_are_ages(tmp_path: Path) -> None:
    """Where the numbers below are dense, 98 and 99 are numbers like the others."""
    made = proposed(tmp_path, {"age": [*range(18, 100)] * 2}).questions[0].spec
    assert made.reading.missing_codes == ()
    assert made.reading.bins


def test_ids_weights_text_and_constants_are_not_asked(tmp_path: Path) -> None:
    """Each column that is no question says why, and ids and weights have their own place."""
    n = 60
    made = proposed(
        tmp_path,
        {
            "id": list(range(n)),
            "weight": [1 + i / 100 for i in range(n)],
            "name": [f"person {i}" for i in range(n)],
            "country": ["here"] * n,
            "empty": [""] * n,
            "row": list(range(1, n + 1)),
            "q": ["a", "b"] * (n // 2),
        },
    )
    assert (made.names, made.respondent, made.carry) == (["q"], "id", ())
    assert made.sample is not None
    assert made.sample.columns == ("weight",)
    assert [name for name, _ in made.aside] == ["name", "country", "empty", "row"]


def test_a_category_seen_once_is_pointed_at(tmp_path: Path) -> None:
    """It may be a slip, or somebody."""
    made = proposed(tmp_path, {"q": ["a", "b"] * 20 + ["B"]})
    assert "Seen once in the file: 'B'" in made.questions[0].observations[0]


def test_spellings_of_one_answer_are_one(tmp_path: Path) -> None:
    """Answers that differ in capitals and blanks alone are codes of the commonest spelling; the draft keeps them."""
    made = proposed(tmp_path, {"q": ["ja", "Ja", "JA ", "nein", "ja", "Nein"] * 9, "n": [1, 2, 3] * 18})
    spec = made.questions[0].spec
    assert spec.categories == ("ja", "nein")
    assert dict(spec.reading.codes)["Ja"] == dict(spec.reading.codes)["JA "] == "ja"
    assert "taken as one" in made.questions[0].remarks[0]
    found = profile(tmp_path / "a.csv", delimiter=";")
    text = draft(found, made, draft_spec(found, made, "D"))
    assert SurveySpec.from_toml(text).questions[0].reading.codes == spec.reading.codes
    assert made.questions[1].spec.reading.codes == ()


def test_wishes_are_kept_or_refused(tmp_path: Path) -> None:
    """Edges, counts of bins, codes and policies as given; a column that is not there, or is text, is refused."""
    columns: dict[str, list[object]] = {
        "x": list(range(100)),
        "t": [f"t{i}" for i in range(99)] + ["t0"],
        "n": [7] * 100,
    }
    made = proposed(tmp_path, columns, ProposalOptions(("x",), bins={"x": [10, 20]})).questions[0].spec
    assert made.categories == ("under 10", "10 to 19", "20 and more")
    made = proposed(tmp_path, columns, ProposalOptions(("x",), missing_codes={"x": ["50"]}, missing_answers="left out"))
    assert made.questions[0].spec.reading.missing_answers == "left out"
    for wishes in (
        ProposalOptions(("z",)),
        ProposalOptions(("t",)),
        ProposalOptions(("n",)),
        ProposalOptions(bins={"t": 3}),
        ProposalOptions(bins={"x": 1}),
    ):
        with pytest.raises(InvalidInput):
            proposed(tmp_path, columns, wishes)


def test_bin_edges_are_round_and_increasing_with_balanced_counts(tmp_path: Path) -> None:
    """On every scale and for skewed numbers each bin holds some, and none holds nearly all."""
    rng = np.random.default_rng(1)
    for scale in (1e-300, 1e-9, 1.0, 1e12, 1e300):
        for numbers in (rng.random(5000), rng.normal(size=5000), rng.exponential(size=5000)):
            edges = np.array(round_edges(numbers * scale, 6))
            assert (np.diff(edges) > 0).all()
            shares = np.bincount(np.searchsorted(edges, numbers * scale, "right"), minlength=len(edges) + 1) / 5000
            assert 2 <= len(edges) <= 5
            assert shares.min() > 0
            assert shares.max() < 0.6


def test_the_draft_is_the_survey_that_it_was_made_from(tmp_path: Path) -> None:
    """Whatever labels there are, TOML gives them back, the survey plans, and the commented questions can be asked."""
    odd = ['say "x"', "back\\slash", "# no comment", "Zoë €", "a = [1]", "新しい"]
    columns: dict[str, list[object]] = {f"q{i}": [one, "b", "b"] * 9 for i, one in enumerate(odd)}
    columns |= {f"more{i}": [1, 2, ""] * 9 for i in range(6)}
    made = proposed(tmp_path, columns)
    found = profile(tmp_path / "a.csv", delimiter=";")
    spec = draft_spec(found, made, 'A "name"', 3.0)
    text = draft(found, made, spec)
    again = SurveySpec.from_toml(text)
    assert [one.categories for one in again.questions] == [one.spec.categories for one in made.questions[:10]]
    assert (again.name, again.epsilon, again.file.delimiter) == ('A "name"', 3.0, ";")
    asked = (
        text
        + "\n"
        + "\n".join(line[2:] for line in text.splitlines() if line.startswith(("# [[", "# name", "# ans", "# mis")))
    )
    assert len(SurveySpec.from_toml(asked).questions) == 12
    planned = plan_survey(again).plan
    assert planned.epsilon <= 3.0


def test_the_consent_paragraph_lists_unprotected_data(tmp_path: Path) -> None:
    """Carried columns, and answers whose absence is seen."""
    columns: dict[str, list[object]] = {
        "weight": [1.5, 2.5, 1.0] * 9,
        "q": ["a", "b", ""] * 9,
        "r": ["a", "b", "c"] * 9,
    }
    made = proposed(tmp_path, columns, ProposalOptions(missing_answers="left out"))
    plan = plan_survey(draft_spec(profile(tmp_path / "a.csv", delimiter=";"), made, "Demo", 1.0)).plan
    said = consent_paragraph(plan)
    assert "not replaced: weight." in said
    assert "If you leave 'q' empty, everyone can see it" in said
    assert "e^1" in said
    assert plan.questions[0].reading == Reading(missing_answers="left out")


def test_the_weights_in_the_file_raise_the_respondents(tmp_path: Path) -> None:
    """The draft's design effect is n sum w^2/(sum w)^2 of the file's weights [Kish]; without weights it is 1."""
    weights = [0.5, 1.0, 1.5, 3.0] * 50
    lines = [f"{w},{'yes' if at % 3 else 'no'}" for at, w in enumerate(weights)]
    path = tmp_path / "w.csv"
    path.write_text("\n".join(["weight,vote", *lines]) + "\n")
    found = profile(path)
    made = propose(found, ProposalOptions(questions=("vote",)))
    spec = draft_spec(found, made, "demo")
    assert spec.design_effect == pytest.approx(len(weights) * sum(w * w for w in weights) / sum(weights) ** 2, abs=5e-3)
    assert SurveySpec.from_toml(draft(found, made, spec)).design_effect == spec.design_effect
    assert draft_spec(found, replace(made, sample=None), "demo").design_effect == 1


def test_pairs_of_codes_read_as_decimals_are_pointed_out(tmp_path: Path) -> None:
    """Of 1,2 and 2,3 nobody knows whether they are numbers: the proposal says how they are read, and how else."""
    for cells, is_observed in (
        (["1,2", "1", "2,3", "1,3"], True),
        (["0,5", "1,5", "2,5", "2"], False),
        (["1,2", "2,1", "1,3", "2"], False),
        (["1,20", "1,30", "2,50", "2"], True),
    ):
        (tmp_path / "a.csv").write_text("id;q\n" + "".join(f"{i};{cells[i % 4]}\n" for i in range(40)))
        made = propose(profile(tmp_path / "a.csv")).questions[0]
        assert ("pass --decimal ." in " ".join(made.observations)) == is_observed
        assert "1.2" in made.spec.categories or cells[0] != "1,2"
