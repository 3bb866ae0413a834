"""The kernel and the checker judge the same files: the quick form of `experiments/trust/agreement.py`."""

import importlib.util
from itertools import islice
from pathlib import Path

import pytest

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
