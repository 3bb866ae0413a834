"""Write a design and its certificate: schema ``ldpopt-design``, version 1 (docs/reference/formats/design-file.md).

A bound on respondents has another schema: ``ldpopt-respondents``, version 1.
"""

from __future__ import annotations

import json
from typing import Any

from ldpopt.design.codec.kinds import DESIGN_SCHEMA, RESPONDENTS_SCHEMA, VERSION
from ldpopt.design.codec.records import certificate, encode, problem_part, record


def design_text(design: Any) -> str:
    """Encode a design as the contents of its file, one line per part."""
    parts = {
        "schema": DESIGN_SCHEMA,
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
    """Encode a bound on respondents as the contents of its file."""
    return _lines({"schema": RESPONDENTS_SCHEMA, "version": VERSION, **record(bound, "bound")})


def _lines(parts: dict[str, Any]) -> str:
    lines = (
        f"{json.dumps(key)}: {json.dumps(part, allow_nan=False, ensure_ascii=False)}" for key, part in parts.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"
