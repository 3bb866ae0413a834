"""The files of the web questionnaire of a plan, for any web server.

They are the HTML page and its module, the *public plan*, the texts in each language, and *test vectors*. The public
plan has the data that a device needs, without the owner's confidential data. Test vectors are random words with the
reports that every client must draw from them.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.resources import files
from itertools import accumulate
from string import Template
from typing import Any
from urllib.parse import urlsplit

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa
from ldpopt.files import strict
from ldpopt.values.labels import as_text
from ldpopt.version import __version__
from ldpopt_survey.collect.randomness import booklet_steps, booklet_tag, word_tags
from ldpopt_survey.collect.words import Respondents, SecretKey
from ldpopt_survey.kit.device import DEVICE_ID, booklet_position, report_position
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import Part, PlannedQuestion
from ldpopt_survey.records import mapping

__all__ = ["boundary_words", "kit_files", "public_plan"]

VERSION, WITH_BOOKLETS, WITH_PUBLIC = 1, 2, 3
"""The version of a public plan (3 with public questions) and its vectors: 2 with booklets or shared reports."""


def public_plan(plan: Plan) -> dict[str, Any]:
    """Build the public plan as JSON-ready values (schema ``ldpopt-public-plan``).

    It has the plan's checksum, the integers of every channel and the tags of memoized words. It has no pilot
    proportions (perhaps from confidential data), expected precision, or column names.

    It has version 1, and version 2 if the plan has booklets or questions that share a report. Then ``booklets`` has the
    smallest 64-bit word of each booklet but the first, with the tag of memoized words (null if everybody is asked
    everything). Each question has its position among the booklets, null for a question that everybody is asked. Its
    ``parts`` are null, or their names, answers and conditions, and its ``cells`` the parts' answers in each category.
    In version 3 ``public`` are the questions whose answers are sent unchanged.

    Raises `InvalidInput` for a plan with a question whose integers prove no guarantee: nobody should be told that its
    reports are protected.
    """
    is_memoized = plan.respondent is not None
    document: dict[str, Any] = {
        "format": "ldpopt-public-plan",
        "version": VERSION,
        "checksum": plan.checksum,
        "name": plan.name,
        "round": plan.round,
        "randomness": "memoised" if is_memoized else "fresh",
        "questions": [_question(plan, question, is_memoized) for question in plan.questions],
    }
    if plan.public:
        document["version"] = WITH_PUBLIC
        document["public"] = [{"name": q.name, "answers": list(q.texts), "invited": q.invited} for q in plan.public]
    if not _has_booklets(plan):
        return document
    names = [question.name for question in plan.booklets]
    for question, public in zip(plan.questions, document["questions"], strict=True):
        public["booklet"] = names.index(question.name) if question.name in names else None
        public["parts"] = [_part(part, question.parts) for part in question.parts] or None
        public["cells"] = question.places.tolist() if question.parts else None
    steps = [f"{step:016x}" for step in booklet_steps(plan).tolist()]
    booklets = {"steps": steps, "tag": booklet_tag(plan).hex() if is_memoized else None}
    return {**document, "version": max(document["version"], WITH_BOOKLETS), "booklets": booklets if names else None}


def _has_booklets(plan: Plan) -> bool:
    return bool(plan.booklets or any(question.parts for question in plan.questions))


def _part(part: Part, parts: Sequence[Part]) -> dict[str, Any]:
    places = {other.name: place for place, other in enumerate(parts)}
    return {
        "name": part.name,
        **({"number": True} if part.measure == "mean" else {}),
        **({"option_of": part.option_of} if part.option_of else {}),
        "answers": [as_text(label) for label in part.asked],
        "missing": None if part.missing is None else part.asked.index(part.missing),
        "asked_if": [
            [places[name], [place for place, label in enumerate(parts[places[name]].categories) if label in labels]]
            for name, labels in part.asked_if
        ],
    }


def _question(plan: Plan, question: PlannedQuestion, is_memoized: bool) -> dict[str, Any]:
    proof = question.channel.proof()
    if not (proof.epsilon < math.inf or proof.eta < 1):
        got = Phrase("one whose reports can give an answer away for certain")
        raise invalid(f"question {question.name!r}", "a channel that guarantees something", got)
    tags = [tag.hex() for tag in word_tags(plan, question)]
    missing = None if question.missing is None else question.categories.index(question.missing)
    return {
        "name": question.name,
        **({"number": True} if question.measure == "mean" else {}),
        "answers": [as_text(category) for category in question.categories],
        "reports": list(question.reports),
        "missing": missing,
        "bits": question.channel.bits,
        "weights": [[str(weight) for weight in row] for row in question.channel.weights.tolist()],
        "tags": tags if is_memoized else None,
    }


LANGUAGES = ("en", "de", "ar")
"""The languages that come with the package. The first has every text, and replaces texts that another lacks."""

_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
PLACEHOLDER = re.compile(r"\{(\w*)\}")
MAX_TEXT_LENGTH = 2000
SECTIONS = ("paper", "consent")
"""The keys of sentences of printed sheets and consent forms, which the page does not need."""


def shipped_texts(language: str) -> dict[str, Any]:
    """Load the texts of a language that comes with the package."""
    return dict(strict.shipped("ldpopt_survey.kit", f"static/language-{language}.json"))


def languages(plan: Plan, custom_texts: Sequence[str | bytes] = ()) -> dict[str, dict[str, Any]]:
    """Collect the texts of every language, by its code.

    A text of the survey replaces the package's text.

    custom_texts : JSON texts of objects with ``"code"`` (such as "de" or "pt-BR"), and any keys of the package's
        English texts. If `custom_texts` is not empty, it has all the languages.

    They may also have these keys:

    - ``"survey"``, the title, and ``"intro"``, a paragraph;
    - ``"paper"``, sentences of printed sheets;
    - ``"questions"``: for each question's name its ``"text"`` and, for each of the plan's categories, its
      ``"answers"``.

    Missing texts are taken from English, and from the plan's wording and names.

    Raises `InvalidInput` for unknown keys, questions, answers, and placeholders that the English text does not have.
    """
    texts_in_package = {language: shipped_texts(language) for language in LANGUAGES}
    english, by_code = texts_in_package[LANGUAGES[0]], dict(texts_in_package) if not custom_texts else {}
    for content in custom_texts:
        data = strict.json_value(content, "texts")
        code = data.get("code") if isinstance(data, dict) else None
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            raise InvalidInput('texts: a file of texts must be an object with a language code as its "code"')
        if code in by_code:
            raise invalid("texts", "one file for each language", Phrase(f"two for {code!r}"))
        package_texts = texts_in_package.get(code, texts_in_package.get(code.split("-")[0], {}))
        by_code[code] = {**package_texts, **_custom_texts(data, english, plan, f"texts of {code!r}")}
    for texts in by_code.values() if plan.wording else ():
        questions = texts.get("questions", {})
        plan_wording = {name: {"answers": {}, "text": words} | questions.get(name, {}) for name, words in plan.wording}
        texts["questions"] = questions | plan_wording
    return by_code


def untranslated_keys(custom_texts: Sequence[str | bytes]) -> dict[str, list[str]]:
    """List the keys of page texts that a custom language lacks, by its code.

    Keys that a shipped language has are not listed.

    custom_texts : texts that `languages` has taken.
    """
    texts = [strict.json_value(content, "texts") for content in custom_texts]
    missing = {data["code"]: [key for key in shipped_texts(LANGUAGES[0]) if key not in data] for data in texts}
    return {code: keys for code, keys in missing.items() if keys and code.split("-")[0] not in LANGUAGES}


def _custom_texts(data: Mapping[str, Any], english: Mapping[str, Any], plan: Plan, title: str) -> dict[str, Any]:
    checked_texts: dict[str, Any] = {}
    for key, value in data.items():
        if key == "questions":
            checked_texts[key] = _questions(value, plan, title)
        elif key in ("survey", "intro"):
            checked_texts[key] = _text(value, f"{title}: {key}")
        elif key in SECTIONS:
            checked_texts[key] = {
                name: _text(text, f"{title}: {key}: {name}") for name, text in mapping(value, title).items()
            }
        elif key in english:
            checked_texts[key] = _text(value, f"{title}: {key}")
            places, allowed = sorted(PLACEHOLDER.findall(value)), sorted(PLACEHOLDER.findall(english[key]))
            if set(places) - set(allowed):
                raise invalid(f"{title}: {key}", f"only the placeholders {allowed}", places)
        elif key != "code":
            raise invalid(title, "keys of the English texts, survey, intro, questions, paper, consent or code", key)
    if checked_texts.get("direction", "ltr") not in ("ltr", "rtl"):
        raise invalid(f"{title}: direction", '"ltr" or "rtl"', checked_texts["direction"])
    return checked_texts


def _questions(value: Any, plan: Plan, title: str) -> dict[str, Any]:
    checked_texts: dict[str, Any] = {}
    answers_by_question: dict[str, list[str]] = {}
    for part in map(plan.part, plan.answers):
        if isinstance(part, Part) and part.option_of:
            answers_by_question.setdefault(part.option_of, []).append(part.name.removeprefix(f"{part.option_of}: "))
        else:
            answers_by_question[part.name] = [
                as_text(label) for label in (part.asked if isinstance(part, Part) else part.categories)
            ]
    answers_by_question |= {public.name: list(public.texts) for public in plan.public}
    for name, texts in mapping(value, f"{title}: questions").items():
        if name not in answers_by_question:
            raise invalid("question", f"one of {list(answers_by_question)}", name)
        categories = answers_by_question[name]
        where = f"{title}: question {name!r}"
        if not isinstance(texts, dict) or set(texts) - {"text", "answers"}:
            raise InvalidInput(f'{where} must be an object with no keys but "text" and "answers"')
        answers = texts.get("answers", {})
        if not isinstance(answers, dict) or set(answers) - set(categories):
            raise InvalidInput(f"{where}: answers must be an object that maps categories of the plan to texts")
        checked_texts[name] = {"answers": {key: _text(label, f"{where}: answers") for key, label in answers.items()}}
        if len({checked_texts[name]["answers"].get(category, category) for category in categories}) != len(categories):
            raise invalid(f"{where}: answers", "texts that are distinct", Phrase("two that are the same"))
        if "text" in texts:
            checked_texts[name]["text"] = _text(texts["text"], where)
    return checked_texts


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT_LENGTH:
        raise invalid(name, f"a text of 1 to {MAX_TEXT_LENGTH} characters", value)
    return value


MAX_VECTOR_ANSWERS = 6
MAX_VECTOR_STEPS = 8
"""The largest numbers of answers and steps with vectors: the first, the last, and some between."""

VECTOR_IDS = (
    DEVICE_ID,
    "a",
    "fourteen bytes",
    "fifteen bytes..",
    "\u05d0\u2192\U0001f3b2, an id of more than one block",
)


def vectors(plan: Plan, seed: int = 1) -> dict[str, Any]:
    """Generate the test vectors of a plan as JSON-ready values (schema ``ldpopt-vectors``).

    - ``reports`` : lists [question, answer, word, report] of positions, with the 64-bit word in hexadecimal digits. The
      words are those around each step of the cumulative weights, the first and the last one, and random ones.
    - ``words`` : lists [key, id, tag, word]: a 256-bit AES key made for this test, an id, a tag of the plan, and the
      word.
    - ``booklets`` : in version 2, lists [word, booklet].
    - ``cells`` : in version 2, lists [question, answers, category]. The answers are the positions of the parts'
      answers, null for a part that is not asked.
    """
    rng = random.Random(seed)
    reports = [
        [n, x, f"{word:016x}", report_position(question, x, word)]
        for n, question in enumerate(plan.questions)
        for x in _spread_positions(len(question.categories), MAX_VECTOR_ANSWERS)
        for word in boundary_words(question, x, rng)
    ]
    document: dict[str, Any] = {"format": "ldpopt-vectors", "version": VERSION, "plan": plan.checksum}
    document |= {"reports": reports, "words": _words(plan, rng)}
    if not _has_booklets(plan):
        return document
    steps = booklet_steps(plan).tolist()
    words = {0, (1 << 64) - 1, *(rng.getrandbits(64) for _ in range(4)), *steps, *(step - 1 for step in steps)}
    booklets = [[f"{word:016x}", booklet_position(plan, word)] for word in sorted(words)] if plan.booklets else []
    joint_answers = [
        [n, [None if place == len(part.asked) else place for part, place in zip(question.parts, cell, strict=True)], x]
        for n, question in enumerate(plan.questions)
        if question.parts
        for x, cell in enumerate(question.places.tolist())
    ]
    return {**document, "version": WITH_BOOKLETS, "booklets": booklets, "cells": joint_answers}


def boundary_words(question: PlannedQuestion, answer: int, rng: random.Random) -> list[int]:
    """List words around the steps of one answer, at the ends of the range, and at random."""
    shift = 64 - question.channel.bits
    steps = list(accumulate(question.channel.weights[answer].tolist()))
    words = {0, (1 << 64) - 1, *(rng.getrandbits(64) for _ in range(4))}
    for step in (steps[place] for place in _spread_positions(len(steps), MAX_VECTOR_STEPS)):
        # The first word at the step, the last word before it, and the last word with the same top bits as the step.
        words |= {step << shift, (step << shift) - 1, (step << shift) + (1 << shift) - 1}
    return sorted(word for word in words if 0 <= word < 1 << 64)


def _words(plan: Plan, rng: random.Random) -> list[list[str]]:
    if plan.respondent is None:
        return []
    lists = []
    tags = [word_tags(plan, question)[end] for question in plan.questions[:MAX_VECTOR_ANSWERS] for end in (0, -1)]
    for tag in [*tags, *([booklet_tag(plan)] if plan.booklets else [])]:
        key = SecretKey(rng.randbytes(32))
        words = Respondents(key, pa.array(VECTOR_IDS, pa.string())).macs(tag)[:, 0].tolist()
        memo = key.derive(b"ldpopt memo").hex()  # the AES-256 key that a browser keeps as that of its device
        lists += [
            [memo, respondent, tag.hex(), f"{word:016x}"] for respondent, word in zip(VECTOR_IDS, words, strict=True)
        ]
    return lists


def _spread_positions(count: int, max_count: int) -> list[int]:
    """Up to `max_count` positions below `count`, spread evenly and including the first and the last."""
    return sorted(
        {round(place * (count - 1) / (max_count - 1)) for place in range(max_count)}
        if count > max_count
        else range(count)
    )


STATIC_FILES = ("ldpopt-client.js", "ldpopt-client.d.ts", "questionnaire.js", "figures.js", "style.css", "icon.svg")
PAGE_ADDRESS = "./"
_ALLOWED_URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]{1,300}(/[A-Za-z0-9._~/\-]{0,300})?")


def kit_files(plan: Plan, collector: str = PAGE_ADDRESS, texts: Sequence[str | bytes] = ()) -> dict[str, bytes]:
    """Generate the files of the questionnaire for `plan`, by name.

    They are an HTML page, its module, the public plan and test vectors. They hold no key, no answer and no pilot
    proportions (the expected proportions of the answers).

    Parameters
    ----------
    plan : The plan.
    collector : The start of the address for reports; ``submissions`` is added to it. ``./`` is the address of the page
        itself. Any other must be an https address (http is allowed on this machine).
    texts : Texts of the survey in its languages, as `ldpopt_survey.kit.folder.languages` reads them.

    Returns
    -------
    dict of str to bytes
        The content of each file.

    Raises
    ------
    InvalidInput
        For a plan with a question that guarantees nothing, and for a collector or texts that do not fit.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, make_plan
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> [name for name in kit_files(plan) if name.endswith(".js")]
    ['ldpopt-client.js', 'questionnaire.js', 'figures.js']
    """
    if not isinstance(plan, Plan):
        raise invalid("plan", "a Plan", Phrase(type(plan).__name__))
    base, origin = _collector(collector)
    by_code = languages(plan, texts)
    page = Template(_static("index.html").decode()).substitute(
        connect=" ".join(["'self'", *([origin] if origin else [])]),
        collector=escape(f"{base}submissions"),
        languages=escape(" ".join(by_code)),
        survey=escape(plan.name),
    )
    # English is used for missing texts, even if not offered itself.
    texts_by_code = {LANGUAGES[0]: shipped_texts(LANGUAGES[0]), **by_code}
    for words in texts_by_code.values():
        for section in SECTIONS:
            words.pop(section, None)
    return {
        "index.html": page.encode(),
        **{name: _static(name) for name in STATIC_FILES},
        **{f"language-{code}.json": _json(words) for code, words in texts_by_code.items()},
        "plan.json": _json(public_plan(plan)),
        "vectors.json": _json(vectors(plan)),
        "package.json": strict.json_text({**json.loads(_static("package.json")), "version": __version__}).encode(),
    }


def _collector(address: str) -> tuple[str, str]:
    """The start of the collector's address, ending with a slash, and the origin that the page's policy must allow."""
    if address == PAGE_ADDRESS:
        return PAGE_ADDRESS, ""
    if isinstance(address, str) and _ALLOWED_URL.fullmatch(address):  # the page's policy allows no other characters
        with suppress(ValueError):
            parts = urlsplit(address)
            host, _ = parts.hostname, parts.port
            if host and (parts.scheme == "https" or host in ("localhost", "127.0.0.1", "::1")):
                return f"{address.removesuffix('/')}/", f"{parts.scheme}://{parts.netloc}"
    raise invalid("collector", "an https address such as https://collect.example.org/, or http://localhost", address)


def _static(name: str) -> bytes:
    return files("ldpopt_survey.kit").joinpath("static", name).read_bytes()


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
