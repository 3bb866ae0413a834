"""Draw what the package draws at the size of print, and twelve of it on one sheet.

    python experiments/figures/sheet.py              # draws sheet.png beside this script anew
    python experiments/figures/sheet.py --out FOLDER # every figure as a PDF and a PNG file, and the sheet
    python experiments/figures/sheet.py --quick      # draws the twelve without writing them

A figure is as wide as a column of a paper (3.4 inches) or as its text (7 inches). It is made by the public functions
alone, with the size as the only setting.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

import ldpopt_survey as survey
from ldpopt import (
    Divergence,
    LocalDP,
    MutualInformation,
    TotalVariation,
    compose,
    frontier,
    frontiers,
    optimal_channel,
    plots,
)
from ldpopt.bounds import compare
from ldpopt.datasets import load_anes96
from ldpopt.design import Design, structures
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.frontiers import Frontier
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import HalfWidth, Plan, QuestionSpec, SurveySpec, compare_protocols, pictures, plan_survey

COLUMN, TEXT = 3.4, 7.0
"""The widths of a column and of the text of a paper, in inches."""

SHARES = np.array([0.36, 0.24, 0.16, 0.11, 0.08, 0.05])
OFTEN = ("never", "once a year", "once a month", "more often")
FOUR = Divergence(KL, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], inputs=OFTEN)
SIX = Divergence(KL, SHARES, SHARES[::-1])


def column(height: float) -> plots.Axes:
    """Axes of a new figure that is as wide as a column."""
    return plots.panels((COLUMN,), height)[0]


def text(height: float) -> plots.Axes:
    """Axes of a new figure that is as wide as the text."""
    return plots.panels((TEXT,), height)[0]


@cache
def four() -> Design:
    """The optimum for four answers."""
    return optimal_channel(FOUR, [LocalDP(2.0), TotalVariation(0.4)])


@cache
def incomes() -> Design:
    """The optimum for the incomes of two electorates, in 24 classes."""
    table = load_anes96()
    p0, p1 = table.conditional("income", given="vote")
    return optimal_channel(Divergence(KL, p0, p1, inputs=table.labels("income")), [LocalDP(2.0), TotalVariation(0.4)])


@cache
def curves() -> Frontier:
    """Three curves over eta."""
    return frontier(SIX, [1.0, 2.0, 4.0], np.linspace(0, 1, 11))


@cache
def maps() -> Mapping[str, Frontier]:
    """The same grid for two divergences."""
    grid = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0], [0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
    posed = (SIX, Divergence(CHI_SQUARED, SHARES, SHARES[::-1]))
    return {utility.f.name: frontier(utility, *grid) for utility in posed}


@cache
def plan() -> Plan:
    """Two questions, one with a target."""
    cycles = QuestionSpec("cycles", ("no", "yes"), half_width=0.05)
    return plan_survey(SurveySpec("commute", (cycles, QuestionSpec("drinks", OFTEN)), epsilon=2.0, design="split")).plan


def estimates(truth: bool) -> plots.Axes:
    """Shares with their intervals."""
    found = survey.estimate([512, 430, 358], randomized_response(3, 1.0, inputs=("car", "bus", "neither")))
    ends, known = found.intervals(), [0.5, 0.3, 0.2] if truth else None
    return plots.shares(found.labels, found.values, ends.lower, ends.upper, known, column(1.9))


MISSED = "randomized_response_with_erasure"

SHEET: dict[str, Callable[[], plots.Axes]] = {
    "channel": lambda: plots.channel(four().channel, column(2.4)),
    "blocks": lambda: plots.blocks(four(), ax=column(2.4), names=("Clinton", "Dole")),
    "frontier": lambda: plots.frontier(curves(), text(3.2)),
    "envelope": lambda: plots.envelope(frontiers.envelope(SIX, 2.0), column(2.6)),
    "structures": lambda: plots.structures(structures(FOUR, 0.1, 6.0, tolerance=1e-4), column(2.6)),
    "gap maps": lambda: plots.gap_maps(maps(), MISSED, width=TEXT)[0],
    "bounds": lambda: plots.bounds(compare(SIX, 1.0, 0.3), column(4.2)),
    "frontier in a column": lambda: plots.frontier(curves(), column(4.2)),
    "trade-off": lambda: plots.trade_off(compose([(1.0, 0.0, 0.3)] * 3), column(2.9)),
    "profile": lambda: plots.profile(compose([(1.0, 0.0, 0.3)] * 3), column(2.9)),
    "half-widths": lambda: pictures.half_widths(plan(), column(3.0)),
    "protocols": lambda: pictures.protocols(compare_protocols([0.2, 0.3, 0.5], HalfWidth(0.05), 1.0), column(3.0)),
}
"""The twelve of the sheet."""

FIGURES: dict[str, Callable[[], plots.Axes]] = SHEET | {
    "channel of 24 answers": lambda: plots.channel(incomes().channel, column(4.0)),
    "blocks of 24 answers": lambda: plots.blocks(incomes(), ax=text(4.6), names=("Clinton", "Dole")),
    "gap map": lambda: plots.gap_map(maps()["KL divergence"], MISSED, column(2.8)),
    "bounds of the text": lambda: plots.bounds(compare(SIX, 1.0, 0.3), width=TEXT),
    "bounds over limits": lambda: plots.bounds(compare(SIX, [0.5, 1.0, 2.0], [0.1, 0.3]), width=TEXT),
    "sweep": lambda: plots.sweep(frontiers.sweep(MutualInformation(SHARES), LocalDP, [0.5, 1.0, 2.0]), column(2.6)),
    "shares": lambda: estimates(truth=False),
    "shares and the truth": lambda: estimates(truth=True),
    "coefficients": lambda: plots.coefficients(["Intercept", "age"], [-1, 0.2], [-1.5, 0.1], [-0.5, 0.3], column(1.6)),
    "budget": lambda: pictures.budget_split(plan(), column(1.8)),
    "power": lambda: pictures.power_curves(plan(), {"cycles": [0.4, 0.6]}, ax=column(3.0)),
    "planning": lambda: pictures.planning(plan(), {"cycles": [0.4, 0.6]}),
}
"""One of everything that the package draws, and more where the size matters."""

FILES: dict[str, Callable[[str], bytes]] = {
    "design": lambda kind: plots.design_picture(four(), ("Clinton", "Dole"), kind, width=TEXT),
    "design of 24 answers": lambda kind: plots.design_picture(incomes(), ("Clinton", "Dole"), kind, width=TEXT),
}
"""What is written as a file at once."""


def on_one_sheet(drawn: list[bytes]) -> Image.Image:
    """The figures as they stand on a page: two columns, or one figure across both."""
    images = [Image.open(io.BytesIO(one)).convert("RGB") for one in drawn]
    wide, gap = max(image.width for image in images), 40
    rows: list[list[Image.Image]] = []
    for image in images:
        fits = rows and sum(each.width for each in rows[-1]) + image.width <= wide
        rows[-1].append(image) if fits else rows.append([image])
    heights = [max(image.height for image in row) for row in rows]
    page = Image.new("RGB", (wide, sum(heights) + gap * (len(rows) - 1)), "white")
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for number, image in enumerate(row):
            page.paste(image, (number * (wide - image.width), top))
        top += height + gap
    return page


def main() -> int:
    """Draw the twelve, and write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="also write every figure into this folder")
    parser.add_argument("--quick", action="store_true", help="write nothing")
    given = parser.parse_args()
    drawn = [plots.picture(draw()) for draw in SHEET.values()]
    if given.quick:
        return 0
    on_one_sheet(drawn).quantize(128).save(Path(__file__).with_suffix(".png"), optimize=True)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        for kind in ("png", "pdf"):
            for name, draw in FIGURES.items():
                (given.out / f"{name}.{kind}").write_bytes(plots.picture(draw(), kind))
            for name, write in FILES.items():
                (given.out / f"{name}.{kind}").write_bytes(write(kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
