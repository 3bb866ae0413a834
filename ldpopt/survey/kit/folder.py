"""The files of a questionnaire that any web server can host."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import urlsplit

from ldpopt.errors import Phrase, invalid
from ldpopt.survey.kit.public import public_plan
from ldpopt.survey.kit.texts import LANGUAGES, languages, shipped
from ldpopt.survey.kit.vectors import vectors
from ldpopt.survey.plan.plan import Plan
from ldpopt.version import __version__

AS_THEY_ARE = ("ldpopt-client.js", "ldpopt-client.d.ts", "questionnaire.js", "figures.js", "style.css", "icon.svg")
HERE = "./"
_PLAIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,300}(/[A-Za-z0-9._~/\-]{0,300})?")


def kit_files(plan: Plan, collector: str = HERE, texts: Sequence[str | bytes] = ()) -> dict[str, bytes]:
    """The files of the questionnaire for `plan`, by name: a page, its module, the public plan and test vectors.

    collector : the start of the address for reports; ``submissions`` is added to it. ``./`` is the address of the page
        itself. Anything else must be an https address (http is allowed on this machine).
    texts : texts of the survey in its languages, as `ldpopt.survey.kit.texts.languages` reads them.

    The files hold no key, no answer and no pilot shares (the shares of answers that are expected). Raises
    `InvalidInput` for a plan with a question that guarantees nothing, and for a collector or texts that do not fit.

    >>> from ldpopt.survey import QuestionSpec, SurveySpec, make_plan
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> [name for name in kit_files(plan) if name.endswith(".js")]
    ['ldpopt-client.js', 'questionnaire.js', 'figures.js']
    """
    if not isinstance(plan, Plan):
        raise invalid("plan", "a Plan", Phrase(type(plan).__name__))
    base, origin = _collector(collector)
    found = languages(plan, texts)
    page = Template(_static("index.html").decode()).substitute(
        connect=" ".join(["'self'", *([origin] if origin else [])]),
        collector=escape(f"{base}submissions"),
        languages=escape(" ".join(found)),
        survey=escape(plan.name),
    )
    stand_in = {LANGUAGES[0]: shipped(LANGUAGES[0])}  # used for missing texts, even if not offered itself
    package = {**json.loads(_static("package.json")), "version": __version__}
    return {
        "index.html": page.encode(),
        **{name: _static(name) for name in AS_THEY_ARE},
        **{f"language-{code}.json": _json(words) for code, words in {**stand_in, **found}.items()},
        "plan.json": _json(public_plan(plan)),
        "vectors.json": _json(vectors(plan)),
        "package.json": json.dumps(package, indent=2).encode() + b"\n",
    }


def _collector(given: str) -> tuple[str, str]:
    """The start of the collector's address, ending with a slash, and the origin that the page's policy must allow."""
    what = "collector"
    if given == HERE:
        return HERE, ""
    expected = "an https address such as https://collect.example.org/, or http://localhost"
    if not isinstance(given, str) or not _PLAIN.fullmatch(given):  # the page's policy allows no other characters
        raise invalid(what, expected, given)
    try:
        parts = urlsplit(given)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        fits = parts.scheme == "https" or (parts.scheme == "http" and local)
        _ = parts.port
    except ValueError:
        raise invalid(what, expected, given) from None
    if not fits or not parts.hostname:
        raise invalid(what, expected, given)
    return given if given.endswith("/") else given + "/", f"{parts.scheme}://{parts.netloc}"


def _static(name: str) -> bytes:
    return files("ldpopt.survey.kit").joinpath("static", name).read_bytes()


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
