"""The page of survey.toml: every key that the program accepts is explained on it, in its table, and no other."""

import re
import sys
from pathlib import Path

import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import SurveySpec

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
from survey_keys import survey_keys

HEAD = '[survey]\nname = "s"\n'
CHOICE = '[[questions]]\nname = "q"\ncategories = ["a", "b"]\n'
TYPES = {
    'type = "choice"': 'categories = ["a", "b"]',
    'type = "number"': "low = 1\nhigh = 3",
    'type = "any of"': 'options = ["a", "b"]',
}
PROBES = {
    "[survey]": f"{HEAD}none_such = 1\n{CHOICE}",
    "[budget]": f"{HEAD}[budget]\nnone_such = 1\n{CHOICE}",
    "[planning]": f"{HEAD}[planning]\nnone_such = 1\n{CHOICE}",
    "[sample]": f"{HEAD}[sample]\nnone_such = 1\n{CHOICE}",
    "[file]": f"{HEAD}[file]\nnone_such = 1\n{CHOICE}",
    "[[public]]": f'{HEAD}[[public]]\nname = "p"\nanswers = ["a", "b"]\nnone_such = 1\n{CHOICE}',
    "[[questions]]": f"{HEAD}{CHOICE}none_such = 1\n",
    **{kind: f'{HEAD}[[questions]]\nname = "q"\n{kind}\n{keys}\nnone_such = 1\n' for kind, keys in TYPES.items()},
}
"""Files with a key that there is not, at which the reader names those that there are."""


def accepted(text: str) -> set[str]:
    """The keys that the reader says there are where the unknown one stands."""
    with pytest.raises(InvalidInput) as error:
        SurveySpec.from_toml(text)
    found = re.search(r"expected only the keys (.*), got 'none_such'", str(error.value))
    assert found, error.value
    return set(found[1].split(", "))


def on_page() -> dict[str, dict[str, str]]:
    """The meanings by key and section of the page."""
    sections: dict[str, dict[str, str]] = {}
    for part in re.split(r"^## `", survey_keys(), flags=re.MULTILINE)[1:]:
        title, rest = part.split("`\n", 1)
        rows = re.findall(r"^\| (?!key|---)(`?)([^|`]+)\1 \| [^|]* \| [^|]* \| (.*) \|$", rest, re.MULTILINE)
        assert len(rows) == len(re.findall(r"^\| (?!key|--)", rest, re.MULTILINE)), title
        assert title not in sections
        sections[title] = {key: meaning for _, key, meaning in rows}
        assert len(sections[title]) == len(rows), title
    return sections


def test_every_table_of_a_file_has_a_section():
    """The tables at the top of the file, as the reader names them, and the types of questions."""
    tables = {title.strip("[]") for title in on_page() if not title.startswith("type")}
    assert tables == accepted(f"none_such = 1\n{HEAD}{CHOICE}")
    with pytest.raises(InvalidInput, match='"choice" or "any of" or "number"'):
        SurveySpec.from_toml(f'{HEAD}{CHOICE}type = "none such"\n')
    assert {title for title in on_page() if title.startswith("type")} == set(TYPES) - {'type = "choice"'}


@pytest.mark.parametrize("table", PROBES)
def test_every_key_that_is_accepted_is_explained(table):
    """A row with a meaning of its own for each key, and no row for a key that would be refused."""
    page = on_page()
    keys = page["[[questions]]"] | page.get(table, {}) if table.startswith("type") else page[table]
    assert set(keys) == accepted(PROBES[table])
    meanings = list(page.get(table, page["[[questions]]"]).values())
    assert all(len(meaning.split()) >= 3 for meaning in meanings), meanings
    assert len(set(meanings)) == len(meanings)


def test_meanings_are_of_the_file():
    """No names of Python's, and no entry that ran into its neighbour."""
    for section in on_page().values():
        for key, meaning in section.items():
            assert not re.search(r"`[A-Z_]+`|\w+ : |, or None", meaning), (key, meaning)


def test_the_page_has_the_table_and_the_first_keys():
    """The page of the documentation includes what is made, and explains `type`, which the records do not list."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "formats" / "survey-file.md").read_text("utf-8")
    assert "made/survey-keys.md" in page
    for kind in TYPES:
        assert kind.removeprefix("type = ") in page
