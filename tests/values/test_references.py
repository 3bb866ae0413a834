"""Every paper that is cited is in the registry, and every entry can be found."""

import re

import pytest
from packages import PACKAGES, modules

from ldpopt.errors import InvalidInput
from ldpopt.values.references import REFERENCES, reference

SOURCES = sorted(modules(*PACKAGES).values())

# A citation: a key alone, or a key, a comma and a place (a theorem, section, equation, page, ...).
PLACE = r"(?:Thm|Prop|Lemma|Cor|Def|Remark|Algorithm|Figure?|Fig|Table|section|sections|eq|App|Appendix|VI|IX|V|I)\b"
CITATION = re.compile(rf"\[([A-Z][A-Za-z]*\d*)(?:, {PLACE}[^\]\[]*)?(?:; ([A-Z][A-Za-z]*\d*), {PLACE}[^\]\[]*)?\]")
# Annotations that look alike.
OTHER = {"Any", "Array", "Axes", "Cell", "Function", "Guarantee", "Label", "Names", "RFC", "Sterbenz"}


def citations():
    found = set()
    for path in SOURCES:
        for match in CITATION.finditer(path.read_text("utf-8")):
            if "," in match.group(0):
                found |= {(key, path.name) for key in match.groups() if key and key not in OTHER}
    return found


def test_every_cited_key_is_registered():
    """A citation like [GI, Thm 5] in a docstring or comment names a registered paper."""
    cited = citations()
    assert {"GI", "KOV14", "DJW"} <= {key for key, _ in cited}
    unknown = {(key, name) for key, name in cited if key not in REFERENCES}
    assert not unknown


def test_keys_are_distinct_and_entries_complete():
    """Every entry has its own key, authors, title, venue and a plausible year."""
    for key, entry in REFERENCES.items():
        assert entry.key == key
        assert all((entry.authors, entry.title, entry.venue))
        assert 1900 < entry.year < 2030


def test_a_citation_finds_its_paper():
    """A key, with or without brackets and place, finds the paper."""
    for citation in ("GI", "[GI]", "GI, Thm 5", "[GI, section VII]"):
        assert reference(citation).title == "Total Variation Meets Differential Privacy"


def test_an_unknown_key_is_an_error():
    """A key that is not registered is an error that lists those that are."""
    with pytest.raises(InvalidInput, match=r"reference key: expected one of GI, BS, M, .*, got 'XYZ, Thm 1'"):
        reference("XYZ, Thm 1")


def test_papers_are_printed_as_text_and_bibtex():
    """A paper prints as one line and as BibTeX with authors joined by and."""
    paper = reference("GI")
    assert str(paper).startswith("[GI] Elena Ghazi, Ibrahim Issa. Total Variation Meets Differential Privacy. ")
    assert "author = {Elena Ghazi and Ibrahim Issa}" in paper.bibtex
    assert paper.bibtex.count("{") == paper.bibtex.count("}")


def test_entries_have_their_own_kinds():
    """Proceedings, books and preprints are entries of their own kinds; a title that is a question has no full stop."""
    kinds = {"GI": "article", "CIM": "inproceedings", "DR": "misc", "Scarf": "book"}
    assert {key: reference(key).bibtex[1:].split("{")[0] for key in kinds} == kinds
    assert "Positively Correlated? Combinatorica" in str(reference("Talagrand"))
