"""Guarantees of exact channels."""

import io
import json
import math
import subprocess
import sys
from fractions import Fraction

import mpmath
import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.exact import ExactChannel
from ldpopt.privacy import Audit, audit, local_dp, mcdp, proved, zcdp
from ldpopt.privacy.trade_off import TradeOffCurve


@pytest.mark.parametrize("seed", range(20))
def test_proved_guarantees_cover_the_rational_truth(seed):
    """Epsilon and eta of an exact channel lie between the true values of its integers and two ulps above."""
    rng = np.random.default_rng(seed)
    k, m = (int(n) for n in rng.integers(2, 6, 2))
    weights = rng.multinomial(2**40, rng.dirichlet(np.ones(m)), size=k) + 1
    weights[:, 0] += 2**41 - weights.sum(axis=1)
    rows = [[int(w) for w in row] for row in weights]
    epsilon, eta = proved(ExactChannel(weights, bits=41))
    ratio = max(Fraction(a, b) for column in zip(*rows, strict=True) for a in column for b in column)
    distance = max(sum(max(a - b, 0) for a, b in zip(p, q, strict=True)) for p in rows for q in rows)
    with mpmath.workdps(50):
        truth = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert epsilon.lower <= truth <= epsilon.value <= truth * (1 + 2.0**-51)
    assert Fraction(eta.lower) <= Fraction(distance, 2**41) <= Fraction(eta.value)
    (x, other), (y,) = epsilon.witness.inputs, epsilon.witness.outputs
    assert Fraction(rows[x][y], rows[other][y]) == ratio
    p, q = eta.witness.inputs
    assert sum(rows[p][y] - rows[q][y] for y in eta.witness.outputs) == distance


def test_constant_and_separating_channels_have_extreme_guarantees():
    """Equal rows prove zero without a witness, disjoint rows an infinite epsilon and eta one."""
    assert [(float(g), g.witness) for g in proved(ExactChannel([[1, 3], [1, 3]], bits=2))] == [(0.0, None), (0.0, None)]
    assert [float(g) for g in proved(ExactChannel([[4, 0], [0, 4]], bits=2))] == [math.inf, 1.0]


def test_the_report_contains_the_guarantees_of_the_measures():
    """Each guarantee of the report is the measure's own, and looking one up by its notion finds it."""
    q = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    report = audit(q, features=np.arange(4))
    assert isinstance(report, Audit)
    assert report["local_dp"] == local_dp(q)
    assert report["zcdp"] == zcdp(q)
    assert report["mcdp_tau"] == mcdp(q).tau
    notions = {guarantee.notion for guarantee in report.guarantees}
    assert {"restricted_kl", "restricted_renyi", "restricted_total_variation", "maximal_leakage", "doeblin"} <= notions
    assert isinstance(report.curve, TradeOffCurve)
    with pytest.raises(KeyError):
        report["nothing"]
    with pytest.raises(AttributeError):
        report.curve = None


def test_every_form_shows_every_guarantee():
    """Text, HTML, dictionary, JSON and rich table have one row a guarantee; labels cannot inject markup."""
    from rich.console import Console

    q = Channel([[0.9, 0.1], [0.2, 0.8]], inputs=["<b>yes</b>", "[red]no"])
    report = audit(q)
    rows = len(report.guarantees)
    assert len(str(report).splitlines()) == rows + 1
    html = report.to_html()
    assert html == report._repr_html_()
    assert html.count("<tr>") == rows + 1
    assert "<b>" not in html
    assert "&lt;b&gt;yes" in html
    data = json.loads(report.to_json())
    assert data == report.to_dict() | {"guarantees": json.loads(json.dumps(report.to_dict()["guarantees"]))}
    assert len(data["guarantees"]) == rows
    assert all(g["lower"] <= g["value"] for g in data["guarantees"])
    console = Console(record=True, width=200, file=io.StringIO())
    console.print(report)
    assert "[red]no" in console.export_text()


def test_printed_values_never_understate():
    """Printed guarantees are rounded up, and the Doeblin coefficient, where more is more private, down."""
    q = np.random.default_rng(1).dirichlet(np.ones(4), 3)
    report = audit(q)
    for guarantee, (_, sign, shown, _, _) in zip(report.guarantees, report.rows(), strict=True):
        if guarantee.notion == "doeblin":
            assert sign == "≥"
            assert float(shown) <= guarantee.lower
        else:
            assert sign == "≤"
            assert float(shown) >= guarantee.value


def test_infinite_and_trivial_channels_are_reported():
    """Identity, constant and one-input channels give infinities and zeros, as JSON too."""
    for q in (np.eye(3), [[0.5, 0.5]] * 2, [[1.0]]):
        report = audit(q)
        assert json.loads(report.to_json())["format"] == "ldpopt-audit"
    identity = {g["notion"]: g["value"] for g in audit(np.eye(3)).to_dict()["guarantees"]}
    assert identity["local_dp"] == "inf"


def test_a_policy_graph_reaches_every_measure():
    """With a graph that leaves the revealing pair out, no guarantee is infinite."""
    q = [[0.5, 0.5, 0.0], [0.4, 0.6, 0.0], [0.0, 0.5, 0.5]]
    report = audit(q, nx.Graph([(0, 1)]))
    pairs = [g for g in report.guarantees if g.notion != "mutual_information"]
    assert all(np.isfinite(g.value) for g in pairs)
    assert audit(q)["local_dp"].value == np.inf


def test_measuring_imports_no_solver():
    """Importing the measures loads neither cvxpy nor scipy, networkx or rich; the audit never loads cvxpy."""
    code = (
        "import sys, ldpopt.privacy as p\n"
        "assert not {'cvxpy', 'scipy', 'networkx', 'rich'} & set(sys.modules)\n"
        "p.audit([[.9, .1], [.2, .8]], features=[0, 1])\n"
        "assert 'cvxpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
