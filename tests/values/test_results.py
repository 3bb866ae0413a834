"""Every result has the same few methods, is equal by value, and pickles."""

import inspect
import io
import json
import pickle
import re
import subprocess
import sys
from dataclasses import is_dataclass, replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from results_made import FLIP, P, Q, estimated, results
from scipy.stats import norm, rv_histogram

from ldpopt import Channel, Divergence, InvalidInput, LocalDP, MutualInformation, mechanisms, optimal_channel
from ldpopt.design import AgainstSet, ExpectedLoss, Hull, WorstOf
from ldpopt.design.codec.kinds import UNTAGGED_TYPES, encodable_subtypes, encodable_types, fields
from ldpopt.design.estimation.branches import Branches, Sizes
from ldpopt.design.estimation.relaxation import PolicyRelaxation, Relaxation
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.design.estimation.thresholds import Scarf, Thresholds
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.outputs.proof import BoxPrices, BranchDual, EntrySplit, Leaf, Split
from ldpopt.design.ratios.proof import TermMultiplier
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.against_set import LowerLine
from ldpopt.divergences import KL, FDivergence, hockey_stick
from ldpopt.frontiers import Frontier
from ldpopt.privacy import Claim, TradeOffCurve
from ldpopt.values.results import ByValue, Pictured, Result, Rows, cell_text, jsonable, left_out

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from public_names import is_class, registry

sys.path.pop(0)

CLASSES = {entry.value for entry in registry().values() if is_class(entry.value)}


@pytest.fixture
def made():
    """One result of every class."""
    return results()


def name(one):
    return type(one).__name__


def fourth_power(t):
    return (t - 1) ** 4


@pytest.mark.full
def test_every_public_result_is_made_here(made):
    """The walk misses no public class of results; there are eighty of them, twenty certificates among them."""
    kinds = CLASSES - {Claim, Result, Pictured, Rows}
    wanted = {one for one in kinds if issubclass(one, Result) and not inspect.isabstract(one)}
    missing = wanted - {type(one) for one in made}
    assert not {one.__name__ for one in missing}
    assert len(wanted) >= 80
    assert sum(issubclass(one, Certificate) for one in wanted) >= 20


def test_every_certificate_that_files_know_is_made_here(made):
    """The walk misses no class of certificates, public or not, that a design may have."""
    assert set(encodable_subtypes(Certificate)) <= {type(one) for one in made}


def test_public_functions_return_results():
    """A public dataclass that a public function returns is a result, or one of those that a person describes."""
    functions = [entry.value for entry in registry().values() if inspect.isfunction(entry.value)]
    returned = " ".join(str(inspect.signature(one).return_annotation) for one in functions)
    words = set(re.findall(r"\w+", returned))
    found = {one for one in CLASSES if is_dataclass(one) and one.__name__ in words and not issubclass(one, Result)}
    described = {"HadamardResponse", "LocalHashing", "UnaryEncoding", "PaperDevice", "Reference", "StaticFile"}
    described |= {"DesignProgram"}
    described |= {"SampleDesign", "ZCDP", "RoundState", "Experiment", "ConcentratedLDP", "SurveySpec", "Staircase"}
    assert {one.__name__ for one in found} <= described


@pytest.mark.full
def test_results_have_the_same_methods_and_rows(made):
    """JSON-ready values, a frame of pandas and of Polars, CSV, LaTeX and HTML, which all have the same rows."""
    for one in made:
        told = one.to_dict()
        assert json.loads(json.dumps(told, allow_nan=False)) == told
        frame = one.to_pandas()
        assert isinstance(frame, pd.DataFrame)
        other = one.to_polars()
        assert isinstance(other, pl.DataFrame)
        assert len(frame) == len(other) == len(pd.read_csv(io.StringIO(one.to_csv())))
        html = one._repr_html_()
        assert html.startswith("<table>")
        assert html.count("<table>") == html.count("</table>")
        if len(frame) > 20 and one._limit == 20:
            assert f"first 20 of {len(frame)} rows" in html
        latex = one.to_latex()
        assert latex.startswith("\\begin{tabular}{")
        assert {line.count(" & ") for line in latex.splitlines() if line.endswith("\\\\")} == {len(one._cells()) - 1}


@pytest.mark.full
def test_results_draw_on_the_axes_of_the_caller(made):
    """What has a picture draws it on axes of its own, or on those it is given."""
    for one in [one for one in made if isinstance(one, Pictured)]:
        ax = one.plot()
        assert ax.get_xlabel()
        assert one.plot(ax=ax) is ax


