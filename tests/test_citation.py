"""`cite` names the papers behind a result."""

import re
from pathlib import Path

import numpy as np
import pytest

import ldpopt
import ldpopt_survey as survey
from ldpopt import Divergence, InvalidInput, LocalDP, TotalVariation, bounds, cite, design, optimal_channel
from ldpopt.composition import compose, k_fold
from ldpopt.design import (
    ApproximateLDP,
    ExpectedLoss,
    FisherInformation,
    MergedPartition,
    MutualInformation,
    PatternLP,
    RenyiLDP,
)
from ldpopt.divergences import KL
from ldpopt.frontiers import frontier
from ldpopt.privacy import PureDP, audit, local_dp
from ldpopt.privacy.conversions import pure_to_zcdp
from ldpopt.values.references import REFERENCES, cited

WARNER = [[0.8, 0.2], [0.2, 0.8]]

U = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])


def keys(result):
    return [paper.key for paper in cite(result)]


def test_a_design_rests_on_its_problem_method_and_proof():
    """A partition cites SPR, a pattern program KOV14, an erasure Dobrushin, and every design the problem's source."""
    limits = [LocalDP(1.0), TotalVariation(0.3)]
    assert {"GI", "SPR"} <= set(keys(optimal_channel(U, limits)))
    assert {"GI", "KOV14"} <= set(keys(optimal_channel(U, limits, method=PatternLP())))
    assert "SPR" not in keys(optimal_channel(U, limits, method=PatternLP()))
    assert {"GI", "Dobrushin"} <= set(keys(optimal_channel(U, TotalVariation(0.3))))


METHODS = {
    "partition": lambda: optimal_channel(U, LocalDP(1.0)),
    "partition of": lambda: optimal_channel(U, LocalDP(1.0), method=MergedPartition(2)),
    "pattern LP": lambda: optimal_channel(U, LocalDP(1.0), method=PatternLP()),
    "erasure": lambda: optimal_channel(U, TotalVariation(0.3)),
    "exchange": lambda: optimal_channel(U, RenyiLDP(2.0, 0.5), certify=False),
    "local search": lambda: optimal_channel(MutualInformation(np.ones(9) / 9), ApproximateLDP(1.0, 0.01)),
    "extreme columns": lambda: optimal_channel(MutualInformation([0.5, 0.3, 0.2]), ApproximateLDP(1.0, 0.01)),
    "linear program on the decisions": lambda: optimal_channel(ExpectedLoss([0.5, 0.5], 1 - np.eye(2)), LocalDP(1.0)),
    "column generation": lambda: optimal_channel(FisherInformation([0.5, 0.3, 0.2]), LocalDP(1.0)),
}
PAPERS = {
    "partition": "SPR", "partition of": "SPR", "pattern LP": "KOV14", "erasure": "Dobrushin", "exchange": "HK",
    "extreme columns": "KOV14", "local search": "CCP",
    "linear program on the decisions": "BCP", "column generation": "KW",
}  # fmt: skip


@pytest.mark.parametrize("start", METHODS)
def test_every_way_to_find_a_channel_has_its_papers(start):
    """A design names the method that found it, and `cite` the method's paper."""
    design = METHODS[start]()
    assert design.method.startswith(start)
    assert PAPERS[start] in keys(design)


def test_every_method_has_its_papers():
    """Each method names registered papers; rounding a design to multiples of 1/D rests on none."""
    for method in design.METHODS:
        keys_in = re.findall(r"[A-Z]{2}\w*|[A-Z][a-z]\w+", re.sub(r", Thm[^;\]]*", "", method.reference))
        assert keys_in or isinstance(method, design.Rounded)
        assert list(cited(method.reference)) == keys_in


def test_a_design_cites_the_method_that_found_it(tmp_path):
    """The papers are those of the method itself, not of one with a similar text, and survive a file."""
    made = optimal_channel(MutualInformation(np.ones(30) / 30), LocalDP(1.0))
    assert "balanced sets" in made.method
    assert "KOV14" in keys(made)
    assert "KW" not in keys(made)
    path = tmp_path / "design.json"
    made.save(path)
    assert keys(design.load_design(path)) == keys(made)


@pytest.mark.parametrize("name", [n for n in survey.__all__ if hasattr(getattr(survey, n), "fit")])
def test_every_estimator_has_its_papers(name):
    """An estimate rests on the papers of its estimator, whichever it is."""
    arguments = (np.linalg.inv(np.transpose(WARNER)),) if name == "LeftInverse" else ()
    made = survey.estimate({0: 40, 1: 60}, WARNER, getattr(survey, name)(*arguments))
    assert keys(made)
    assert set(keys(made)) <= {"Rao", "DLR", "VR"}


@pytest.mark.parametrize(
    ("method", "paper"),
    [(survey.Wald(), "Rao"), (survey.Binomial(), "BCD"), (survey.Simultaneous(), "HBW"), (survey.Bonferroni(), "Rao")],
)
def test_every_interval_has_its_papers(method, paper):
    """Intervals rest on the papers of their method."""
    made = survey.estimate({0: 40, 1: 60}, WARNER)
    assert paper in keys(made.intervals(method=method))


