"""Arguments of the survey commands: plans, counts, reports, and how the sample was drawn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldpopt.cli import claim, options, visible, write_all
from ldpopt.errors import Phrase, invalid
from ldpopt.files.atomic import naming, read_text

if TYPE_CHECKING:
    from ldpopt_survey.collect.aggregate import Counts
    from ldpopt_survey.plan.plan import Plan
    from ldpopt_survey.reports.page import ResultTable
    from ldpopt_survey.sample.analysis import Analysis
    from ldpopt_survey.sample.respondents import Respondents


@options("""
    # Results
    format: --format -f FORMAT | text, csv, xlsx, html, md or json; by default from the name of --out, or text.
    out: --out -o | Write to this file instead of standard output.
    """)
@dataclass(frozen=True)
class ResultFlags:
    """Where a table of results goes, and in which format."""

    format: str | None = None
    out: Path | None = None
    force: bool = False

    def chosen(self) -> str:
        """The format. An unknown one, or one that cannot be printed, is refused before the work begins."""
        from ldpopt_survey.reports.page import FORMATS

        if self.out is not None:
            claim([self.out], self.force)
        by_name = "" if self.out is None else self.out.suffix.removeprefix(".").lower()
        kind = self.format or {"txt": "text", "": "text", "htm": "html", "markdown": "md"}.get(by_name, by_name)
        if kind not in FORMATS:
            raise invalid("--format", f"one of {', '.join(FORMATS)}", Phrase(kind))
        if kind == "xlsx" and self.out is None:
            raise invalid("--format xlsx", "a file to write to (--out results.xlsx)", Phrase("none"))
        return kind

    def show(self, table: ResultTable) -> None:
        """Write the table, or print it."""
        content = table.in_format(self.chosen())
        if self.out is None:
            text = content.decode()
            sys.stdout.write(visible(text) if self.chosen() == "text" or sys.stdout.isatty() else text)
        else:
            write_all({self.out: content}, self.force)


SIMULATION = "SIMULATION: these reports are simulated, nobody was asked."
"""The line above all numbers from simulated reports."""


def read_plan(path: Path) -> Plan:
    """The plan in a file. Its guarantees are proved again."""
    from ldpopt_survey.plan.plan import Plan

    with naming(path):
        return Plan.from_json(read_text(path))


def read_counts(path: str, plan: Plan, unlabelled: bool) -> Counts:
    """The counts in a file, or of the reports at `path`, which may be a database."""
    from ldpopt_survey.collect.aggregate import Counts, aggregate

    if not path.endswith(".json"):
        return aggregate(plan, path, unlabelled=unlabelled)
    with naming(path):
        counts = Counts.from_json(read_text(path), plan)
    if counts.unlabelled and not unlabelled:
        expected = "counts of reports with manifests (--unlabelled takes others, too)"
        raise invalid("counts", expected, Phrase("others"), path)
    return counts


def read_reports(path: str, plan: Plan, unlabelled: bool) -> Counts | str:
    """The counts in a file of counts; for reports the path itself, which is read later."""
    return read_counts(path, plan, unlabelled) if path.endswith(".json") else path


def spoken(counts: Counts) -> str:
    """The warning above all numbers from these counts; empty for real reports with manifests."""
    without = "These reports came without a manifest: nothing shows that they are of this plan."
    return SIMULATION if counts.simulation else without if counts.unlabelled else ""


@options("""
    # Respondents, groups and confidence
    where: --where CONDITION | Only respondents with, say, 'age >= 30'; may be repeated.
    answered: --answered | Only those who answered: without the categories of missing answers and "not applicable".
    level: --level | Confidence of the intervals, in (0, 1).
    # Design of the sample: columns of the reports (may also be in survey.toml)
    weights: --weights COLUMN | How many people a respondent stands for.
    strata: --strata COLUMN | Parts of the population, from each of which a sample was drawn.
    clusters: --clusters COLUMN | Primary units (villages, schools) that were drawn.
    fpc: --fpc COLUMN | Number of primary units in the stratum's population, or the share of them that was drawn.
    lonely: --lonely WORD | How to treat a stratum with one primary unit: refuse, certainty, centre or average.
    margin: --margin COLUMN=GROUP:TOTAL,... | Known totals or shares of a column's groups. Weights are changed to meet
      them.
    bounds: --bounds LEAST,LARGEST | By what factors weights may be changed to meet known totals, such as 0.5,2.
    largest_weight: --largest-weight | Trim weights above this one; what is taken off is spread over the others.
    variance: --variance METHOD | Method of variance: linearization, jackknife or bootstrap.
    replications: --replications | Number of bootstrap replicates (500).
    simple: --simple | Ignore the design in the plan: take a simple sample.
    """)
@dataclass(frozen=True)
class SampleFlags:
    """Whose answers are analysed, and how they were drawn."""

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
        """The analysis that the flags ask for. They replace parts of the design that the plan declares."""
        from ldpopt_survey.sample.analysis import Analysis
        from ldpopt_survey.sample.spec import Condition, SampleSpec

        declared = SampleSpec() if self.simple or plan.sample is None else plan.sample
        changed = declared.changed(
            weights=self.weights, strata=self.strata, clusters=self.clusters, fpc=self.fpc, lonely=self.lonely,
            variance=self.variance, replications=self.replications,
            margins=dict(map(_margin, self.margin)) if self.margin else None,
            bounds=None if self.bounds is None else _bounds(self.bounds), largest_weight=self.largest_weight,
        )  # fmt: skip
        where = tuple(map(Condition.parse, self.where or ()))
        return Analysis(changed, tuple(by or ()), where, self.level, answered=self.answered)


@options("data: REPORTS | Reports: a CSV or Parquet file, or a folder. Counts are not enough.")
@dataclass(frozen=True, kw_only=True)
class Analysing(SampleFlags, ResultFlags):
    """The plan and the reports that a command analyses, whose answers, and where its table goes."""

    plan: Path
    data: Path
    unlabelled: bool = False

    def begun(self) -> tuple[Plan, Analysis]:
        """The plan and the analysis, after the format was found to be one that can be given."""
        self.chosen()
        plan = read_plan(self.plan)
        return plan, self.analysis(plan)

    def people(self, plan: Plan, asked: Analysis, columns: Sequence[str]) -> Respondents:
        """The respondents, with the questions and public columns of these names."""
        from ldpopt_survey.sample.respondents import Respondents

        return Respondents.read(plan, self.data, asked, tuple(columns), self.unlabelled)


def notes_of(*said: Any) -> tuple[str, ...]:
    """Warnings and settings as notes below a table, each once and none empty."""
    words = (spoken(note) if hasattr(note, "simulation") else str(note) for note in said)
    return tuple(dict.fromkeys(note for note in words if note))


def _bounds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise invalid("--bounds", "two numbers with a comma between them, such as 0.5,2", text) from None


def _margin(text: str) -> tuple[str, dict[str, float]]:
    column, _, rest = text.partition("=")
    totals: dict[str, float] = {}
    for part in rest.split(","):
        group, colon, total = part.rpartition(":")
        try:
            if not (colon and column.strip() and group.strip()) or group.strip() in totals:
                raise ValueError
            totals[group.strip()] = float(total)
        except ValueError:
            raise invalid("--margin", "column=group:total,group:total", text) from None
    return column.strip(), totals
