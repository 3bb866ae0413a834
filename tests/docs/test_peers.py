"""The page about other packages says what is measured, where it can be measured."""

import importlib.util
import math
import re
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import ldpopt
import ldpopt_survey as survey
from ldpopt import Channel, Divergence, LocalDP, TotalVariation, audit, mechanisms, optimal_channel, privacy
from ldpopt.divergences import KL

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import peer_page
import peers
from peer_probes import own_probes
from peer_probes.base import EXACT, FEATURES, MODULES, PROBES, answered

sys.path.pop(0)

pytestmark = pytest.mark.full
assert own_probes.__name__  # It registers the probes of ldpopt.

TEXT = peers.PAGE.read_text("utf-8")
NUMBER = re.compile(r"\d[\d,]*\.?\d*")


def _part(name):
    return TEXT.split(f"<!-- made: {name} -->")[1].split(f"<!-- end of {name} -->")[0].strip()


@pytest.mark.parametrize("name", ["composition", "counts"])
def test_computed_numbers_are_on_the_page(name):
    """The numbers of the page are those that this package and dp-accounting give now, to a tenth of a per cent."""
    pytest.importorskip("dp_accounting")
    installed = metadata.version("dp-accounting")
    if f"`dp-accounting` {installed}" not in _part(name):
        pytest.skip(f"the page is about another version than {installed}")
    made = peers.MADE[name]()
    assert NUMBER.sub("#", made) == NUMBER.sub("#", _part(name))
    pairs = zip(NUMBER.findall(made), NUMBER.findall(_part(name)), strict=True)
    assert all(float(a.strip(",.")) == pytest.approx(float(b.strip(",.")), rel=1e-3, abs=0.011) for a, b in pairs)


RECORD = peer_page.recorded()
OWN = RECORD["ldpopt"]["features"]


@pytest.mark.parametrize("name", ["features", "searched", "evidence", "loss", "pitfalls"])
def test_recorded_answers_of_packages_are_on_the_page(name):
    """Tables, times and pitfalls are those of the record, letter by letter."""
    assert _part(name) == peers.MADE[name]()


def test_the_record_is_complete():
    """Every package was asked for every feature, no probe failed, and the versions of the page are those asked."""
    for peer in MODULES:
        assert set(RECORD[peer]["features"]) == set(FEATURES)
        assert "failed" not in {one["answer"] for one in RECORD[peer]["features"].values()}
    for peer in peers.INSTALLED:
        assert RECORD[peer]["names"] > 40
        assert f"| `{peer}` {RECORD[peer]['version']} |" in TEXT
        assert {RECORD[peer]["version"]} == set(re.findall(rf"`{peer}` (\d[\d.]*\d)", TEXT))


@pytest.mark.parametrize("feature", FEATURES)
def test_the_column_of_ldpopt_is_true_now(feature):
    """Each "yes" of ldpopt's own column is run; where there is a dash, there is no probe."""
    asked = PROBES["ldpopt"].get(feature)
    assert (OWN[feature] if asked is None else answered(asked))["answer"] == ("no" if asked is None else "yes")
    if asked is not None:
        assert answered(asked) == OWN[feature]


def test_cited_names_of_ldpopt_exist():
    """The names in ldpopt's column of evidence are public names of the package, or files of the repository."""
    for answer in OWN.values():
        for name in answer.get("by", "").split(", ") if answer["answer"] == "yes" else ():
            holders = [
                ldpopt,
                mechanisms,
                survey,
                privacy,
                ldpopt.design,
                ldpopt.composition,
                mechanisms.FrequencyOracle,
            ]
            package, _, inner = name.partition(".")
            if package.startswith("ldpopt_"):
                found = importlib.util.find_spec(package) and (not inner or _has(survey, inner.split(".")))
            else:
                found = any(_has(holder, name.split(".")) for holder in holders)
            assert found, name


def _has(holder, steps):
    for step in steps:
        # What a dataclass declares without a default is no attribute of the class.
        if not hasattr(holder, step) and step not in getattr(holder, "__annotations__", {}):
            return False
        holder = getattr(holder, step, None)
    return True


def test_the_exact_composition_that_others_are_compared_with():
    """The binomial sum of the probes is what `k_fold` computes exactly [KOV15, Thm 3.3]."""
    assert ldpopt.k_fold(0.1, count=100).epsilon_at(1e-6) == pytest.approx(EXACT, rel=1e-10)


PAIR = Channel([[0.8, 0.2], [0.2, 0.8]], ["no", "yes"], ["no", "yes"])
THREE = Channel([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], ["a", "b", "c"], ["a", "b", "c"])


