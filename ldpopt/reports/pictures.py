"""Pictures that commands write: a design's blocks beside its channel; a plan's budget and what it reaches."""

from __future__ import annotations

from ldpopt.design import Design
from ldpopt.plots import blocks, channel, panels, picture, planning
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.plan.spec import SurveySpec


def design_picture(design: Design, names: tuple[str, str] | None = None, kind: str = "png") -> bytes:
    """P0 and P1 with the design's blocks, beside its channel, as the bytes of a png, svg or pdf file."""
    k, m = design.channel.shape
    left, right = panels((7.5, 2.6 + min(max(0.6 * m, 2.4), 9)), 1.3 + min(max(0.27 * k, 2.2), 12))
    blocks(design, ax=left, names=names)
    channel(design.channel, ax=right)
    return picture(left, kind)


def survey_picture(plan: Plan, spec: SurveySpec, kind: str = "png") -> bytes:
    """The split of a plan's budget, widths and, where `spec` asks for power, power, as the bytes of a picture."""
    alternatives = {one.name: one.alternative for one in spec.questions if one.alternative is not None}
    return picture(planning(plan, alternatives), kind)
