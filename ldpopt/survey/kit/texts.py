"""The texts of the questionnaire in each language: those of the package, and those of a survey."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from ldpopt import strictjson
from ldpopt.errors import Phrase, invalid
from ldpopt.labels import as_text
from ldpopt.survey.plan.plan import Plan

LANGUAGES = ("en", "de", "ar")
"""The languages that come with the package. The first has every text, and replaces texts that another lacks."""

_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_PLACE = re.compile(r"\{(\w*)\}")
_LONGEST = 2000


def shipped(language: str) -> dict[str, Any]:
    """The texts of a language that comes with the package."""
    content = files("ldpopt.survey.kit").joinpath("static", f"language-{language}.json").read_bytes()
    made: dict[str, Any] = strictjson.loads(content, f"language-{language}.json")
    return made


def languages(plan: Plan, given: Sequence[str | bytes] = ()) -> dict[str, dict[str, Any]]:
    """The texts of every language, by its code. A text of the survey replaces the package's text.

    given : JSON texts of objects with ``"code"`` (such as "de" or "pt-BR"), and any keys of the package's English
        texts. They may also have ``"survey"`` (the title), ``"intro"`` (a paragraph), and ``"questions"``: for each
        question's name its ``"text"`` and, for each of the plan's categories, its ``"answers"``. Missing texts are
        taken from English and from the plan's own names. If `given` is not empty, only its languages are offered.

    Raises `InvalidInput` for unknown keys, questions and answers, and for texts with placeholders that the English text
    does not have.
    """
    built = {language: shipped(language) for language in LANGUAGES}
    english, made = built[LANGUAGES[0]], dict(built) if not given else {}
    for content in given:
        data = strictjson.loads(content, "texts")
        code = data.get("code") if isinstance(data, dict) else None
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            raise invalid("texts", 'an object with a language as its "code"', Phrase("another"))
        if code in made:
            raise invalid("texts", "one file for each language", Phrase(f"two for {code!r}"))
        what = f"texts of {code!r}"
        own = _own(data, english, plan, what)
        made[code] = {**built.get(code, built.get(code.split("-")[0], {})), **own}
    return made


def _own(data: Mapping[str, Any], english: Mapping[str, Any], plan: Plan, what: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in data.items():
        if key == "questions":
            made[key] = _questions(value, plan, what)
        elif key in ("survey", "intro"):
            made[key] = _text(value, f"{what}: {key}")
        elif key in english:
            text = _text(value, f"{what}: {key}")
            places, asked = sorted(_PLACE.findall(text)), sorted(_PLACE.findall(english[key]))
            if set(places) - set(asked):
                raise invalid(f"{what}: {key}", f"only the places {asked}", places)
            made[key] = text
        elif key != "code":
            raise invalid(what, "keys of the English texts, survey, intro, questions or code", key)
    if made.get("direction", "ltr") not in ("ltr", "rtl"):
        raise invalid(f"{what}: direction", '"ltr" or "rtl"', made["direction"])
    return made


def _questions(value: Any, plan: Plan, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid(f"{what}: questions", "an object", Phrase(type(value).__name__))
    made: dict[str, Any] = {}
    for name, texts in value.items():
        categories = [as_text(category) for category in plan.question(name).categories]
        where = f"{what}: question {name!r}"
        if not isinstance(texts, dict) or set(texts) - {"text", "answers"}:
            raise invalid(where, "an object with text and answers", Phrase("another"))
        answers = texts.get("answers", {})
        if not isinstance(answers, dict) or set(answers) - set(categories):
            raise invalid(f"{where}: answers", "an object from the plan's categories to texts", Phrase("another"))
        made[name] = {"answers": {key: _text(one, f"{where}: answers") for key, one in answers.items()}}
        shown = list(made[name]["answers"].get(category, category) for category in categories)
        if len(set(shown)) != len(shown):
            raise invalid(f"{where}: answers", "texts that are distinct", Phrase("two that are the same"))
        if "text" in texts:
            made[name]["text"] = _text(texts["text"], where)
    return made


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise invalid(what, f"a text of 1 to {_LONGEST} characters", value)
    return value
