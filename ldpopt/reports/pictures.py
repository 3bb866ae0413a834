"""Pictures that commands write: a design's blocks beside its channel, and a plan's budget and precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.design import Design
from ldpopt.design.problems.reduction import Cells
from ldpopt.plots import blocks, channel, panels, picture, planning
from ldpopt.plots.blocks import ratio_order
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.plan.spec import SurveySpec


def _as_in_blocks(design: Design) -> list[int]:
    """The order of the answers in the left panel, which the right panel uses, too."""
    posed: Any = design.utility
    if posed.continuous and design.edges is not None:
        posed = Cells(posed.p0, posed.p1, design.edges).divergence(posed.f)
    return [int(x) for x in ratio_order(np.asarray(posed.p0), np.asarray(posed.p1))[1]]


def design_picture(design: Design, names: tuple[str, str] | None = None, kind: str = "png") -> bytes:
    """P0 and P1 with the design's blocks, beside its channel, as the bytes of a png, svg or pdf file.

    The answers are in the same order in both.
    """
    k, m = design.channel.shape
    left, right = panels((7.5, 2.6 + min(max(0.6 * m, 2.4), 9)), 1.3 + min(max(0.27 * k, 2.2), 12))
    blocks(design, ax=left, names=names)
    channel(design.channel, ax=right, order=_as_in_blocks(design))
    return picture(left, kind)


def survey_picture(plan: Plan, spec: SurveySpec, kind: str = "png") -> bytes:
    """The split of a plan's budget, its half-widths, and its power if `spec` asks for it, as the bytes of a picture."""
    alternatives = {one.name: one.alternative for one in spec.questions if one.alternative is not None}
    return picture(planning(plan, alternatives), kind)
