"""One problem, designed by the package and judged by the truth."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path

import numpy as np

from ldpopt import InvalidInput, SolverError, optimal_channel
from truth.problems import Case
from truth.verdict import faults

WRONG = ("bound", "value", "certified", "infeasible", "verify", "raised", "refused wrongly")
"""What must not happen. What may: a refusal where an optimum may be infinite, and an answer that no solver gives."""


def trial(case: Case, steps: int = 30) -> list[tuple[str, str]]:
    """(kind, words) of all that is to be said; nothing of a design that holds."""
    try:
        utility, constraints = case.build()
    except InvalidInput as refusal:
        return [("refused", f"{refusal}")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            design = optimal_channel(utility, constraints)
    except InvalidInput as refusal:
        return [("refused wrongly" if case.finite else "refused", f"{refusal}")]
    except SolverError as failure:
        return [("unsolved", f"{failure}")]
    except Exception as raised:
        at = traceback.extract_tb(raised.__traceback__)[-1]
        return [("raised", f"{type(raised).__name__}: {raised} at {Path(at.filename).name}:{at.lineno}")]
    return faults(case.posed, design, np.random.default_rng(0), steps)
