"""``ldpopt survey kit``: from a plan to a questionnaire that draws the reports on the respondent's own device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpopt.cli.console import output
from ldpopt.cli.hypotheses import ForceOption
from ldpopt.cli.outputs import claim_folder, write_folder
from ldpopt.cli.survey.files import PlanArgument, read_plan


def kit(
    plan: PlanArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the questionnaire.")] = Path("kit"),
    collector: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where reports are posted, if not beside the page: https://..., without 'submissions'."
        ),
    ] = "./",
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Texts of the survey in one language (JSON); may be repeated.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Make a questionnaire that any web server can host. It sends only reports, never answers.

    ldpopt survey kit plan.json --out kit
    """
    from ldpopt.files import read_text
    from ldpopt.survey.kit.folder import kit_files

    claim_folder(out, force)
    made = read_plan(plan)
    files = kit_files(made, collector, [read_text(path) for path in texts or ()])
    write_folder(out, files, force)
    console = output()
    console.print(f"{len(files)} files in {out}; open {out / 'index.html'} through a web server", markup=False)
    for question in made.questions:
        proof = question.channel.proof()
        said = f"epsilon {proof.epsilon:.4g}, eta {proof.eta:.4g}"
        console.print(f"  {question.name}: {len(question.categories)} answers, {said}", markup=False)
    if made.carry:
        console.print(f"  not asked here, so missing from these reports: {', '.join(made.carry)}", markup=False)
    mode = "memoised under a key of the device" if made.respondent is not None else "fresh"
    console.print(f"  words: {mode}; reports go to {collector}submissions", markup=False)
