"""A planned survey in Python: answers in data frames to reports, and reports or their counts to estimates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.results import ByValue
from ldpopt_survey.collect.aggregate import Counts, ReportRows, aggregate, read_rows
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.manifest import manifest_in_schema
from ldpopt_survey.collect.randomness import Randomness
from ldpopt_survey.estimate.counts import CountTable, positions, report_column
from ldpopt_survey.estimate.counts import column as as_column
from ldpopt_survey.estimate.estimate import Estimate, estimate
from ldpopt_survey.estimate.groups import estimate_waves
from ldpopt_survey.estimate.linear import Estimator
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.survey import plan_survey
from ldpopt_survey.sample.analysis import (
    Analysis,
    Findings,
    Selection,
    counts_have_reports,
    estimate_counts,
    estimate_question,
    has_own_report,
    restrict_to_answered,
    sources_for,
)
from ldpopt_survey.sample.spec import SampleSpec

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Survey(ByValue):
    """A planned survey in Python: privatize data frames, count reports, estimate.

    >>> survey = Survey.from_toml('''
    ... [survey]
    ... name = "demo"
    ... [budget]
    ... epsilon = 2.0
    ... [[questions]]
    ... name = "vote"
    ... answers = ["no", "yes"]
    ... ''')
    >>> survey.plan.question("vote").reports
    ('0', '1')
    """

    plan: Plan

    @classmethod
    def from_toml(cls, content: str | bytes, n: int | None = None) -> Survey:
        """Plan the survey that TOML text describes."""
        return cls(plan_survey(SurveySpec.from_toml(content), n).plan)

    @classmethod
    def from_file(cls, path: str | Path) -> Survey:
        """Read the survey of a plan file."""
        return cls(Plan.from_json(Path(path).read_bytes()))

    def privatize(self, frame: Any, randomness: Randomness | None = None) -> pa.Table:
        """Return a pyarrow table of reports for a pandas, Polars or pyarrow frame of answers."""
        return privatize_frame(self.plan, frame, randomness)[0]

    def estimates(self, counts: Counts, anytime: bool = False) -> dict[str, Estimate]:
        """Estimate every question that has reports, by name, from counts of the plan's reports.

        `InvalidInput` for counts of another plan, and if no question has a report.

        anytime : as for `estimate`.
        """
        if counts.plan != self.plan.checksum:
            raise InvalidInput(f"counts: expected those of the plan {self.plan.name!r}, got those of another plan")
        names = [name for name in self.plan.answers if counts_have_reports(self.plan, name, counts)]
        # Without any report, the estimate of the first question raises `InvalidInput`.
        return {name: estimate_counts(self.plan, name, counts, None, anytime) for name in names or self.plan.answers}

    def findings(
        self, reports: Counts | str | Path | list[Path], analysis: Analysis | None = None, unlabelled: bool = False
    ) -> tuple[dict[str, Findings], Counts]:
        """Compute the `Findings` (estimates with intervals) of every question that has reports, and the counts.

        - `reports` : files that `privatize` wrote, or counts, which suffice if the analysis needs no public column.
        - `analysis` : groups, conditions and the design of the sample; by default the design that the plan declares.
        - `unlabelled` : as in `aggregate`.

        Raises `InvalidInput` for counts if columns are needed, and if no question has a report.
        """
        analysis_used = Analysis(self.plan.sample or SampleSpec()) if analysis is None else analysis
        if isinstance(reports, Counts):
            if not analysis_used.of_counts:
                expected = (
                    f"reports, whose public columns {', '.join(analysis_used.columns)} are needed (--simple leaves the "
                )
                raise invalid("estimates", expected + "design of the plan out)", Phrase("counts"))
            estimates = self.estimates(reports, analysis_used.anytime)
            if analysis_used.answered:
                estimates = {
                    name: restrict_to_answered(self.plan, name, estimate) for name, estimate in estimates.items()
                }
            return {name: Findings(estimate, {}) for name, estimate in estimates.items()}, reports
        if analysis_used.of_counts:
            return self.findings(aggregate(self.plan, reports, unlabelled=unlabelled), analysis_used)
        rows = read_rows(self.plan, reports, analysis_used.columns, unlabelled)
        return analysis_used.estimates(self.plan, rows), rows.counts

    def with_wave(self, counts: Counts, earlier: Survey, earlier_counts: Counts) -> dict[str, Estimate]:
        """Estimate every question that has reports from two waves of different respondents.

        Each wave has its own plan. A question with reports in one wave alone is estimated from this wave.

        `InvalidInput` unless the earlier plan asked the questions with the same categories, in another round, and each
        wave has reports.
        """
        if earlier.plan.round == self.plan.round:
            raise invalid("waves", "plans of different rounds", Phrase(f"round {self.plan.round} twice"))
        both_estimates = earlier.estimates(earlier_counts), self.estimates(counts)
        waves = ((earlier.plan, earlier_counts), (self.plan, counts))
        estimates = {}
        for name in self.plan.answers:
            if name not in earlier.plan.answers:
                raise invalid("waves", f"the question {name!r} in both plans", sorted(earlier.plan.answers))
            measured, earlier_measured = (plan.part(name).measured for plan in (self.plan, earlier.plan))
            if measured != earlier_measured:
                raise invalid("waves", f"{name!r} with the same answers {measured[:8]}", earlier_measured[:8])
            wave_results = [wave_estimates[name] for wave_estimates in both_estimates if name in wave_estimates]
            if all(has_own_report(plan, name) for plan, _ in waves) and wave_results:
                estimates[name] = estimate_waves([(wave.table, wave.channel) for wave in wave_results])
            elif wave_results:
                sources = [source for plan, tables in waves for source in sources_for(plan, (name,), tables)]
                estimates[name] = estimate_question(self.plan, name, sources, from_counts=True)
        return estimates

    def estimate(
        self, question: str, reports: Any, estimator: Estimator | None = None, anytime: bool = False
    ) -> Estimate:
        """Estimate a question from its counts, or from reports: a column, a frame, or a path.

        A frame may be the result of `privatize`, or its file read by pandas, Polars or pyarrow. A path leads to files
        of reports, which `aggregate` checks and counts. Reports whose manifest names another plan are `InvalidInput`; a
        frame without a manifest, such as one of pandas, is accepted without this check. If the plan declares a sample
        design, files and frames are analyzed under it, and must have its columns. Counts and single columns are treated
        as a simple random sample.

        anytime : as for the function `estimate`.
        """
        sample = self.plan.sample or SampleSpec()
        if (schema := getattr(reports, "schema", None)) is not None and hasattr(schema, "metadata"):
            manifest = manifest_in_schema(schema, "the table")
            if manifest is not None:
                manifest.require(self.plan, "the table")
        if isinstance(reports, (str, Path)) and sample.trivial:
            return estimate_counts(self.plan, question, aggregate(self.plan, reports), estimator, anytime)
        if isinstance(reports, (str, Path)):
            rows = read_rows(self.plan, reports, sample.columns)
        elif hasattr(reports, "column_names") or hasattr(reports, "columns"):
            rows = self._rows(question, reports, sample)
        else:
            planned = self.plan.question(question)
            if planned.measure == "mean":
                counts = CountTable.from_reports(as_column(reports, question), planned.report_channel).totals
                return estimate_counts(self.plan, question, {question: counts}, estimator, anytime)
            return estimate(reports, planned.report_channel, estimator, anytime)
        return Selection(self.plan, rows, Analysis(sample, anytime=anytime)).estimate(question, None, estimator)

    def _rows(self, question: str, frame: Any, sample: SampleSpec) -> ReportRows:
        """Return the reports of a frame that are about a question, with the columns of the sample."""
        questions = self.plan.answers.get(question) or (self.plan.question(question),)
        reports = {planned.name: _positions(frame, planned) for planned in questions}
        names = list(getattr(frame, "column_names", None) or frame.columns)
        columns = {name: as_column(frame[name], name) for name in sample.columns if name in names}
        return ReportRows(Counts(self.plan.checksum, len(reports[questions[0].name]), {}), reports, columns)


def _positions(frame: Any, question: PlannedQuestion) -> npt.NDArray[np.intp]:
    """Return the reports (n,) of a question as positions among its outputs; -1 for empty ones, if allowed."""
    column, outputs = report_column(frame, question), question.report_channel.outputs
    for empty, drop in (("isna", "dropna"), ("is_null", "drop_nulls"), ("is_null", "drop_null")):
        if question.may_be_empty and hasattr(column, drop):  # of pandas, Polars or arrow
            is_answered = ~np.asarray(getattr(column, empty)(), dtype=bool)
            positions_of_rows = np.full(len(is_answered), -1, dtype=np.intp)
            positions_of_rows[is_answered] = positions(getattr(column, drop)(), outputs)
            return positions_of_rows
    return positions(column, outputs)
