"""Every language says what English says: the same texts, places and numbers, and the same promises."""

from __future__ import annotations

import re
import unicodedata

import pytest

from ldpopt.files import strict
from ldpopt_survey.kit.folder import LANGUAGES
from ldpopt_survey.kit.folder import shipped_texts as of_page
from ldpopt_survey.paper.design import shipped_texts as of_sheets
from ldpopt_survey.reports.promises import SENTENCES

SETS = {"page": lambda language="en": of_page(language), "sheets": of_sheets, "consent form": SENTENCES["consent"]}
OTHERS = [language for language in LANGUAGES if language != "en"]

CLAIMS = {
    "published": {"en": r"publish", "de": r"veröffentlich", "ar": r"نشر"},
    "deleted or forgotten": {"en": r"delet|forg[eo]t", "de": r"lösch|vergess", "ar": r"حذف|نسي"},
    "kept": {"en": r"\bkept\b|\bkeep\b", "de": r"aufbewahr|behalt", "ar": r"حفظ|حتفظ"},
    "sent": {"en": r"\bsent\b|\bsends?\b", "de": r"send|sandt", "ar": r"رسل|رسال"},
    "protected": {"en": r"protected", "de": r"geschützt", "ar": r"محمي"},
    "not protected": {"en": r"not protected", "de": r"nicht geschützt", "ar": r"غير محمي"},
    "at most": {"en": r"at most|no more than|more than \{times\}", "de": r"höchstens|mehr als \{times\}|nicht mehr als",
                "ar": r"على الأكثر|لا يزيد|لا تزيد|أكثر من هذا"},
    "at least": {"en": r"at least", "de": r"mindestens", "ar": r"على الأقل"},
    "replaced": {"en": r"replace", "de": r"ersetz|an die Stelle", "ar": r"ستبدل|ستبدال|يحل محل"},
    "voluntary": {"en": r"voluntary", "de": r"freiwillig", "ar": r"طوعية"},
    "hidden": {"en": r"hidden|hides", "de": r"verb[oi]rg", "ar": r"مخفي|أخفى|خفي"},
}  # fmt: skip
"""Words in each language by which a text claims something of answers or reports."""

ELSEWHERE = {("page", "sent", "sending"), ("page", "sent", "invitationText"), ("page", "sent", "exactIntro")}
"""Texts in which such a word is about something else in one of the languages."""


def plain(text: str) -> str:
    """Letters alone, without the marks of Arabic vowels."""
    return "".join(sign for sign in unicodedata.normalize("NFC", text) if unicodedata.category(sign) != "Mn")


def numbers(text: str) -> list[str]:
    """The numbers in a text, in its own order of digits, and e to a power."""
    return sorted(re.findall(r"(?<![\w{])\d+(?:e\d+)?(?![\w}])|e\^", text))


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("of", SETS)
def test_texts_places_and_numbers_are_those_of_english(of: str, language: str) -> None:
    """No text is missing or left over; each has the places and the numbers of the English one."""
    english, theirs = SETS[of](), SETS[of](language)
    assert set(theirs) == set(english)
    for key, text in english.items():
        assert theirs[key].strip()
        assert sorted(re.findall(r"\{\w+\}", theirs[key])) == sorted(re.findall(r"\{\w+\}", text)), key
        if key not in ("why.chance", "cards.values", "dice.assumption"):
            assert set(numbers(theirs[key])) <= set(numbers(text)), key


def differences(of: str, language: str) -> set[tuple[str, str, str]]:
    """The texts that claim in one of the two languages what they do not claim in the other."""
    english, theirs = SETS[of](), SETS[of](language)
    return {
        (of, claim, key)
        for claim, words in CLAIMS.items()
        for key in english
        if bool(re.search(words["en"], english[key], re.IGNORECASE))
        != bool(re.search(words[language], plain(theirs[key]), re.IGNORECASE))
    }


def test_promises_are_those_of_english() -> None:
    """What a text says to be published, kept, sent, protected, or bounded is said of it in English, and conversely."""
    assert set().union(*(differences(of, language) for of in SETS for language in OTHERS)) == ELSEWHERE


def test_a_promise_too_many_is_found() -> None:
    """The words find what a translation once said beyond English: that public columns are kept."""
    once = "Dies wird aufbewahrt und veröffentlicht, wie es ist, und nicht ersetzt: {columns}."
    assert re.search(CLAIMS["kept"]["de"], once)
    assert not re.search(CLAIMS["kept"]["en"], SETS["consent form"]()["carried"])
    assert not re.search(CLAIMS["kept"]["de"], SETS["consent form"]("de")["carried"])


def test_files_are_listed() -> None:
    """The languages that commands offer are those whose files the package has."""
    for language in LANGUAGES:
        assert strict.shipped("ldpopt_survey.paper", f"static/sheets-{language}.json")
