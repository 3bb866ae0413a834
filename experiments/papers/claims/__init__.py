"""The claims by name: every `Experiment` that a module of this folder defines, and the verdicts of their full forms."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

from experiments.papers.experiment import Experiment
from ldpopt.errors import invalid
from ldpopt.files import strict

RECORDED = Path(__file__).resolve().parents[1] / "recorded.json"
"""The verdicts of the full forms."""

HOMES: dict[str, str] = {}
"""Name of an experiment -> the module that defines it."""


def _collected() -> dict[str, Experiment]:
    collected: dict[str, Experiment] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__, f"{__name__}.")):
        defined = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Experiment)]
        collected |= {experiment.name: experiment for experiment in defined}
        HOMES.update({experiment.name: module for experiment in defined})
    return dict(sorted(collected.items()))


EXPERIMENTS: dict[str, Experiment] = _collected()
"""The experiments by name, in alphabetical order: by paper, then by place."""


def experiment_named(name: str) -> Experiment:
    """Find the experiment of a name.

    For an unknown name, `InvalidInput` lists all names.

    >>> experiment_named("gi-theorem-2").source
    '[GI, Thm 2; GI, Fig 4; GI, eq. 5-6]'
    """
    if name not in EXPERIMENTS:
        raise invalid("experiment", f"one of {', '.join(EXPERIMENTS)}", name)
    return EXPERIMENTS[name]


def recorded() -> dict[str, Any]:
    """Load the verdicts of the full forms, recorded with this version.

    They map a name to outcome, detail and figures.

    >>> recorded()["cim-table-1"]["outcome"]
    'fails'
    """
    verdicts: dict[str, Any] = strict.json_value(RECORDED.read_bytes())
    return verdicts
