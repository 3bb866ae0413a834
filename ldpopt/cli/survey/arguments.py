"""Arguments of the survey commands: plans, counts, reports, and how the sample was drawn."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.plan.plan import Plan
    from ldpopt.survey.sample.analysis import Analysis


SIMULATION = "SIMULATION: these reports are simulated, nobody was asked."
"""The line above all numbers from simulated reports."""

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (plan.json).", show_default=False)]
DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="REPORTS",
        help="Reports (a CSV or Parquet file, a folder, or a collector's database), or counts (*.json).",
        show_default=False,
    ),
]

ReportsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="REPORTS",
        help="Reports: a CSV or Parquet file, or a folder. Counts are not enough.",
        show_default=False,
    ),
]


def read_plan(path: Path) -> Plan:
    """The plan in a file. Its guarantees are proved again."""
    from ldpopt.files import read_text
    from ldpopt.survey.plan.plan import Plan

    return Plan.from_json(read_text(path))


UnlabelledOption = Annotated[
    bool,
    typer.Option(
        "--unlabelled",
        help="Also accept reports without a manifest, written by hand or by another program. Nothing then shows "
        "whether they are reports of this plan.",
    ),
]


def read_counts(path: str, plan: Plan, unlabelled: bool) -> Counts:
    """The counts in a file, or of the reports at `path`, which may be a database."""
    from ldpopt.errors import Phrase, invalid
    from ldpopt.files import read_text
    from ldpopt.survey.collect.aggregate import Counts, aggregate

    if not path.endswith(".json"):
        return aggregate(plan, path, unlabelled=unlabelled)
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
    if counts.simulation:
        return SIMULATION
    return (
        "These reports came without a manifest: nothing shows that they are of this plan." if counts.unlabelled else ""
    )


_SAMPLE, _WHOM = (
    "Design of the sample: columns of the reports (may also be in survey.toml)",
    "Respondents, groups and confidence",
)


def _column(flag: str, help: str) -> typer.models.OptionInfo:
    made: typer.models.OptionInfo = typer.Option(flag, metavar="COLUMN", help=help, rich_help_panel=_SAMPLE)
    return made


WeightsOption = Annotated[str | None, _column("--weights", "How many people a respondent stands for.")]
StrataOption = Annotated[
    str | None, _column("--strata", "Parts of the population, from each of which a sample was drawn.")
]
ClustersOption = Annotated[str | None, _column("--clusters", "Primary units (villages, schools) that were drawn.")]
FpcOption = Annotated[
    str | None,
    _column("--fpc", "Number of primary units in the stratum's population, or the share of them that was drawn."),
]
LonelyOption = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="How to treat a stratum with one primary unit: refuse, certainty, centre or average.",
        rich_help_panel=_SAMPLE,
    ),
]
VarianceOption = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD", help="Method of variance: linearization, jackknife or bootstrap.", rich_help_panel=_SAMPLE
    ),
]
ReplicationsOption = Annotated[
    int | None, typer.Option(help="Number of bootstrap replicates (500).", rich_help_panel=_SAMPLE, show_default=False)
]
MarginOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=GROUP:TOTAL,...",
        help="Known totals or shares of a column's groups. Weights are changed to meet them.",
        rich_help_panel=_SAMPLE,
    ),
]
SimpleOption = Annotated[
    bool, typer.Option("--simple", help="Ignore the design in the plan: take a simple sample.", rich_help_panel=_SAMPLE)
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Estimates for every group of a public column.", rich_help_panel=_WHOM),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION", help="Only respondents with, say, 'age >= 30'; may be repeated.", rich_help_panel=_WHOM
    ),
]
LevelOption = Annotated[float, typer.Option(help="Confidence of the intervals, in (0, 1).", rich_help_panel=_WHOM)]


class SampleFlags(NamedTuple):
    """The values of the flags, in the order in which the help lists them."""

    where: WhereOption = None
    level: LevelOption = 0.95
    weights: WeightsOption = None
    strata: StrataOption = None
    clusters: ClustersOption = None
    fpc: FpcOption = None
    lonely: LonelyOption = None
    margin: MarginOption = None
    variance: VarianceOption = None
    replications: ReplicationsOption = None
    simple: SimpleOption = False

    def analysis(self, plan: Plan, by: list[str] | None = None) -> Analysis:
        """The analysis that the flags ask for. They replace parts of the design that the plan declares."""
        from ldpopt.survey.sample.analysis import Analysis, Condition
        from ldpopt.survey.sample.spec import SampleSpec

        declared = SampleSpec() if self.simple or plan.sample is None else plan.sample
        changed = declared.changed(
            weights=self.weights, strata=self.strata, clusters=self.clusters, fpc=self.fpc, lonely=self.lonely,
            variance=self.variance, replications=self.replications,
            margins=dict(map(_margin, self.margin)) if self.margin else None,
        )  # fmt: skip
        return Analysis(changed, tuple(by or ()), tuple(map(Condition.parse, self.where or ())), self.level)


NO_FLAGS = SampleFlags()


def with_sample_flags(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with the flags of `SampleFlags` instead of its parameter `sample`, for the program to call."""
    hints = get_type_hints(SampleFlags, include_extras=True)
    flags = [one.replace(annotation=hints[one.name]) for one in inspect.signature(SampleFlags).parameters.values()]
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def called(**given: Any) -> None:
        sample = SampleFlags(**{flag.name: given.pop(flag.name) for flag in flags})
        command(**given, sample=sample)

    shown = [one for mine in own.parameters.values() for one in (flags if mine.name == "sample" else [mine])]
    vars(called)["__signature__"] = own.replace(parameters=shown)
    called.__annotations__ = {one.name: one.annotation for one in shown}
    return called


def _margin(text: str) -> tuple[str, dict[str, float]]:
    from ldpopt.errors import invalid

    column, _, rest = text.partition("=")
    made: dict[str, float] = {}
    for part in rest.split(","):
        group, colon, total = part.rpartition(":")
        try:
            if not (colon and column.strip() and group.strip()) or group.strip() in made:
                raise ValueError
            made[group.strip()] = float(total)
        except ValueError:
            raise invalid("--margin", "column=group:total,group:total", text) from None
    return column.strip(), made
