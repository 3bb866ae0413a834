"""Coverage of 95 % intervals for data that no estimator was designed for.

    python experiments/surveys/coverage/unforeseen.py [surveys] [--brief]

Equal answers to two questions, answers that nobody gives, one village with half of the sample, weights that are zero
for a whole group, one respondent in each stratum, missing reports, groups of three respondents. Writes unforeseen.csv
beside this file, or with --brief nothing (60 surveys of each kind, some seconds). Every survey is drawn anew:
respondents, answers and reports. A row says how often an interval holds the truth, which is the law that makes the
answers, over all surveys and quantities; how often the estimate is refused; the width of the intervals; and how many of
the quantities the package marks as resting on few reports.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import CountTable, LonelyUnit, SampleDesign, SampledReports, difference, estimate, two_way
from ldpopt_survey.estimate.groups import Source, estimate_booklets

SEED = 20261129
Q2, Q3, STRONG = randomized_response(2, 1.0), randomized_response(3, 1.0), randomized_response(3, 4.0)
LAW = np.array([0.5, 0.3, 0.2])
NOBODY = np.array([0.7, 0.3, 0.0])


@dataclass(frozen=True)
class Told:
    """Intervals of one survey: ends (r,), whether they hold the truth, and which ones are marked as of few reports."""

    width: np.ndarray
    hit: np.ndarray
    marked: np.ndarray


def told(made, truth) -> Told:
    limits = made.intervals()
    estimates = [made.first, made.second] if hasattr(made, "first") else [made]
    marked = [[label in each.few_report_labels for label in each.labels] for each in estimates]
    return Told(limits.width, (limits.lower <= truth) & (truth <= limits.upper), np.any(marked, axis=0))


Survey = Callable[[np.random.Generator], Told]


def counts_of(reports, channel):
    return CountTable.from_counts(np.bincount(reports, minlength=channel.shape[1]), channel.outputs)


def answers(rng, law, n):
    return rng.choice(len(law), n, p=law)


def varying(rng, law, units, spread):
    """Laws (units, k) around `law`; the larger the spread, the more they differ."""
    return rng.dirichlet(np.maximum(law, 1e-12) / spread, size=units) if spread else np.tile(law, (units, 1))


def answers_in(rng, laws, unit):
    return (rng.random(len(unit))[:, None] > laws[unit].cumsum(axis=1)).sum(axis=1).clip(0, laws.shape[1] - 1)


def equal_answers(n: int, units: int = 0, channel=Q3) -> Survey:
    """The table of two questions that everybody answers alike, so that most cells are empty."""

    def survey(rng):
        unit = np.arange(n) % max(units, 1)
        answer = answers_in(rng, varying(rng, LAW, max(units, 1), 0.05 if units else 0), unit)
        labels = [np.array(channel.outputs)[channel.sample_indices(answer, rng)] for _ in range(2)]
        sample = SampleDesign(clusters=unit) if units else None
        return told(two_way(*labels, channel, channel, sample=sample).joint, np.diag(LAW).ravel())

    return survey


def nobody(n: int, channel=Q3, units: int = 0, weights: bool = False) -> Survey:
    """One question with an answer that nobody gives."""

    def survey(rng):
        unit = np.arange(n) % max(units, 1)
        reports = channel.sample_indices(
            answers_in(rng, varying(rng, NOBODY, max(units, 1), 0.05 * bool(units)), unit), rng
        )
        if not units and not weights:
            return told(estimate(counts_of(reports, channel), channel), NOBODY)
        design = SampleDesign(
            weights=np.exp(0.5 * rng.normal(size=n)) if weights else None, clusters=unit if units else None
        )
        return told(estimate(SampledReports(reports, channel, design), channel), NOBODY)

    return survey


def nobody_in_booklets(n: int) -> Survey:
    """The same question in two booklets with other channels."""

    def survey(rng):
        answer, first = answers(rng, NOBODY, n), rng.permutation(n) < n // 2
        reports = np.where(first, Q3.sample_indices(answer, rng), STRONG.sample_indices(answer, rng))
        sources = [
            Source(name, channel, np.where(part, reports, -1), np.eye(3), np.full(3, 1 / 3))
            for name, channel, part in (("a", Q3, first), ("b", STRONG, ~first))
        ]
        return told(estimate_booklets(sources, (0, 1, 2)), NOBODY)

    return survey


def half_in_one_village(spread: float, channel=Q3) -> Survey:
    """Twenty-nine villages of 20 respondents, and one with as many as all of them."""

    def survey(rng):
        village = np.concatenate([np.repeat(np.arange(1, 30), 20), np.zeros(580, dtype=int)])
        reports = channel.sample_indices(answers_in(rng, varying(rng, LAW, 30, spread), village), rng)
        return told(estimate(SampledReports(reports, channel, SampleDesign(clusters=village)), channel), LAW)

    return survey


def zero_weights_of_a_group(what: str) -> Survey:
    """Three groups, of which one has no weight and other answers: all together, the others, and the group itself."""

    def survey(rng):
        group = np.arange(300) % 3
        answer = np.where(group == 2, answers(rng, LAW[::-1], 300), answers(rng, LAW, 300))
        design = SampleDesign(np.where(group == 2, 0.0, rng.uniform(0.5, 2, 300)), clusters=np.arange(300) // 10)
        whole = SampledReports(Q3.sample_indices(answer, rng), Q3, design)
        if what == "the others":
            return told(difference(*(estimate(whole.where(group == g), Q3) for g in (0, 1))), np.zeros(3))
        return told(estimate(whole.where(group == 2) if what == "the group" else whole, Q3), LAW)

    return survey


def one_in_each_stratum(lonely: LonelyUnit, apart: float) -> Survey:
    """A hundred strata of one respondent each, whose laws differ between strata."""

    def survey(rng):
        laws = np.stack([(1 - apart * s) * LAW + apart * s * LAW[::-1] for s in np.linspace(0, 1, 100)])
        answer = answers_in(rng, laws, np.arange(100))
        design = SampleDesign(strata=np.arange(100), lonely=lonely)
        truth = np.bincount(answer, minlength=3) / 100 if lonely is LonelyUnit.CERTAINTY else laws.mean(axis=0)
        return told(estimate(SampledReports(Q3.sample_indices(answer, rng), Q3, design), Q3), truth)

    return survey


def missing_reports(share: float, units: int) -> Survey:
    """A share of the respondents have no report of the second question; the table is of the others."""

    def survey(rng):
        n = 600
        unit = np.arange(n) % units
        law = np.outer(LAW, [0.6, 0.4]).ravel()
        answer = answers_in(rng, varying(rng, law, units, 0.03), unit)
        labels = [
            np.array(channel.outputs)[channel.sample_indices(part, rng)]
            for channel, part in ((Q3, answer // 2), (Q2, answer % 2))
        ]
        present = rng.random(n) >= share
        return told(two_way(*labels, Q3, Q2, sample=SampleDesign(clusters=unit), in_group=present).joint, law)

    return survey


def small_group(size: int, channel=Q3, law=LAW, units: int = 0, versus: bool = False, weights: bool = False) -> Survey:
    """A group of a few respondents, alone or compared with the others of 300."""

    def survey(rng):
        inside = np.arange(300) < size
        reports = channel.sample_indices(answers(rng, law, 300), rng)
        if not units and not weights:
            parts = [estimate(counts_of(reports[part], channel), channel) for part in (inside, ~inside)]
        else:
            unit = np.arange(300) % units if units else None
            design = SampleDesign(rng.uniform(0.5, 2, 300) if weights else None, clusters=unit, size=300)
            parts = [
                estimate(SampledReports(reports, channel, design).where(part), channel) for part in (inside, ~inside)
            ]
        return told(difference(*parts), np.zeros(3)) if versus else told(parts[0], law)

    return survey


def kinds() -> dict[str, Survey]:
    """All kinds of surveys by name."""
    made: dict[str, Survey] = {
        "equal answers, 200": equal_answers(200),
        "equal answers, 2000": equal_answers(2000),
        "equal answers, epsilon 8, 200": equal_answers(200, channel=STRONG),
        "equal answers, 600 in 60 villages": equal_answers(600, 60),
        "equal answers, epsilon 8, 600 in 60 villages": equal_answers(600, 60, STRONG),
        "an answer of nobody, 50": nobody(50),
        "an answer of nobody, 1000": nobody(1000),
        "an answer of nobody, epsilon 4, 50": nobody(50, STRONG),
        "an answer of nobody, epsilon 4, 1000": nobody(1000, STRONG),
        "an answer of nobody, 600 in 30 villages": nobody(600, units=30),
        "an answer of nobody, epsilon 4, 600 in 30 villages": nobody(600, STRONG, 30),
        "an answer of nobody, epsilon 4, 300 of lognormal weights": nobody(300, STRONG, weights=True),
        "an answer of nobody, two booklets, 200": nobody_in_booklets(200),
        "half in one village, alike": half_in_one_village(0),
        "half in one village, villages that differ": half_in_one_village(0.05),
        "half in one village, epsilon 4, villages that differ": half_in_one_village(0.05, STRONG),
    }
    made |= {
        f"a group of zero weights: {what}": zero_weights_of_a_group(what) for what in ("all", "the others", "the group")
    }
    for lonely in (LonelyUnit.REFUSE, LonelyUnit.CERTAINTY, LonelyUnit.CENTRED, LonelyUnit.AVERAGE):
        made[f"one respondent a stratum, strata that differ: {lonely.value}"] = one_in_each_stratum(lonely, 1.0)
    for share in (0.3, 0.9):
        made[f"{share:.0%} of reports are missing, 30 villages"] = missing_reports(share, 30)
    for size in (3, 5, 10):
        made[f"a group of {size}"] = small_group(size)
        made[f"a group of {size}, epsilon 4"] = small_group(size, STRONG)
        made[f"a group of {size}, epsilon 4, an answer of nobody"] = small_group(size, STRONG, NOBODY)
        made[f"a group of {size}, weights"] = small_group(size, weights=True)
        made[f"a group of {size}, 30 villages"] = small_group(size, units=30)
        made[f"a group of {size} against 297"] = small_group(size, versus=True)
        made[f"a group of {size} against 297, 30 villages, epsilon 4"] = small_group(
            size, STRONG, units=30, versus=True
        )
    return made


def covered(survey: Survey, surveys: int, name: str) -> dict[str, str]:
    """A row of the table."""
    rng = np.random.default_rng([SEED, *name.encode()])
    rows, refused = [], 0
    for _ in range(surveys):
        try:
            rows.append(survey(rng))
        except InvalidInput:
            refused += 1
    row = {"surveys": str(surveys), "kind": name, "refused": str(refused)}
    if rows:
        each = np.mean([one.hit for one in rows], axis=0)
        row |= {"coverage %": f"{100 * each.mean():.1f}", "least %": f"{100 * each.min():.1f}",
                "most %": f"{100 * each.max():.1f}", "width": f"{np.mean([one.width for one in rows]):.3f}",
                "of few reports %": f"{100 * np.mean([one.marked for one in rows]):.0f}"}  # fmt: skip
    return row


FIELDS = ("surveys", "kind", "refused", "coverage %", "least %", "most %", "width", "of few reports %")


def main() -> None:
    """Simulate every kind, print the rows, and write them down unless the run is brief."""
    brief = "--brief" in sys.argv
    counts = [int(word) for word in sys.argv[1:] if word.isdigit()]
    surveys = counts[0] if counts else 60 if brief else 500
    rows = []
    for name, survey in kinds().items():
        rows.append(covered(survey, surveys, name))
        print(", ".join(rows[-1].values()), flush=True)
    if not brief:
        with (Path(__file__).parent / "unforeseen.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
