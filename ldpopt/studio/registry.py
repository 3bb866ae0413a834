"""The functions that the page may call: views, which answer at once, and jobs, which take longer."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

VIEWS = {
    "takeaway": "ldpopt.studio.takeaway:view",
    "inspect": "ldpopt.studio.inspect:view",
    "tell": "ldpopt.studio.tell:view",
    "compare": "ldpopt.studio.tell_compare:view",
    "ask": "ldpopt.studio.ask:view",
    "meaning": "ldpopt.studio.meaning:view",
    "load": "ldpopt.studio.load:view",
    "examples": "ldpopt.studio.load:examples",
}
"""For each NAME in ``/api/NAME`` the ``module:function``, called with a state."""

JOBS = {
    "report": "ldpopt.studio.report:view",
    "takeaway": "ldpopt.studio.takeaway:taken",
    "inspect": "ldpopt.studio.inspect:view",
    "design": "ldpopt.studio.tell:job",
    "envelope": "ldpopt.studio.tell_curves:envelope",
    "phases": "ldpopt.studio.tell_curves:phases",
    "survey": "ldpopt.studio.ask:job",
    "split": "ldpopt.studio.ask:split",
}
"""For each NAME in ``/api/jobs/NAME`` the ``module:function``, called with a state and a function for the progress."""


def function_of(place: str) -> Callable[..., Any]:
    """The function at ``module:name``, imported at its first use.

    >>> function_of("ldpopt.studio.fields:plain")((1, 2))
    [1, 2]
    """
    module, _, name = place.partition(":")
    made: Callable[..., Any] = getattr(import_module(module), name)
    return made