def test_results_of_surveys_and_compositions_name_their_papers():
    """Tests, tables, regressions, bootstraps, protocols, compositions, frontiers and comparisons name their papers."""
    counts = {0: 40, 1: 60}
    rng = np.random.default_rng(1)
    assert keys(survey.goodness_of_fit(counts, WARNER, [0.5, 0.5])) == ["Rao"]
    assert keys(survey.two_sample(counts, {0: 50, 1: 50}, WARNER)) == ["Rao", "SSW"]
    table = survey.two_way_from_counts([[40, 10], [10, 40]], WARNER, WARNER)
    assert keys(table) == keys(table.independence()) == ["Rao", "SSW"]
    assert "Newcombe" in keys(survey.difference(survey.estimate(counts, WARNER), survey.estimate(counts, WARNER)))
    bootstrap = survey.parametric_bootstrap(counts, WARNER, rng, 50)
    assert keys(bootstrap) == keys(bootstrap.intervals()) == ["Efron"]
    assert keys(survey.compare_protocols([0.3, 0.7], survey.HalfWidth(0.05), 1.0)) == ["Kish"]
    assert keys(k_fold(1.0, count=3)) == ["GI"]
    assert keys(compose([[[0.75, 0.25], [0.25, 0.75]]], 2)) == ["GI"]
    assert "GI" in keys(frontier(U, [1.0], [0.1]))
    assert "AZ" in keys(bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0))
    assert keys(pure_to_zcdp(PureDP(1.0))) == ["BS"]


def test_the_citation_file_is_valid():
    """CITATION.cff has what the Citation File Format 1.2.0 requires, and this version."""
    path = Path(__file__).parents[1] / "CITATION.cff"
    if not path.exists():  # an installed package away from its repository
        return
    lines = path.read_text("utf-8").splitlines()
    top = dict(line.split(": ", 1) if ": " in line else (line[:-1], "") for line in lines if line[:1] not in " -#")
    assert {"cff-version", "message", "title", "authors"} <= set(top)
    assert top["cff-version"] == "1.2.0"
    assert top["type"] == "software"
    assert top["version"] == ldpopt.__version__
    assert top["license"] == "Apache-2.0"
    titles = {line.split('"')[1] for line in lines if line.strip().startswith(("title", "- title"))}
    assert titles - {top["title"].strip('"')} <= {paper.title for paper in REFERENCES.values()}


def test_guarantees_functions_and_rows_are_cited_by_their_references():
    """A guarantee and a bound's row by their reference, a function by its documentation, a collection by all."""
    assert keys(local_dp([[0.7, 0.3], [0.4, 0.6]])) == ["GI"]
    assert keys(bounds.duchi_jordan_wainwright) == ["DJW", "GI"]
    table = bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0)
    assert set(keys(table.rows)) == {"ADC", "AZ", "CRS", "DJW", "Dobrushin", "GI", "KOV14", "OP", "SPR"}
    assert {"BS", "DR", "GI", "M"} <= set(keys(audit([[0.7, 0.3], [0.4, 0.6]]).guarantees))


def test_keys_and_citations_find_their_papers():
    """A key, a citation and a double citation find their papers, printed as text or BibTeX."""
    assert keys("GI") == keys("GI, Thm 5") == keys("[GI, Thm 5]") == ["GI"]
    assert keys("[DJW, Thm 1; GI, Thm 6]") == ["DJW", "GI"]
    assert repr(cite("GI")).startswith("[GI] Elena Ghazi")
    both = cite("[DJW, Thm 1; GI, Thm 6]").bibtex
    assert both.startswith("@inproceedings{DJW,")
    assert "\n@article{GI," in both


@pytest.mark.parametrize("nothing", ["XYZ", 3.0, object(), []])
def test_unknown_keys_and_objects_without_citation_are_refused(nothing):
    """An unknown key and an object without a citation are errors."""
    with pytest.raises(InvalidInput):
        cite(nothing)


def test_a_design_for_estimation_rests_on_patterns_and_equivalence():
    """A design for estimation cites the staircase patterns and the equivalence theorem, with its guarantees' papers."""
    design = optimal_channel(FisherInformation([0.5, 0.3, 0.2]), LocalDP(1.0))
    assert {"KOV14", "KW", "GI"} <= set(keys(design))


def test_constraints_on_the_outputs_cite_their_sources():
    """An invariant channel cites PRAM, the search and the branching; a capacity its definition."""
    from ldpopt.design import CapacityBounded, Invariant, Outputs
    from ldpopt.privacy import RestrictedTotalVariation

    invariant = optimal_channel(U, [LocalDP(1.0), Invariant([0.5, 0.3, 0.2])])
    assert {"PRAM", "CCP", "FS", "GI"} <= set(keys(invariant))
    assert "CIM" in keys(CapacityBounded([0, 1], RestrictedTotalVariation(), 0.2))
    assert "KOV14" in keys(Outputs(2))
