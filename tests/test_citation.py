"""`cite` names the papers behind a result."""

import pytest

from ldpopt import Divergence, InvalidInput, LocalDP, TotalVariation, bounds, cite, optimal_channel
from ldpopt.design import PatternLP
from ldpopt.divergences import KL
from ldpopt.privacy import audit, local_dp

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


def test_guarantees_functions_and_rows_are_cited_by_what_they_say():
    """A guarantee and a bound's row by their reference, a function by its documentation, a collection by all."""
    assert keys(local_dp([[0.7, 0.3], [0.4, 0.6]])) == ["GI"]
    assert keys(bounds.duchi_jordan_wainwright) == ["DJW", "GI"]
    table = bounds.compare([0.9, 0.1], [0.4, 0.6], 1.0)
    assert set(keys(table.rows)) == {"AZ", "DJW", "Dobrushin", "GI", "KOV14"}
    assert {"BS", "DR", "GI", "M"} <= set(keys(audit([[0.7, 0.3], [0.4, 0.6]]).guarantees))


def test_keys_and_citations():
    """A key, a citation and a double citation find their papers, printed as text or BibTeX."""
    assert keys("GI") == keys("GI, Thm 5") == keys("[GI, Thm 5]") == ["GI"]
    assert keys("[DJW, Thm 1; GI, Thm 6]") == ["DJW", "GI"]
    assert repr(cite("GI")).startswith("[GI] Elena Ghazi")
    assert cite("[DJW, Thm 1; GI, Thm 6]").bibtex.count("@article{") == 2


@pytest.mark.parametrize("nothing", ["XYZ", 3.0, object(), []])
def test_what_cites_nothing_is_an_error(nothing):
    """An unknown key, and a thing without a citation, is an error."""
    with pytest.raises(InvalidInput):
        cite(nothing)


def test_constraints_on_the_outputs_cite_their_sources():
    """An invariant channel cites PRAM, the search and the branching; a capacity its definition."""
    from ldpopt.design import CapacityBounded, Invariant, Outputs
    from ldpopt.privacy import RestrictedTotalVariation

    invariant = optimal_channel(U, [LocalDP(1.0), Invariant([0.5, 0.3, 0.2])])
    assert {"PRAM", "CCP", "FS", "GI"} <= set(keys(invariant))
    assert "CIM" in keys(CapacityBounded([0, 1], RestrictedTotalVariation(), 0.2))
    assert "KOV14" in keys(Outputs(2))
