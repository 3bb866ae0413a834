"""Options of the survey commands: plans, counts, reports, and the sample design."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpopt.cli import claim, options, visible, write_all
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files.atomic import naming, read_text

if TYPE_CHECKING:
    from ldpopt_survey.collect.aggregate import Counts
    from ldpopt_survey.plan.plan import Plan
    from ldpopt_survey.reports.page import ResultTable
    from ldpopt_survey.sample.analysis import Analysis
    from ldpopt_survey.sample.respondents import Respondents


@options("""
    # Results
    format: --format -f FORMAT | Output format: text, csv, xlsx, html, md or json. [default: from the name of --out, or
      text]
    out: --out -o | File for the results; standard output without it.
    """)
@dataclass(frozen=True)
class ResultFlags:
    """The destination and the format of a table of results."""

    format: str | None = None
    out: Path | None = None
    force: bool = False

    def output_format(self) -> str:
        """Return the format; refuse an unsuitable one before the work begins."""
        from ldpopt_survey.reports.page import FORMATS

        if self.out is not None:
            claim([self.out], self.force)
        by_name = "" if self.out is None else self.out.suffix.removeprefix(".").lower()
        kind = self.format or {"txt": "text", "": "text", "htm": "html", "markdown": "md"}.get(by_name, by_name)
        if kind not in FORMATS:
            raise invalid("--format", f"one of {', '.join(FORMATS)}", Phrase(kind))
        if kind == "xlsx" and self.out is None:
            raise InvalidInput("--format xlsx requires a file to write to: pass --out results.xlsx")
        return kind

    def show(self, table: ResultTable) -> None:
        """Write the table, or print it."""
        content = table.in_format(self.output_format())
        if self.out is None:
            text = content.decode()
            sys.stdout.write(visible(text) if self.output_format() == "text" or sys.stdout.isatty() else text)
        else:
            write_all({self.out: content}, self.force)


SIMULATION = "SIMULATION: these reports are simulated, nobody was asked."
"""The line above all numbers from simulated reports."""


def read_plan(path: Path) -> Plan:
    """Read the plan in a file. Its guarantees are proved again."""
    from ldpopt_survey.plan.plan import Plan

    with naming(path):
        return Plan.from_json(read_text(path))


def read_counts(path: str, plan: Plan, unlabelled: bool) -> Counts:
    """Read counts from a file, or count the reports at `path`, which may be a database."""
    from ldpopt_survey.collect.aggregate import Counts, aggregate

    if not path.endswith(".json"):
        return aggregate(plan, path, unlabelled=unlabelled)
    with naming(path):
        counts = Counts.from_json(read_text(path), plan)
    if counts.unlabelled and not unlabelled:
        raise InvalidInput(f"{path}: some of the counted reports have no manifest; pass --unlabelled to accept them")
    return counts


def read_reports(path: str, plan: Plan, unlabelled: bool) -> Counts | str:
    """Read the counts in a file of counts; for reports return the path, which is read later."""
    return read_counts(path, plan, unlabelled) if path.endswith(".json") else path


def warning_of(counts: Counts) -> str:
    """Return the warning for estimates from these counts; empty for reports with manifests."""
    missing_manifest = "These reports came without a manifest: nothing shows that they are of this plan."
    return SIMULATION if counts.simulation else missing_manifest if counts.unlabelled else ""


@options("""
    # Respondents, groups and confidence
    where: --where CONDITION | Select respondents by a condition, such as 'age >= 30'; may be repeated.
    answered: --answered | Exclude the categories of missing answers and "not applicable".
    level: --level | Confidence level of the intervals, in (0, 1).
    # Design of the sample: columns of the reports (may also be in survey.toml)
    weights: --weights COLUMN | Column of sampling weights: the number of people that a respondent represents.
    strata: --strata COLUMN | Column of strata, from each of which a sample was drawn.
    clusters: --clusters COLUMN | Column of the primary sampling units (villages, schools).
    fpc: --fpc COLUMN | Column with the stratum's number of primary units in the population, or their sampling fraction.
    lonely: --lonely WORD | Treatment of a stratum with one primary unit: refuse, certainty, centre or average.
    margin: --margin COLUMN=GROUP:TOTAL,... | Known totals or proportions of a column's groups, to which weights are
      calibrated.
    bounds: --bounds LEAST,LARGEST | Smallest and largest factors by which calibration may change weights, such as
      0.5,2.
    largest_weight: --largest-weight | Largest weight: weights are trimmed to it, and the excess is spread over the
      others.
    variance: --variance METHOD | Variance method: linearization, jackknife or bootstrap.
    replications: --replications | Number of bootstrap replicates (500).
    simple: --simple | Ignore the sample design in the plan, and assume a simple random sample.
    """)
@dataclass(frozen=True)
class SampleFlags:
    """The respondents to analyze, and their sample design."""

    where: list[str] | None = None
    level: float = 0.95
    weights: str | None = None
    strata: str | None = None
    clusters: str | None = None
    fpc: str | None = None
    lonely: str | None = None
    margin: list[str] | None = None
    bounds: str | None = None
    largest_weight: float | None = None
    variance: str | None = None
    replications: int | None = None
    simple: bool = False
    answered: bool = False

    def analysis(self, plan: Plan, by: list[str] | None = None) -> Analysis:
        """Build the analysis from the flags, which replace parts of the plan's sample design."""
        from ldpopt_survey.sample.analysis import Analysis
        from ldpopt_survey.sample.spec import Condition, SampleSpec

        declared_design = SampleSpec() if self.simple or plan.sample is None else plan.sample
        sample = declared_design.changed(
            weights=self.weights, strata=self.strata, clusters=self.clusters, fpc=self.fpc, lonely=self.lonely,
            variance=self.variance, replications=self.replications,
            margins=dict(map(_margin, self.margin)) if self.margin else None,
            bounds=None if self.bounds is None else _bounds(self.bounds), largest_weight=self.largest_weight,
        )  # fmt: skip
        where = tuple(map(Condition.parse, self.where or ()))
        return Analysis(sample, tuple(by or ()), where, self.level, answered=self.answered)


