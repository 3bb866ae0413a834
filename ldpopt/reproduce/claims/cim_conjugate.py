"""A step in the proof of Lemma 3: the conjugate behind restricted alpha-divergences, printed and corrected."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Subject, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """Every order and argument."""
    return grid(order=parameters["orders"], s=parameters["arguments"])


def measure(order: float, s: float) -> Row:
    """sup_x s x - (|x|^a - 1)/(a^2 - a): by search, in the printed form, and in the corrected form."""
    from scipy.optimize import minimize_scalar

    scale = order * order - order
    reach = 4 * (abs(s) * (order - 1) + 1) ** (1 / (order - 1))
    found = minimize_scalar(lambda x: (abs(x) ** order - 1) / scale - s * x, bounds=(-reach, reach), method="bounded",
                            options={"xatol": 1e-12, "maxiter": 2000})  # fmt: skip
    c = (order - 1) ** (order / (order - 1)) / order
    return {"exact": -float(found.fun), "printed": c * abs(s) - 1 / scale,
            "corrected": c * abs(s) ** (order / (order - 1)) + 1 / scale}  # fmt: skip


def judge(table: Table) -> Verdict:
    """Whether the printed form is the supremum."""
    off = np.abs(table.column("printed") - table.column("exact"))
    repaired = float(np.max(np.abs(table.column("corrected") - table.column("exact")) / (1 + table.column("exact"))))
    top = table.with_column("off", off).row("off", np.argmax)
    figures = {"printed off by, most": float(off.max()), "printed off by, least": float(off.min()),
               "corrected off by": repaired}  # fmt: skip
    if off.max() <= 1e-6:
        return Verdict(Outcome.HOLDS, "No counterexample.", figures)
    return Verdict(
        Outcome.FAILS,
        f"The supremum is never the printed one: at α = {top['order']:g}, s = {top['s']:g} it is {top['exact']:.6g}, "
        f"printed {top['printed']:.6g}, and it is off by {off.min():.3g} at the least. C|s|^(α/(α-1)) + 1/(α²-α) is "
        f"right to {repaired:.1e}, and it is what the lemma's statement, which is right (cim-theorem-10), comes from.",
        figures,
    )


def draw(table: Table) -> Any:
    """The three forms against the argument, for two orders."""
    orders = list(table.groups("order"))
    axes = frames(len(orders), 4.4, 3.9)
    for ax, (order, rows) in zip(axes, orders, strict=True):
        line(ax, rows.column("s"), rows.column("printed"), 1, "printed", ls="--")
        line(ax, rows.column("s"), rows.column("corrected"), 0, "corrected")
        ax.plot(rows.column("s"), rows.column("exact"), "o", ms=4, mfc="none", color="0.2", label="supremum, by search")
        finish(ax, f"Lemma 3, α = {order:g}", "s", "f*(s)")
    return axes[0]


EXPERIMENT = Experiment(
    name="cim-lemma-3",
    claim="f(x) = (|x|^α - 1)/(α² - α) has the conjugate C|s| - 1/(α² - α), C = (α-1)^(α/(α-1))/α (as printed in the "
    "proof of Lemma 3).",
    source="[CIM, Lemma 3]",
    subject=Subject.STEP,
    full={"orders": [1.5, 2.0, 3.0], "arguments": [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0]},
    quick={"orders": [2.0, 3.0], "arguments": [-1.0, 0.0, 2.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The conjugate by search (circles), as printed (dashed) and corrected (solid).",
)