def test_results_survive_pickling_unchanged(made):
    """A result that went through a pickle is equal, hashes alike, and has read-only arrays where it had them."""
    for one in made:
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        assert hash(again) == hash(one)
        assert one != "something else"
        assert pickle.loads(pickle.dumps(again)) == one
        for field, value in vars(one).items():
            if isinstance(value, np.ndarray) and field in vars(again):
                assert vars(again)[field].flags.writeable == value.flags.writeable


def words(told):
    """Every text in a nest of dictionaries and lists."""
    if isinstance(told, str):
        return [told]
    return [one for part in (told.values() if isinstance(told, dict) else told if isinstance(told, list) else ())
            for one in words(part)]  # fmt: skip


def test_certificates_tell_their_kind_and_all_their_numbers(made):
    """A certificate's dictionary names its class, and has every number as a number: no array is shown as text."""
    for one in [one for one in made if isinstance(one, Certificate)]:
        told = one.to_dict()
        assert told["certificate"] == type(one).__name__
        assert repr(one).startswith(f"{type(one).__name__}(bound=")
        assert not [text for text in words(told) if "array(" in text or " object at " in text]
        assert " object at " not in one.to_csv()


def test_a_tree_of_boxes_is_exported_node_by_node(made):
    """The parts of a certificate are dictionaries of their fields, with their kind."""
    tree = next(one for one in made if isinstance(one, BranchDual))
    told = tree.to_dict()["nodes"]
    assert [node["kind"] for node in told] == [type(node).__name__ for node in tree.nodes]
    root, leaf = tree.nodes[0], tree.nodes[-1]
    assert told[0] == {"kind": "Split", "output": root.output, "cut": root.cut, "left": root.left, "right": root.right}
    assert told[-1]["rows"] == leaf.rows.tolist()
    assert told[-1]["terms"][0]["values"] == leaf.terms[0].values.tolist()


def _parts(seed):
    def draw(*shape):
        return np.random.default_rng(seed).random(shape)

    term = TermMultiplier(0, np.array([0, 1]), draw(2, 3))
    yield from (term, Leaf(draw(3), (term,), (None, draw(2)), draw(2, 3), draw(1)), Split(0, draw().item(), 1, 2))
    yield from (Relaxation(draw(2, 3), draw(2)), PolicyRelaxation(draw(4)), Branches(draw(3)))
    yield from (LowerLine(draw(3), draw(2, 3)), Sizes(), Scarf(), Thresholds(draw().item()))
    yield SymmetricScores(draw().item(), (2, 3))
    yield from (EntrySplit(0, draw().item(), 1, 2, 3), BoxPrices(draw(3), draw(3, 3), draw(1)))


def test_parts_of_certificates_are_equal_by_value():
    """Every kind of part that a design file may hold is equal to its copy and its pickle, and to no other."""
    told = {
        *encodable_subtypes(Kind),
        *(part for kind in encodable_subtypes(Kind) for part in kind.takes),
        *UNTAGGED_TYPES,
        TradeOffCurve,
    }
    assert {type(one) for one in _parts(1)} == set(encodable_types().values()) - told
    for one, same, other in zip(_parts(1), _parts(1), _parts(2), strict=True):
        assert one == same == pickle.loads(pickle.dumps(one))
        assert (one == other) is (not vars(one))  # Two kinds hold no numbers.
        assert hash(one) == hash(same)
        assert json.loads(json.dumps(jsonable(one)))["kind"] == type(one).__name__
    for one in encodable_types().values():
        assert issubclass(one, ByValue) or not any(is_array(hint) for hint, _ in fields(one).values()), one


def is_array(hint):
    return "ndarray" in str(hint)


def test_a_changed_number_makes_another_certificate(made):
    """Two certificates differ as soon as one entry of one array differs by an ulp."""
    for one in [one for one in made if isinstance(one, Certificate)]:
        for field, value in vars(one).items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
                other = value.copy()
                other.flat[0] = np.nextafter(other.flat[0], np.inf)
                assert replace(one, **{field: other}) != one
                assert replace(one, **{field: value.copy()}) == one


@pytest.mark.parametrize("pair", [mechanisms.Laplace(1.0).pair, mechanisms.Gaussian(1.0).pair], ids=name)
def test_pairs_in_closed_form_pickle(pair):
    """Pairs of densities are functions of a module, and go through a pickle."""
    assert pickle.loads(pickle.dumps(pair)) == pair


def test_different_results_differ(made):
    """No two of the results are equal that are not the same."""
    for i, one in enumerate(made):
        assert [at for at, other in enumerate(made) if other == one] == [i], one