@options("data: REPORTS | Reports: a CSV or Parquet file, or a folder. Counts are not enough.")
@dataclass(frozen=True, kw_only=True)
class AnalysisFlags(SampleFlags, ResultFlags):
    """The plan, the reports and the respondents of an analysis, and the destination of its table."""

    plan: Path
    data: Path
    unlabelled: bool = False

    def start(self) -> tuple[Plan, Analysis]:
        """Read the plan and build the analysis, after a check of the output format."""
        self.output_format()
        plan = read_plan(self.plan)
        return plan, self.analysis(plan)

    def people(self, plan: Plan, analysis: Analysis, columns: Sequence[str]) -> Respondents:
        """Read the respondents, with the questions and public columns of these names."""
        from ldpopt_survey.sample.respondents import Respondents

        return Respondents.read(plan, self.data, analysis, tuple(columns), self.unlabelled)


def notes_of(*sources: Any) -> tuple[str, ...]:
    """Collect warnings and settings as notes below a table, each once and none empty."""
    words = (warning_of(note) if hasattr(note, "simulation") else str(note) for note in sources)
    return tuple(dict.fromkeys(note for note in words if note))


def _bounds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise invalid("--bounds", "two numbers with a comma between them, such as 0.5,2", text) from None


def _margin(text: str) -> tuple[str, dict[str, float]]:
    column, _, totals_text = text.partition("=")
    totals: dict[str, float] = {}
    for part in totals_text.split(","):
        group, colon, total = part.rpartition(":")
        try:
            if not (colon and column.strip() and group.strip()) or group.strip() in totals:
                raise ValueError
            totals[group.strip()] = float(total)
        except ValueError:
            raise invalid("--margin", "column=group:total,group:total", text) from None
    return column.strip(), totals
