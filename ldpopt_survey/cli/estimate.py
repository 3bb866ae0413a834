"""Estimates from reports or counts (``ldpopt survey estimate``), the HTML report, and ``verify``.

Commands for tables of results: ``ldpopt survey table``, ``compare``, ``describe`` and ``regress``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ldpopt.cli import claim, claim_folder, options, progress, say, write_all, write_folder
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.files import strict
from ldpopt_survey.cli.arguments import (
    SIMULATION,
    AnalysisFlags,
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
    from ldpopt_survey.sample.respondents import Differences, Respondents
    from ldpopt_survey.survey import Survey


ANYTIME = """
    anytime: --anytime | Report confidence sequences, which stay valid under repeated looks and optional stopping.
    """


@options(f"""
    wave: --wave PLAN REPORTS | Include an earlier wave of other respondents: its plan and its reports.
    {ANYTIME.strip()}
    """)
def estimate(
    plan: Path, data: str, sample: SampleFlags, results: ResultFlags, by: list[str] | None = None,
    wave: tuple[Path, str] | None = None, unlabelled: bool = False, json: bool = False, anytime: bool = False,
) -> None:  # fmt: skip
    """Estimate the proportion of every answer, with intervals that follow the sample design.

    Questions and groups without a report are named.
    """
    from ldpopt_survey.reports.analyses import share_table
    from ldpopt_survey.reports.delivery import results as as_data
    from ldpopt_survey.reports.survey import (
        among_those_who_answered,
        caveats_in_words,
        left_out_in_words,
        missing_by_question,
        no_estimate_in_words,
        precision_in_words,
        why_not_among_answered,
    )
    from ldpopt_survey.sample.analysis import questions_without_reports
    from ldpopt_survey.server.progress import in_words, progress_of
    from ldpopt_survey.survey import Survey

    as_table = results.format is not None or results.out is not None
    if json and as_table:
        raise InvalidInput("--json cannot be combined with --format or --out")
    if anytime and wave is not None:
        raise InvalidInput("--anytime cannot be combined with --wave")
    results.output_format()
    survey_plan = read_plan(plan)
    analysis, level = replace(sample.analysis(survey_plan, by), anytime=anytime), sample.level
    wave_notes: list[str] = []
    with progress("estimating"):
        findings, counts = Survey(survey_plan).findings(
            read_reports(data, survey_plan, unlabelled), analysis, unlabelled
        )
        if wave is not None:
            findings, wave_notes = _with_wave(Survey(survey_plan), counts, wave, analysis, unlabelled)
    if json and wave is not None:
        raise InvalidInput("--wave cannot be combined with --json, which describes the reports of a single plan")
    answered_findings = among_those_who_answered(survey_plan, findings)
    without_reports = questions_without_reports(survey_plan, findings)
    if json:
        print(strict.json_text(as_data(findings, counts, analysis, answered_findings, without_reports)), end="")
        return
    notes = notes_of(counts, analysis, *wave_notes)
    no_estimates = {name: [no_estimate_in_words(name)] for name in without_reports}
    no_estimates |= {name: left_out_in_words(name, finding, analysis.by) for name, finding in findings.items()}
    if as_table:
        estimates = {
            name: {"": finding.whole, **finding.groups, **dict.fromkeys(finding.groups_left_out)}
            for name, finding in findings.items()
        }
        table_rows = {name: estimates.get(name, {"": None}) for name in survey_plan.answers}
        all_notes = [*notes, *(sentence for name in survey_plan.answers for sentence in no_estimates[name])]
        results.show(share_table(f"{survey_plan.name}: proportions of answers", table_rows, level, all_notes))
        return
    say(*(f"{note}\n" for note in notes))
    if anytime:
        wholes = {name: findings[name].whole if name in findings else None for name in survey_plan.answers}
        question_progress = progress_of(survey_plan, wholes, level)
        say(*map(str, question_progress), f"{in_words(question_progress)}\n")
    missing_notes = missing_by_question(survey_plan, counts)
    answered_estimates = {name: {"": finding.whole, **finding.groups} for name, finding in answered_findings.items()}
    say(*(f"{no_estimate_in_words(name)}\n" for name in without_reports))
    for name, finding in findings.items():
        for group, group_estimate in {"": finding.whole, **finding.groups}.items():
            head = f"{name}, {', '.join(analysis.by)}: {group}" if group else name
            remarks = (
                [caveats_in_words(group_estimate)]
                if group
                else [caveats_in_words(group_estimate), precision_in_words(survey_plan, name, group_estimate)]
            )
            remarks = [remark for remark in (*remarks, "" if group else missing_notes.get(name)) if remark]
            say(f"{head}\n{group_estimate.summary(level)}\n", *(f"{remark}\n" for remark in remarks))
            if group in answered_estimates.get(name, {}):
                say(f"{head}, among those who answered\n{answered_estimates[name][group].summary(level)}\n")
            elif not group and (reason := why_not_among_answered(survey_plan, name, group_estimate)):
                say(f"{no_estimate_in_words(name, reason)}\n")
        sentences = dict.fromkeys(no_estimates[name])
        if name in answered_findings:
            sentences |= dict.fromkeys(left_out_in_words(name, answered_findings[name], analysis.by))
        say(*(f"{sentence}\n" for sentence in sentences))


def _with_wave(
    survey: Survey, counts: Counts, wave: tuple[Path, str], analysis: Analysis, unlabelled: bool
) -> tuple[dict[str, Findings], list[str]]:
    """The estimates from both waves, which must be simple samples, and notes on questions with reports in only one."""
    from ldpopt_survey.sample.analysis import Findings, counts_have_reports, restrict_to_answered
    from ldpopt_survey.survey import Survey

    if not analysis.of_counts:
        raise invalid("--wave", "simple samples, whole (--simple)", Phrase("a design, groups or conditions"))
    earlier_plan = read_plan(wave[0])
    earlier_counts = read_counts(str(wave[1]), earlier_plan, unlabelled)
    if earlier_counts.simulation != counts.simulation:
        raise InvalidInput("--wave: simulated reports cannot be combined with reports of people")
    joint = survey.with_wave(counts, Survey(earlier_plan), earlier_counts)
    estimates = (
        {name: restrict_to_answered(survey.plan, name, estimate) for name, estimate in joint.items()}
        if analysis.answered
        else joint
    )
    waves = ((survey.plan, counts, "the later wave"), (earlier_plan, earlier_counts, "the earlier wave"))
    notes = []
    for name in estimates:
        names = [wave_name for plan, tables, wave_name in waves if counts_have_reports(plan, name, tables)]
        notes += [f"{name}: reports of {names[0]} alone."] if len(names) == 1 else []
    return {name: Findings(estimate, {}) for name, estimate in estimates.items()}, notes


@options(f"""
    out: --out -o | File for the page (HTML).
    {ANYTIME.strip()}
    """)
def report(
    plan: Path, data: str, sample: SampleFlags, out: Path = Path("report.html"), by: list[str] | None = None,
    unlabelled: bool = False, force: bool = False, anytime: bool = False,
) -> None:  # fmt: skip
    """Generate an HTML report: estimates with intervals, channels, guarantees, design effects."""
    from ldpopt_survey.reports.survey import survey_report
    from ldpopt_survey.survey import Survey

    claim([out], force)
    survey_plan = read_plan(plan)
    analysis = replace(sample.analysis(survey_plan, by), anytime=anytime)
    with progress("estimating and drawing"):
        findings, counts = Survey(survey_plan).findings(
            read_reports(data, survey_plan, unlabelled), analysis, unlabelled
        )
        page = survey_report(survey_plan, findings, counts, analysis=analysis)
    write_all({out: page.encode()}, force)
    say(f"wrote {out}")


@options("out: --out -o | Folder for the table and the script.")
def to_r(plan: Path, data: Path, sample: SampleFlags, out: Path = Path("r"), force: bool = False) -> None:
    """Export reports for R's survey package, with replicate weights and a script.

    The exported values are unbiased: their means are the proportions.

    ldpopt survey to-r plan.json reports.csv --variance jackknife
    """
    from ldpopt_survey.sample.r_bridge import SCRIPT, for_r

    claim_folder(out, force)
    survey_plan = read_plan(plan)
    with progress("reading"):
        files = for_r(survey_plan, data, sample.analysis(survey_plan))
    write_folder(out, files, force)
    say(f"wrote {' and '.join(files)} in {out}; there: Rscript {SCRIPT}")


@options("folder: FOLDER | Folder with the plan, the reports, and files made from them.")
def verify(folder: Path, workers: int = 1, json: bool = False) -> None:
    """Verify a survey's delivery: the plan's proof, manifests, counts and estimates.

    FOLDER holds plan.json, reports, and perhaps counts.json, estimates.json (from ldpopt survey estimate --json) and
    pages. Exit code 0: everything holds. 1: something does not hold, and the output names it. 2: not a delivery.
    """
    from ldpopt_survey.collect.runner import Threads
    from ldpopt_survey.reports.delivery import verify_delivery

    with progress("verifying"):
        findings = verify_delivery(folder, Threads(workers))
    if json:
        print(strict.json_text(findings.to_dict()), end="")
    else:
        say(*map(repr, findings.findings), *([SIMULATION] if findings.simulation else []))
        say("Everything that was checked holds." if findings else "Verification failed: see the findings above.")
    if not findings:
        raise typer.Exit(1)


def _respondents_of(reports: int, people: int) -> str:
    """The number of respondents with reports, and the number of all respondents if it differs."""
    return f"{people:,} respondents" if reports == people else f"{reports:,} of {people:,} respondents"


@options("""
    row: ROW | Question or public column for the rows.
    column: COLUMN | Question or public column for the columns.
    layer: --layer NAME | Question or public column for the layers; each of its values gets a table.
    percent: --percent | Total of the proportions: all, row or column; with --layer also layer.
    """)
def table(flags: AnalysisFlags, row: str, column: str, percent: str = "all", layer: str | None = None) -> None:
    """Estimate a table of two or three variables, and test independence.

    It crosses two questions, or a question and a public column.

    ldpopt survey table plan.json reports.csv drug evade --percent row

    ldpopt survey table plan.json reports.csv drug evade --layer sex --percent layer
    """
    from ldpopt_survey.reports.analyses import three_way_rows, two_way_rows

    plan, analysis = flags.start()
    with progress("estimating"):
        people = flags.people(plan, analysis, (row, column, *(() if layer is None else (layer,))))
        notes = notes_of(people.rows.counts, analysis)
        if layer is not None:
            three_way_table = people.three_way(row, column, layer)
            title = f"{row} by {column} by {layer}, {_respondents_of(three_way_table.joint.n, people.n)}"
            flags.show(three_way_rows(title, three_way_table, (row, column, layer), percent, flags.level, notes,
                                     people.independence_by(row, column, layer)))  # fmt: skip
            return
        two_way_table = people.two_way(row, column)
        title = f"{row} by {column}, {_respondents_of(two_way_table.joint.n, people.n)}"
        result = two_way_rows(title, two_way_table, (row, column), percent, flags.level, notes)
    flags.show(result)


@options("""
    questions: [QUESTION]... | Questions to compare. [default: all]
    by: --by COLUMN | Compare the groups of a public column.
    against: --against GROUP | Reference group of the comparison. [default: the first]
    wave: --wave PLAN REPORTS | Compare with another wave: its plan and its reports.
    """)
def compare(
    flags: AnalysisFlags, questions: list[str] | None = None, by: str | None = None, against: str | None = None,
    wave: tuple[Path, Path] | None = None,
) -> None:  # fmt: skip
    """Compare groups or waves: differences with intervals, and tests of no difference.

    ldpopt survey compare plan.json reports.csv --by region

    ldpopt survey compare plan-1.json reports-1.csv --wave plan-2.json reports-2.csv
    """
    from ldpopt_survey.reports.analyses import difference_table
    from ldpopt_survey.sample.respondents import Respondents, against_wave

    flags.output_format()
    if (by is None) == (wave is None):
        raise invalid("compare", "--by COLUMN, or --wave PLAN REPORTS", Phrase("neither" if by is None else "both"))
    if against is not None and by is None:
        raise invalid("--against", "a group of --by", Phrase(against))
    plan, analysis = flags.start()
    names = tuple(questions or ())
    with progress("estimating"):
        people = flags.people(plan, analysis, () if by is None else (by,))
        if wave is None:
            assert by is not None
            differences, tests = people.compare(by, names, against)
            title = f"Groups of {by}, {people.n:,} respondents"
            fewer = [*_notes_without_reports(people), *_notes_on_fewer(differences, people.n)]
            notes = notes_of(people.rows.counts, *fewer, analysis)
        else:
            other_plan = read_plan(wave[0])
            other_people = Respondents.read(other_plan, wave[1], flags.analysis(other_plan), (), flags.unlabelled)
            differences, tests = against_wave(people, other_people, names)
            title = f"Two waves, {people.n:,} and {other_people.n:,} respondents"
            wave_note = (
                "The waves are taken to be of different people; of the same people, whose answers agree from wave to "
                "wave, the intervals are too long."
            )
            without = _notes_without_reports(people, other_people)
            notes = notes_of(people.rows.counts, other_people.rows.counts, *without, wave_note, analysis)
    flags.show(difference_table(title, differences, tests, flags.level, notes))


def _notes_without_reports(*waves: Respondents) -> list[str]:
    """A note for each question that nobody of a wave reports on."""
    from ldpopt_survey.reports.survey import no_estimate_in_words
    from ldpopt_survey.sample.analysis import questions_without_reports

    names = (name for wave in waves for name in questions_without_reports(wave.plan, dict.fromkeys(wave.with_reports)))
    return [no_estimate_in_words(name) for name in dict.fromkeys(names)]


def _notes_on_fewer(differences: Differences, people: int) -> list[str]:
    """A note for each question whose groups do not include all respondents."""
    sizes: dict[str, dict[str, int]] = {}
    for (question, group, against), difference in differences.items():
        sizes.setdefault(question, {}).update({group: difference.first.n, against: difference.second.n})
    fewer = {question: sum(counts.values()) for question, counts in sizes.items() if sum(counts.values()) < people}
    return [f"With reports of {question}: {n:,} of {people:,} respondents." for question, n in fewer.items()]


@options("""
    question: QUESTION | Question to describe.
    quantiles: --quantile -q | Probability of a quantile, such as 0.5; may be repeated. [default: the quartiles]
    scores: --scores NUMBERS | Numeric values of the answers, in the plan's order. [default: the answers, or midpoints
      of bins]
    population: --population SIZE | Size of the population, to estimate totals as well.
    """)
def describe(
    flags: AnalysisFlags, question: str, quantiles: list[float] | None = None, scores: str | None = None,
    population: float | None = None,
) -> None:  # fmt: skip
    """Estimate the mean, quantiles and totals of a question with numeric answers.

    Answers are numbers, or bins such as 10-19 or under 20.

    ldpopt survey describe plan.json reports.csv income --quantile 0.5 --population 80000
    """
    import numpy as np

    from ldpopt_survey.estimate.intervals import Binomial
    from ldpopt_survey.estimate.numbers import bin_edges, mean, population_total, quantile
    from ldpopt_survey.plan.planned_question import non_answers
    from ldpopt_survey.reports.analyses import number_table

    plan, analysis = flags.start()
    if question in plan.answers and non_answers(plan.part(question)):
        analysis = replace(analysis, answered=True)  # a missing answer has no number
    try:
        answer_scores = None if scores is None else [float(part) for part in scores.split(",")]
    except ValueError:
        raise invalid("--scores", "numbers with commas between them", scores) from None
    with progress("estimating"):
        people = flags.people(plan, analysis, (question,))
        answer_estimate = people.estimate(question)
        estimates, notes = [], []
        is_mean = question in plan.answers and plan.part(question).measure == "mean"
        if is_mean and (answer_scores is not None or quantiles):
            raise InvalidInput(f"describe: {question!r} is a mean, so --scores and --quantile do not apply to it")
        edges = None if answer_scores is None else np.repeat(np.array(answer_scores)[:, None], 2, axis=1)
        if not is_mean and answer_scores is None:
            try:
                edges = bin_edges(answer_estimate.labels)
            except InvalidInput:  # answers without numbers still have totals
                if population is None:
                    raise
                notes.append("The answers are not numbers: --scores gives the value of each in a mean.")
        if is_mean or (edges is not None and np.isfinite(edges).all()):
            mean_estimate = answer_estimate if is_mean else mean(answer_estimate, answer_scores)
            estimates.append(("", mean_estimate))
            if population is not None:
                estimates.append(("total", population_total(mean_estimate, population)))
        elif edges is not None:
            notes.append("A bin without an end has no midpoint: --scores gives the value of each answer in a mean.")
            notes.append("A quantile in such a bin is not known further than its limits.")
        if population is not None and not is_mean:
            estimates.append(("people", population_total(answer_estimate, population)))
        points = []
        if edges is not None and (answer_scores is None or quantiles):
            points = [
                quantile(answer_estimate, q, edges, Binomial(flags.level)) for q in quantiles or (0.25, 0.5, 0.75)
            ]
        all_notes = notes_of(people.rows.counts, analysis, *notes)
    flags.show(
        number_table(
            f"{question}, {_respondents_of(answer_estimate.n, people.n)}", estimates, points, flags.level, all_notes
        )
    )


@options("""
    formula: FORMULA | Formula of questions and public columns, such as 'evade ~ age + C(region) + age:sex'.
    linear: --linear | Use least squares, for a numeric outcome.
    reference: --reference CATEGORY | Reference answer of the outcome. [default: the first]
    odds: --odds | Print odds ratios instead of coefficients.
    moments: --moments | Require the method of moments, which stays meaningful if the model is misspecified.
    likelihood: --likelihood | Use the likelihood of the reports: shorter intervals, valid if the formula is correct.
    """)
def regress(
    flags: AnalysisFlags, formula: str, linear: bool = False, reference: str | None = None, odds: bool = False,
    moments: bool = False, likelihood: bool = False,
) -> None:  # fmt: skip
    """Fit a regression where the outcome, predictors, or both are private answers.

    It is logistic for two categories, multinomial for more, and least squares for a number with --linear. Names in the
    formula are questions of the plan or public columns of the reports. It is read as in R: a:b, a*b, (a + b)^2, 0 + a,
    C(a), C(a, contr.treatment("x")), log(a), I(a**2); and bs, poly, center, scale of public columns.

    By default, moments are used, and the likelihood (with a note) where these have no finite solution. The method of
    moments estimates the limit of the same regression on true answers. With --likelihood, the output states how far
    the two differ.

    Exit code 1: no finite coefficients, since a predictor separates the answers or too few reports tell of them. The
    message names the terms, and --linear where the outcome is a number.

    ldpopt survey regress plan.json reports.csv "evade ~ age + sex" --weights w
    """
    from ldpopt_survey.regress.formula import parse_formula
    from ldpopt_survey.reports.analyses import regression_table

    flags.output_format()
    variables = parse_formula(formula)
    if linear and (reference is not None or odds):
        raise InvalidInput("--linear cannot be combined with --reference or --odds")
    if linear and (moments or likelihood):
        raise InvalidInput("--linear cannot be combined with --moments or --likelihood: least squares has one method")
    if moments and likelihood:
        raise InvalidInput("--moments cannot be combined with --likelihood")
    plan, analysis = flags.start()
    with progress("fitting"):
        people = flags.people(plan, analysis, (variables.outcome, *variables.columns))
        logit = people.logit_by_moments if moments else people.logit_by_likelihood if likelihood else people.logit
        try:
            fit = people.linear(formula) if linear else logit(formula, reference)
        except (InvalidInput, SolverError) as error:
            is_plain = not (linear or odds or moments or likelihood) and reference is None
            if not is_plain or "--linear" in str(error) or not people.fits_linear(formula):
                raise
            kind = SolverError if isinstance(error, SolverError) else InvalidInput
            raise kind(f"{error}; if {variables.outcome!r} is a quantity, pass --linear for its mean") from None
        fit_notes = people.against_moments(fit)
    flags.show(regression_table(fit, flags.level, odds, [*fit_notes, *notes_of(people.rows.counts, analysis)]))