def test_an_estimate_pickles_after_use():
    """What was computed on the way, functions among it, is not pickled, and is there again when it is asked for."""
    made = estimated()[0]
    before = made.intervals().lower
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again.intervals().lower, before)
    assert again == made


def test_designs_of_lambdas_say_why_they_do_not_pickle():
    """A lambda has no name that a pickle could keep, which the error says; a function of a module has one."""
    named = FDivergence(fourth_power, name="fourth power")
    posed = optimal_channel(Divergence(named, P, Q), LocalDP(1.0))
    assert pickle.loads(pickle.dumps(posed)) == posed
    own = optimal_channel(Divergence(FDivergence(lambda t: (t - 1) ** 4, name="mine"), P, Q), LocalDP(1.0))
    with pytest.raises(InvalidInput, match=r"pickle of mine: expected functions .*cloudpickle"):
        pickle.dumps(own)
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(own)).value == own.value


def test_divergences_are_equal_by_recipe_or_by_their_functions():
    """Named divergences and members of families are equal by name and parameter; functions equal themselves only."""
    assert pickle.loads(pickle.dumps(KL)) is KL
    assert hockey_stick(1.5) == hockey_stick(1.5) != hockey_stick(2.0)
    mine = FDivergence(fourth_power, name="fourth power")
    assert mine == pickle.loads(pickle.dumps(mine)) == FDivergence(fourth_power, name="fourth power")
    assert mine != FDivergence(lambda t: (t - 1) ** 4, name="fourth power")


def test_utilities_and_constraints_are_equal_by_value():
    """Arrays, laws and graphs count by what they hold, also after a pickle."""
    assert Divergence(KL, P, Q) == Divergence(KL, P, Q) != Divergence(KL, Q, P)
    assert Divergence(KL, norm(0, 1), norm(1, 1)) == Divergence(KL, norm(0, 1), norm(1, 1))
    assert Divergence(KL, norm(0, 1), norm(1, 1)) != Divergence(KL, norm(0, 1), norm(2, 1))
    assert MutualInformation(P) == MutualInformation(P) != MutualInformation(Q)
    arrays = np.array(P), np.array(Q)
    for kind, given, same in (
        (WorstOf, (KL, P, [Q]), (KL, arrays[0], arrays[1:])),
        (ExpectedLoss, (P, [[0, 1], [1, 0], [1, 1]]), (arrays[:1], np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))),
        (ExpectedLoss, ([P, Q], np.eye(3)), (arrays, np.eye(3))),
        (AgainstSet, (KL, P, Hull([Q])), (KL, arrays[0], Hull(arrays[1:]))),
        (AgainstSet, (KL, Hull([Q]), P), (KL, Hull(arrays[1:]), arrays[0])),
    ):
        assert kind(*given) == kind(*same)
        assert hash(kind(*given)) == hash(kind(*same))
    assert LocalDP(1.0, nx.path_graph(3)) == LocalDP(1.0, nx.path_graph(3)) != LocalDP(1.0, nx.cycle_graph(3))
    assert LocalDP(1.0, nx.path_graph(3)) != LocalDP(1.0)
    heavy = nx.Graph()
    heavy.add_edge(0, 1, weight=2.0)
    light = nx.Graph()
    light.add_edge(0, 1, weight=1.0)
    assert LocalDP(1.0, heavy) != LocalDP(1.0, light)
    made = optimal_channel(Divergence(KL, norm(0, 1), norm(1, 1)), LocalDP(1.0))
    assert pickle.loads(pickle.dumps(made)) == made
    laws = [rv_histogram((counts, [0.0, 1.0, 2.0]), density=False).freeze() for counts in ([1, 3], [3, 1])]
    assert Divergence(KL, laws[0], laws[1]) != Divergence(KL, laws[1], laws[0])


def test_equality_covers_zero_nan_and_kinds():
    """A negative zero is zero, NaN equals NaN, whole numbers equal the same floats, and shapes count."""

    class Held(ByValue):
        def __init__(self, value):
            self.value = value

    for a, b in (
        (np.array([0.0, np.nan]), np.array([-0.0, np.nan])),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (float("nan"), np.float64("nan")),
        ({"a": np.ones(2)}, {"a": np.ones(2)}),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]})),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})),
    ):
        assert Held(a) == Held(b)
        assert hash(Held(a)) == hash(Held(b))
    for a, b in (
        (np.ones(4), np.ones((2, 2))),
        (np.array([2**53]), np.array([2**53 + 1])),
        (np.array([1.0, 1.0 + 2**-52]), np.ones(2)),
        (np.array([5e-324]), np.zeros(1)),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
        (lambda: 1, lambda: 1),
    ):
        assert Held(a) != Held(b)


