"""Reports or counts to shares (``ldpopt survey estimate``), to a page (``report``) or to findings (``verify``).

Reports to tables of results: ``ldpopt survey table``, ``compare``, ``describe`` and ``regress``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ldpopt.cli import claim, claim_folder, options, progress, say, write_all, write_folder
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt_survey.cli.arguments import (
    SIMULATION,
    Analysing,
    ResultFlags,
    SampleFlags,
    notes_of,
    read_counts,
    read_plan,
    read_reports,
)

if TYPE_CHECKING:
    from ldpopt_survey.collect.aggregate import Counts
    from ldpopt_survey.sample.analysis import Analysis, Findings
    from ldpopt_survey.sample.respondents import Differences
    from ldpopt_survey.survey import Survey


ANYTIME = """
    anytime: --anytime | Intervals that hold at all looks together, so that you may look as often as you like, and stop.
    """


@options(f"""
    wave: --wave PLAN REPORTS | An earlier wave of other respondents, which is included in the estimate.
    {ANYTIME.strip()}
    """)
def estimate(
    plan: Path, data: str, sample: SampleFlags, results: ResultFlags, by: list[str] | None = None,
    wave: tuple[Path, str] | None = None, unlabelled: bool = False, json: bool = False, anytime: bool = False,
) -> None:  # fmt: skip
    """Estimate the share of every answer, with binomial intervals that follow the design of the sample."""
    from ldpopt_survey.reports.analyses import share_table
    from ldpopt_survey.reports.delivery import results as as_data
    from ldpopt_survey.reports.survey import among_those_who_answered, few_in_words, missing_of, reached_in_words
    from ldpopt_survey.server.progress import in_words, progress_of
    from ldpopt_survey.survey import Survey

    as_table = results.format is not None or results.out is not None
    if json and as_table:
        raise invalid("--json", "no --format or --out beside it", Phrase("one"))
    if anytime and wave is not None:
        raise invalid("--anytime", "no --wave beside it", Phrase("one"))
    results.chosen()
    planned = read_plan(plan)
    asked, level = replace(sample.analysis(planned, by), anytime=anytime), sample.level
    with progress("estimating"):
        findings, counts = Survey(planned).findings(read_reports(data, planned, unlabelled), asked, unlabelled)
        if wave is not None:
            findings = _with_wave(Survey(planned), counts, wave, asked, unlabelled)
    if json and wave is not None:
        raise invalid("--wave", "no --json, which says of which one plan's reports it is", Phrase("both"))
    answered = among_those_who_answered(planned, findings)
    if json:
        print(strict.json_text(as_data(findings, counts, asked, answered)), end="")
        return
    notes = notes_of(counts, asked)
    if as_table:
        estimates = {name: {"": each.whole, **each.groups} for name, each in findings.items()}
        results.show(share_table(f"{planned.name}: shares of answers", estimates, level, notes))
        return
    say(*(f"{note}\n" for note in notes))
    if anytime:
        steps = progress_of(planned, {name: each.whole for name, each in findings.items()}, level)
        say(*map(str, steps), f"{in_words(steps)}\n")
    words = missing_of(planned, counts)
    among = {name: {"": each.whole, **each.groups} for name, each in answered.items()}
    for name, each in findings.items():
        for group, inside in {"": each.whole, **each.groups}.items():
            head = f"{name}, {', '.join(asked.by)}: {group}" if group else name
            more = [few_in_words(inside)] if group else [few_in_words(inside), reached_in_words(planned, name, inside)]
            more = [each for each in (*more, "" if group else words.get(name)) if each]
            say(f"{head}\n{inside.summary(level)}\n", *(f"{each}\n" for each in more))
            if group in among.get(name, {}):
                say(f"{head}, among those who answered\n{among[name][group].summary(level)}\n")


def _with_wave(
    survey: Survey, counts: Counts, wave: tuple[Path, str], asked: Analysis, unlabelled: bool
) -> dict[str, Findings]:
    """The estimates from both waves, which must be simple samples."""
    from ldpopt_survey.sample.analysis import Findings, restrict_to_answered
    from ldpopt_survey.survey import Survey

    if not asked.of_counts:
        raise invalid("--wave", "simple samples, whole (--simple)", Phrase("a design, groups or conditions"))
    earlier = read_plan(wave[0])
    before = read_counts(str(wave[1]), earlier, unlabelled)
    if before.simulation != counts.simulation:
        raise invalid("--wave", "simulated reports in both waves, or in none", Phrase("one of each"))
    joint = survey.with_wave(counts, Survey(earlier), before)
    among = (
        {name: restrict_to_answered(survey.plan, name, own) for name, own in joint.items()} if asked.answered else joint
    )
    return {name: Findings(own, {}) for name, own in among.items()}


@options(f"""
    out: --out -o | File for the page (HTML).
    {ANYTIME.strip()}
    """)
def report(
    plan: Path, data: str, sample: SampleFlags, out: Path = Path("report.html"), by: list[str] | None = None,
    unlabelled: bool = False, force: bool = False, anytime: bool = False,
) -> None:  # fmt: skip
    """Write one HTML page: estimates with intervals, channels, guarantees in plain words, design effects."""
    from ldpopt_survey.reports.survey import survey_report
    from ldpopt_survey.survey import Survey

    claim([out], force)
    planned = read_plan(plan)
    asked = replace(sample.analysis(planned, by), anytime=anytime)
    with progress("estimating and drawing"):
        findings, counts = Survey(planned).findings(read_reports(data, planned, unlabelled), asked, unlabelled)
        page = survey_report(planned, findings, counts, analysis=asked)
    write_all({out: page.encode()}, force)
    say(f"wrote {out}")


@options("out: --out -o | Folder for the table and the script.")
def to_r(plan: Path, data: Path, sample: SampleFlags, out: Path = Path("r"), force: bool = False) -> None:
    """Write reports as numbers whose means are the shares, with replicate weights, and a script that R's survey runs.

    ldpopt survey to-r plan.json reports.csv --variance jackknife
    """
    from ldpopt_survey.sample.r_bridge import SCRIPT, for_r

    claim_folder(out, force)
    planned = read_plan(plan)
    with progress("reading"):
        files = for_r(planned, data, sample.analysis(planned))
    write_folder(out, files, force)
    say(f"wrote {' and '.join(files)} in {out}; there: Rscript {SCRIPT}")


@options("folder: FOLDER | Folder with the plan, the reports, and files that were made from them.")
def verify(folder: Path, workers: int = 1, json: bool = False) -> None:
    """Check a survey's delivery: prove the plan, compare reports with their manifests, recompute counts and estimates.

    FOLDER holds plan.json, reports, and perhaps counts.json, estimates.json (from ldpopt survey estimate --json) and
    pages. Exit code 0: everything holds. 1: something does not hold, and the output says what. 2: not a delivery.
    """
    from ldpopt_survey.collect.runner import Threads
    from ldpopt_survey.reports.delivery import verify_delivery

    with progress("verifying"):
        findings = verify_delivery(folder, Threads(workers))
    if json:
        print(strict.json_text(findings.to_dict()), end="")
    else:
        say(*map(repr, findings.findings), *([SIMULATION] if findings.simulation else []))
        say("Everything that was checked holds." if findings else "This delivery is not what it says.")
    if not findings:
        raise typer.Exit(1)


def _of(reports: int, people: int) -> str:
    """How many respondents have reports of what is estimated, beside how many there are."""
    return f"{people:,} respondents" if reports == people else f"{reports:,} of {people:,} respondents"


@options("""
    row: ROW | A question or a public column, for the rows.
    column: COLUMN | Another one, for the columns.
    layer: --layer NAME | A third one; there is a table for each of its answers or values.
    percent: --percent | Shares within all, row or column; with --layer also within layer.
    """)
def table(given: Analysing, row: str, column: str, percent: str = "all", layer: str | None = None) -> None:
    """Cross two questions, or a question and a public column: shares with intervals, and a test of independence.

    ldpopt survey table plan.json reports.csv drug evade --percent row

    ldpopt survey table plan.json reports.csv drug evade --layer sex --percent layer
    """
    from ldpopt_survey.reports.analyses import three_way_rows, two_way_rows

    plan, asked = given.begun()
    with progress("estimating"):
        people = given.people(plan, asked, (row, column, *(() if layer is None else (layer,))))
        notes = notes_of(people.rows.counts, asked)
        if layer is not None:
            cube = people.three_way(row, column, layer)
            title = f"{row} by {column} by {layer}, {_of(cube.joint.n, people.n)}"
            given.show(three_way_rows(title, cube, (row, column, layer), percent, given.level, notes,
                                     people.independence_by(row, column, layer)))  # fmt: skip
            return
        crossed = people.two_way(row, column)
        title = f"{row} by {column}, {_of(crossed.joint.n, people.n)}"
        shown = two_way_rows(title, crossed, (row, column), percent, given.level, notes)
    given.show(shown)


@options("""
    questions: [QUESTION]... | Questions to compare; by default all.
    by: --by COLUMN | Compare the groups of a public column.
    against: --against GROUP | The group with which the others are compared; by default the first.
    wave: --wave PLAN REPORTS | Compare with another wave: its plan and its reports.
    """)
def compare(
    given: Analysing, questions: list[str] | None = None, by: str | None = None, against: str | None = None,
    wave: tuple[Path, Path] | None = None,
) -> None:  # fmt: skip
    """Compare groups or waves: differences of shares with intervals, and tests of no difference.

    ldpopt survey compare plan.json reports.csv --by region

    ldpopt survey compare plan-1.json reports-1.csv --wave plan-2.json reports-2.csv
    """
    from ldpopt_survey.reports.analyses import difference_table
    from ldpopt_survey.sample.respondents import Respondents, against_wave

    given.chosen()
    if (by is None) == (wave is None):
        raise invalid("compare", "--by COLUMN, or --wave PLAN REPORTS", Phrase("neither" if by is None else "both"))
    if against is not None and by is None:
        raise invalid("--against", "a group of --by", Phrase(against))
    plan, asked = given.begun()
    names = tuple(questions or ())
    with progress("estimating"):
        people = given.people(plan, asked, () if by is None else (by,))
        if wave is None:
            assert by is not None
            differences, tests = people.compare(by, names, against)
            title = f"Groups of {by}, {people.n:,} respondents"
            notes = notes_of(people.rows.counts, *_asked_fewer(differences, people.n), asked)
        else:
            other = read_plan(wave[0])
            second = Respondents.read(other, wave[1], given.analysis(other), (), given.unlabelled)
            differences, tests = against_wave(people, second, names)
            title = f"Two waves, {people.n:,} and {second.n:,} respondents"
            taken = (
                "The waves are taken to be of different people; of the same people, whose answers agree from wave to "
                "wave, the intervals are too long."
            )
            notes = notes_of(people.rows.counts, second.rows.counts, taken, asked)
    given.show(difference_table(title, differences, tests, given.level, notes))


def _asked_fewer(differences: Differences, people: int) -> list[str]:
    """Of how many respondents the groups of each question are, where these are not all."""
    sizes: dict[str, dict[str, int]] = {}
    for (question, group, against), compared in differences.items():
        sizes.setdefault(question, {}).update({group: compared.first.n, against: compared.second.n})
    fewer = {question: sum(of.values()) for question, of in sizes.items() if sum(of.values()) < people}
    return [f"With reports of {question}: {n:,} of {people:,} respondents." for question, n in fewer.items()]


@options("""
    question: QUESTION |
    quantiles: --quantile -q | Share of answers below the quantile, such as 0.5; by default the quartiles.
    scores: --scores NUMBERS | Numbers of the answers, in the plan's order: 0,1,2; by default their own, or the middles
      of bins.
    population: --population SIZE | Size of the population; with it totals are estimated, too.
    """)
def describe(
    given: Analysing, question: str, quantiles: list[float] | None = None, scores: str | None = None,
    population: float | None = None,
) -> None:  # fmt: skip
    """The mean, quantiles and totals of a question whose answers are numbers, or bins such as 10-19 or under 20.

    ldpopt survey describe plan.json reports.csv income --quantile 0.5 --population 80000
    """
    import numpy as np

    from ldpopt_survey.estimate.intervals import Binomial
    from ldpopt_survey.estimate.numbers import bin_edges, mean, population_total, quantile
    from ldpopt_survey.plan.planned_question import non_answers
    from ldpopt_survey.reports.analyses import number_table

    plan, asked = given.begun()
    if question in plan.answers and non_answers(plan.part(question)):
        asked = replace(asked, answered=True)  # whoever did not answer has no number
    try:
        points_of = None if scores is None else [float(part) for part in scores.split(",")]
    except ValueError:
        raise invalid("--scores", "numbers with commas between them", scores) from None
    with progress("estimating"):
        people = given.people(plan, asked, (question,))
        shares = people.estimate(question)
        shown, notes = [], []
        numbers = question in plan.answers and plan.part(question).measure == "mean"
        if numbers and (points_of is not None or quantiles):
            raise invalid("describe", f"no --scores and no --quantile for {question!r}, a mean", Phrase("one"))
        edges = None if points_of is None else np.repeat(np.array(points_of)[:, None], 2, axis=1)
        if not numbers and points_of is None:
            try:
                edges = bin_edges(shares.labels)
            except InvalidInput:  # answers without numbers still have totals
                if population is None:
                    raise
                notes.append("The answers are no numbers: --scores says what each counts as in a mean.")
        if numbers or (edges is not None and np.isfinite(edges).all()):
            middle = shares if numbers else mean(shares, points_of)
            shown.append(("", middle))
            if population is not None:
                shown.append(("total", population_total(middle, population)))
        elif edges is not None:
            notes.append("A bin without an end has no middle: --scores says what each answer counts as in a mean.")
            notes.append("A quantile in such a bin is not known further than its limits.")
        if population is not None and not numbers:
            shown.append(("people", population_total(shares, population)))
        points = []
        if edges is not None and (points_of is None or quantiles):
            points = [quantile(shares, q, edges, Binomial(given.level)) for q in quantiles or (0.25, 0.5, 0.75)]
        said = notes_of(people.rows.counts, asked, *notes)
    given.show(number_table(f"{question}, {_of(shares.n, people.n)}", shown, points, given.level, said))


@options("""
    formula: FORMULA | Such as 'evade ~ age + C(region) + age:sex'; questions and public columns.
    linear: --linear | The outcome is a number; use least squares.
    reference: --reference CATEGORY | The answer with which the others are compared; by default the first.
    odds: --odds | Print odds ratios instead of coefficients.
    moments: --moments | By moments or not at all: what the same regression of true answers tends to, whatever their
      law. [default: by moments; by the likelihood, with a word, where these have no finite solution]
    likelihood: --likelihood | By the likelihood of the reports: shorter intervals, which hold if the formula is the law
      of the answers. How far the moments differ is printed.
    """)
def regress(
    given: Analysing, formula: str, linear: bool = False, reference: str | None = None, odds: bool = False,
    moments: bool = False, likelihood: bool = False,
) -> None:  # fmt: skip
    """Regression where the outcome, predictors, or both are private answers.

    It is logistic for two categories, multinomial for more, and least squares for a number with --linear. Names in the
    formula are questions of the plan or public columns of the reports. It is read as in R: a:b, a*b, (a + b)^2, 0 + a,
    C(a), C(a, contr.treatment("x")), log(a), I(a**2); and bs, poly, center, scale of public columns.

    Exit code 1: no finite coefficients, since a predictor separates the answers or too few reports tell of them.

    ldpopt survey regress plan.json reports.csv "evade ~ age + sex" --weights w
    """
    from ldpopt_survey.regress.formula import parse_formula
    from ldpopt_survey.reports.analyses import regression_table

    given.chosen()
    named = parse_formula(formula)
    if linear and (reference is not None or odds):
        raise invalid("--linear", "neither --reference nor --odds beside it", Phrase("one of them"))
    if linear and (moments or likelihood):
        raise invalid("--linear", "no --moments beside it (least squares has the same equations)", Phrase("both"))
    if moments and likelihood:
        raise invalid("--moments", "it or --likelihood", Phrase("both"))
    plan, asked = given.begun()
    with progress("fitting"):
        people = given.people(plan, asked, (named.outcome, *named.columns))
        logit = people.logit_by_moments if moments else people.logit_by_likelihood if likelihood else people.logit
        fit = people.linear(formula) if linear else logit(formula, reference)
        said = people.against_moments(fit)
    given.show(regression_table(fit, given.level, odds, [*said, *notes_of(people.rows.counts, asked)]))
