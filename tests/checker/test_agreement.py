"""The kernel and the checker judge the same files: the quick form of `experiments/trust/agreement.py`."""

import importlib.util
import json
from itertools import islice
from pathlib import Path

import mpmath
import numpy as np
import pytest

import ldpopt
from ldpopt.design.files import design_text
from ldpopt_check import proofs

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "trust" / "agreement.py"


def _load():
    spec = importlib.util.spec_from_file_location("agreement", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


agreement = _load()


def test_they_agree_about_designs(tmp_path):
    """Both accept 30 random designs, and their values and bounds agree to 1e-9 of themselves."""
    for number in range(30):
        _, design = agreement.designed(20, number, largest=10)
        assert agreement.disagreement(design, tmp_path) == ""


def test_they_refuse_forgeries(tmp_path):
    """Neither accepts one of 30 files in which something that is claimed is false."""
    for how, document in islice(agreement.forgeries(20), 30):
        assert agreement.accepted_by(document, tmp_path) == [], how


def test_a_disagreement_is_seen(tmp_path, monkeypatch):
    """Were one of the two off by 1e-8, or blind, it would be said."""
    _, design = agreement.designed(20, 0)
    check = agreement.checker.check

    def off(document):
        found = check(document)
        return found._replace(bound=tuple(end * (1 + 1e-8) for end in found.bound))

    monkeypatch.setattr(agreement.checker, "check", off)
    assert "the bounds differ" in agreement.disagreement(design, tmp_path)
    monkeypatch.setattr(agreement.checker, "check", lambda document: check(document)._replace(failures=[]))
    _, forged = next(agreement.forgeries(20))
    assert agreement.accepted_by(forged, tmp_path) == ["the checker"]


@pytest.mark.parametrize(("tamper", "false"), agreement.FORGERIES[:4])
def test_an_honest_file_is_no_forgery(tamper, false, tmp_path):
    """What tells that a file is false says so of none that is true."""
    _, design = agreement.designed(20, 1)
    assert not false(agreement.saved(design, tmp_path)[1])


def test_blocks_of_large_files_are_screened_rightly(monkeypatch):
    """For 61 inputs, with honest and with lower potentials: what is said to be paid for is so by another library."""
    p0, p1 = np.random.default_rng(3).dirichlet(np.ones(61), 2)
    design = ldpopt.optimal_channel(ldpopt.Divergence(ldpopt.KL, p0, p1), [ldpopt.LocalDP(1.0)])
    seen, pays = [], proofs.Chords.pays
    monkeypatch.setattr(proofs.Chords, "pays", lambda own, i, j: seen.append((own, i, j)) or pays(own, i, j))
    assert agreement.checker.check(json.loads(design_text(design))).failures == []
    own = seen[0][0]
    u, settled = own.u, 0
    for factor in (1.0, 0.99, 0.9):
        own.u = [one * factor for one in u]
        for _, i, j in seen[::5]:
            t, (q0, q1) = mpmath.mpf(own.t), own.sums
            a, b = t + q0[j] - q0[i], t + q1[j] - q1[i]
            paid = pays(own, i, j)
            settled += paid
            assert not paid or a * mpmath.log(a / b) - (a - b) <= own.charge + own.u[j] - own.u[i]
    assert settled > 400