def test_printed_limits_are_not_understated(made):
    """Whatever a table calls a limit or an upper bound is printed at its value or above, lower bounds at or below."""
    for one in made:
        cells = dict(one._cells())
        for column, values in one._columns().items():
            for value, cell in zip(values, cells.get(column, []), strict=False):
                if isinstance(value, float) and one._is_limit(column):
                    assert not float(cell) < value
                if isinstance(value, float) and column == "lower_bound":
                    assert not float(cell) > value


def test_cut_tables_state_the_number_of_rows(made):
    """HTML shows twenty rows and columns, and says of how many; labels are escaped."""
    html = Channel(np.full((24, 30), 1 / 30), [f"<{x}>" for x in range(24)])._repr_html_()
    assert "(first 20 of 24 rows, first 20 of 30 columns)" in html
    assert "&lt;19&gt;" in html
    assert "&lt;20&gt;" not in html
    assert "first" not in Channel(np.full((20, 20), 1 / 20))._repr_html_()
    assert left_out((20, 20, "rows")) == ""
    assert next(one for one in made if isinstance(one, Frontier))._repr_html_().count("first 20 of 24 rows") == 1


def test_channels_survive_a_round_trip_through_frames():
    """pandas and Polars give the channel back with its labels; outputs that Polars could not tell apart are refused."""
    named = Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"], ["A", "B"])
    for one in (named, FLIP, Channel([[0.75, 0.25], [0.25, 0.75]], inputs=[3, 1], outputs=["a", "b"])):
        assert Channel(one.to_pandas()) == one
        assert Channel(one.to_polars()) == one
    plain = Channel([[0.75, 0.25], [0.25, 0.75]])
    assert Channel(plain.to_pandas()) == plain
    assert Channel(plain.to_polars()).outputs == ("0", "1")  # the names of a Polars frame are text
    assert Channel(pl.DataFrame({"A": [0.75, 0.25], "B": [0.25, 0.75]}), inputs=["yes", "no"]) == named
    with pytest.raises(InvalidInput, match="differ as text"):
        Channel([[0.5, 0.5]], outputs=[0, "0"]).to_polars()
    with pytest.raises(InvalidInput, match="inputs: expected those of the column 'answer'"):
        Channel(named.to_polars(), inputs=["no", "yes"])


def test_latex_of_a_channel_is_a_table():
    """Labels are escaped, numbers stand to the right, and infinities and powers are symbols."""
    latex = Channel([[0.75, 0.25], [0.25, 0.75]], ["50 %", "a_b"], ["x & y", "{}"]).to_latex()
    assert latex == (
        "\\begin{tabular}{lrr}\n\\toprule\n"
        "answer \\textbackslash{} report & x \\& y & \\{\\} \\\\\n\\midrule\n"
        "50 \\% & 0.7500 & 0.2500 \\\\\na\\_b & 0.2500 & 0.7500 \\\\\n\\bottomrule\n\\end{tabular}\n"
    )

    class Told(Result):
        def _columns(self):
            return {"bound": [np.inf, -1e-9, None]}

    assert "$\\infty$ \\\\\n$-1 \\cdot 10^{-9}$ \\\\\n \\\\" in Told().to_latex()


def test_values_as_people_and_as_json_read_them():
    """Numbers that are not finite are text in JSON, since strict JSON has none of them."""
    assert jsonable([np.nan, -np.inf, np.int64(3), {1: (2, 3)}]) == ["nan", "-inf", 3, {"1": [2, 3]}]
    assert cell_text((0.1, "a")) == "0.1, a"


def test_replaced_results_differ():
    """A changed field makes another result, however small the change."""
    made = optimal_channel(Divergence(KL, P, Q), LocalDP(1.0))
    assert made == optimal_channel(Divergence(KL, P, Q), LocalDP(1.0))
    assert made != replace(made, value=np.nextafter(made.value, 1.0))
    assert made != replace(made, channel=Channel(np.nextafter(made.channel.matrix, 1.0)))


def test_pictures_load_when_they_are_drawn():
    """A result without a picture on the screen does not load matplotlib."""
    code = (
        "import sys, ldpopt\n"
        "ldpopt.Channel([[1.0]])._repr_html_(); ldpopt.Channel([[1.0]]).to_latex()\n"
        "assert 'matplotlib' not in sys.modules and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=600)
