"""Write a design and its certificate: schema ``ldpopt-design``, version 1 (docs/reference/formats/design-file.md).

A bound on respondents is a file of its own: schema ``ldpopt-respondents``, version 1.
"""

from __future__ import annotations

import json
from typing import Any

from ldpopt.design.codec.kinds import RESPONDENTS, SCHEMA, VERSION
from ldpopt.design.codec.records import certificate, encode, problem_part, record


def design_text(design: Any) -> str:
    """The contents of a design's file, one line for each of its parts."""
    parts = {
        "schema": SCHEMA,
        "version": VERSION,
        **{name: problem_part(name, getattr(design, name), "") for name in ("utility", "constraints", "channel")},
        **{name: encode(float(getattr(design, name)), name) for name in ("value", "lower_bound", "upper_bound")},
        "certified": bool(design.certified),
        "tolerance": encode(float(design.tolerance), "tolerance"),
        "guarantees": encode(design.guarantees, "guarantees"),
        "method": design.method,
        "reference": design.reference,
        "note": design.note,
        "edges": problem_part("edges", design.edges, ""),
        "certificate": None if design.certificate is None else certificate(design.certificate, design, "certificate"),
    }
    return _lines(parts)


def respondents_text(bound: Any) -> str:
    """The contents of the file of a bound on respondents."""
    return _lines({"schema": RESPONDENTS, "version": VERSION, **record(bound, "bound")})


def _lines(parts: dict[str, Any]) -> str:
    """A JSON object with a line for each of its parts."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(part, allow_nan=False, ensure_ascii=False)}" for key, part in parts.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"
