"""The list of experiments: every module of `claims` that defines one, and the verdicts of their full forms."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.resources import files
from typing import Any

from ldpopt import strictjson
from ldpopt.errors import invalid
from ldpopt.reproduce import claims
from ldpopt.reproduce.experiment import Experiment

_MODULES = sorted(found.name for found in pkgutil.iter_modules(claims.__path__, claims.__name__ + "."))

EXPERIMENTS: dict[str, Experiment] = {
    found.name: found
    for found in sorted((importlib.import_module(name).EXPERIMENT for name in _MODULES), key=lambda one: str(one.name))
}
"""The experiments by name, in alphabetical order: by paper, then by place."""


def experiment_named(name: str) -> Experiment:
    """The experiment of a name. For an unknown name, `InvalidInput` lists all names.

    >>> experiment_named("gi-theorem-2").source
    '[GI, Thm 2; GI, Fig 4; GI, eq. 5-6]'
    """
    if name not in EXPERIMENTS:
        raise invalid("experiment", f"one of {', '.join(EXPERIMENTS)}", name)
    return EXPERIMENTS[name]


def recorded() -> dict[str, Any]:
    """The verdicts of the full forms, recorded with this version: name -> outcome, detail and figures.

    >>> recorded()["cim-table-1"]["outcome"]
    'fails'
    """
    found: dict[str, Any] = strictjson.loads(files("ldpopt.reproduce").joinpath("recorded.json").read_text("utf-8"))
    return found