def _answers(count=600):
    rng = np.random.default_rng(4)
    words = {name: rng.choice(["no", "yes"], count).tolist() for name in ("evade", "drinks", "smokes")}
    return {**words, "vote": rng.choice(["a", "b", "c"], count).tolist(), "hours": rng.normal(size=count).tolist()}


DATA = _answers()


def _devices():
    made = [mechanisms.Warner(0.7), mechanisms.ForcedResponse(0.2, 0.1), mechanisms.UnrelatedQuestion(0.6, 0.3)]
    return all(math.isfinite(one.epsilon) and 0 < one.eta < 1 for one in (*made, mechanisms.Kuk(0.7, 0.3)))


def _mangat():
    # Who has the trait says "yes"; who has not says "yes" with probability 0.3.
    return math.isinf(privacy.local_dp([[0.7, 0.3], [0.0, 1.0]]).value)


def _regressed(fit, formula, *private):
    made = fit(formula, DATA, {name: THREE if name == "vote" else PAIR for name in private})
    return bool(np.isfinite(made.coefficients).all())


def _outcome():
    return all(_regressed(survey.logit_regression, f"{name} ~ hours", name) for name in ("evade", "vote"))


def _predictors():
    private = ("drinks", "smokes")
    return _regressed(survey.linear_regression, "hours ~ drinks + smokes", *private) and all(
        _regressed(survey.logit_regression, f"{name} ~ drinks + smokes", *private, name) for name in ("evade", "vote")
    )


def _both():
    return _regressed(survey.logit_regression, "evade ~ drinks", "evade", "drinks")


def _optimal():
    return optimal_channel(Divergence(KL, [0.6, 0.4], [0.3, 0.7]), [LocalDP(1.0), TotalVariation(0.3)]).certified


def _cheaters():
    told = [({"no": 60, "yes": 40}, survey.directed_answers(0.25))]
    told += [({"no": 40, "yes": 60}, survey.directed_answers(0.75))]
    return survey.estimate_compliance(told, "no").among_compliers("yes") is not None


IN_R = {
    "Warner, forced response, unrelated question, Kuk": _devices,
    "crosswise, triangular": lambda: mechanisms.Crosswise(0.3).epsilon > 0 < mechanisms.Triangular(0.3).eta,
    "Mangat, Christofides, Devore, Singh and others": _mangat,
    "any matrix, measured": lambda: len(audit([[0.7, 0.3], [0.4, 0.6]]).guarantees) > 5,
    "optimal design within $\\varepsilon$ and $\\eta$": _optimal,
    "numbers as answers": lambda: survey.numeric_question(0.0, 10.0, 1.0, 0.5) is not None,
    "shares with intervals": lambda: survey.estimate({"no": 60, "yes": 40}, PAIR).intervals().upper[0] < 1,
    "private outcome: logistic": _outcome,
    "private predictor": _predictors,
    "private outcome and predictor at once": _both,
    "correlations": lambda: survey.two_way(DATA["evade"], DATA["drinks"], PAIR, PAIR).shape == (2, 2),
    "cheating and non-compliance": _cheaters,
    "power, sample size": lambda: survey.respondents_to_distinguish(PAIR, [0.9, 0.1], [0.4, 0.6]).respondents > 1,
    "weights, strata, clusters, finite populations": lambda: "SampleDesign" in PROBES["ldpopt"]["samples"](),
    "replicate weights, raking, post-stratification": lambda: "rake" in PROBES["ldpopt"]["replicates"](),
    "files randomized, with keys and manifests": lambda: callable(survey.privatize) and callable(survey.Memoized),
}
"""What the table of the packages of R says of ldpopt."""


def _rows_in_r():
    section = TEXT.split("## Randomized response in R")[1].split("\n## ")[0]
    rows = [re.split(r"(?<!\\)\|", line) for line in section.splitlines() if line.startswith("| ")]
    return {row[1].strip(): row[-2].strip() for row in rows[1:]}


@pytest.mark.parametrize("row", IN_R)
def test_the_table_of_r_is_true_of_ldpopt(row):
    """Each row where ldpopt has something is run."""
    assert IN_R[row]()


def test_every_row_of_the_table_of_r_is_run():
    """All rows but those in which ldpopt says no."""
    assert {row for row, said in _rows_in_r().items() if not said.startswith("no:")} == set(IN_R)


@pytest.mark.skipif(not peers.RESULTS.is_file(), reason="the recorded run is only in a clone")
def test_the_table_of_speed_is_that_of_the_recorded_run():
    """Nothing in the table was typed."""
    assert _part("speed") == peers.speed()


def test_every_made_part_has_its_place():
    """The page with its parts made anew differs in nothing but these parts."""
    for name in peers.MADE:
        assert TEXT.count(f"<!-- made: {name} -->") == TEXT.count(f"<!-- end of {name} -->") == 1
