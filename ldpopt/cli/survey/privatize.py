"""``ldpopt survey privatize``: from answers to reports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.cli.console import output, progress
from ldpopt.cli.survey.files import PlanArgument, read_plan

if TYPE_CHECKING:
    from ldpopt.survey.collect.randomness import Randomness
    from ldpopt.survey.collect.runner import Runner


def privatize(
    plan: PlanArgument,
    answers: Annotated[
        list[Path],
        typer.Argument(metavar="ANSWERS...", help="Answers: CSV or Parquet files, or a folder.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Reports: *.csv, *.parquet, or a folder.", show_default=False)
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            help="Survey key file (mode 0600), needed if the plan names respondents. A retry with the same key "
            "repeats every report. If an answer changes inside a round, the new report can show that it changed.",
        ),
    ] = None,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make the key file (once for each survey).")] = False,
    simulate: Annotated[
        int | None, typer.Option(metavar="SEED", help="Simulate from this seed; such reports protect nobody.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of threads, or of Dask workers with --dask.")] = 1,
    dask: Annotated[bool, typer.Option("--dask", help="Run on a local Dask cluster.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="Run on the Dask cluster at tcp://...")] = None,
) -> None:
    """Privatize answers in files. An interrupted run continues when it is repeated, and ends with the same bytes."""
    from ldpopt.extras import need
    from ldpopt.survey.collect.privatize import privatize as run
    from ldpopt.survey.collect.runner import Threads

    made = read_plan(plan)
    if dask or scheduler:
        need("distributed")  # checked before a key is made
    with ExitStack() as stack:
        randomness = _randomness(key, new_key, simulate)
        if key is not None and new_key:
            stack.enter_context(_forgotten_after_a_refusal(key, out))
        runner: Runner = Threads(workers)
        if dask or scheduler:
            from ldpopt.survey.collect.runner import dask_runner

            runner = stack.enter_context(dask_runner(scheduler, workers))
        step = stack.enter_context(progress("privatizing"))
        tally = run(made, list(answers), out, randomness, runner, step)
    console = output()
    console.print(f"{tally.rows:,} reports in {out}; {tally.duplicates:,} duplicate rows left out", markup=False)
    for question in made.questions:
        unknown, missing = tally.unknown.get(question.name, 0), tally.missing.get(question.name, 0)
        if unknown or missing:
            console.print(
                f"  {question.name}: {unknown:,} unlisted and {missing:,} missing answers mapped", markup=False
            )
    console.print("  These counts are of raw answers: they are for you, not for publication.", markup=False)


@contextmanager
def _forgotten_after_a_refusal(key: Path, out: Path) -> Iterator[None]:
    """Remove the new key of a run that is refused, since no report was made with it."""
    from ldpopt.errors import InvalidInput
    from ldpopt.survey.collect.workfolder import work_of

    try:
        yield
    except InvalidInput:
        if not any(os.path.lexists(path) for path in (out, work_of(out))):
            key.unlink(missing_ok=True)
        raise


def _randomness(key: Path | None, new_key: bool, simulate: int | None) -> Randomness | None:
    import numpy as np

    from ldpopt.errors import InvalidInput
    from ldpopt.survey.collect.randomness import Memoised, Simulated
    from ldpopt.survey.collect.words import create_key

    if simulate is not None:
        if key is not None:
            raise InvalidInput("--key and --simulate: expected at most one, got both")
        return Simulated(np.random.default_rng(simulate))
    if key is None:
        return None
    if new_key:
        create_key(key)
    return Memoised(key)
