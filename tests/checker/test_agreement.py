"""The kernel and the checker judge the same files: the quick form of `experiments/trust/agreement.py`."""

import importlib.util
import json
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import mpmath
import networkx as nx
import numpy as np
import pytest

import ldpopt
from ldpopt.design import (
    AOptimal,
    ApproximateLDP,
    FisherInformation,
    RespondentsBound,
    SharedInformation,
)
from ldpopt.design.design import is_certified
from ldpopt.design.estimation.branches import Sizes
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.relaxation import Relaxation
from ldpopt.design.estimation.thresholds import Scarf
from ldpopt.design.files import design_text
from ldpopt.design.kernel.proof import Dominated, Relaxed
from ldpopt.design.load import load_respondents
from ldpopt_check import proofs
from ldpopt_check.screen import Screen

SCRIPTS = Path(__file__).resolve().parents[2] / "experiments" / "trust"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


agreement, kinds = _load("agreement"), _load("kinds")
CRITERIA = {}


def test_both_checkers_accept_random_designs(tmp_path):
    """Both accept 16 random designs, and their values and bounds agree to 1e-9 of themselves."""
    for number in range(16):
        _, design = agreement.designed(20, number, largest=10)
        assert agreement.disagreement(design, tmp_path) == ""


def test_both_checkers_refuse_forgeries(tmp_path):
    """Neither accepts one of 18 files in which something that is claimed is false."""
    for how, document in islice(agreement.forgeries(20), 18):
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


@pytest.mark.full
def test_blocks_of_large_files_are_screened_rightly(monkeypatch):
    """For 61 inputs, with honest and with lower potentials: what is said to be paid for is so by another library."""
    p0, p1 = np.random.default_rng(3).dirichlet(np.ones(61), 2)
    design = ldpopt.optimal_channel(ldpopt.Divergence(ldpopt.KL, p0, p1), [ldpopt.LocalDP(1.0)])
    seen, pays = [], Screen.pays
    monkeypatch.setattr(Screen, "pays", lambda own, *both: seen.append((own, *both)) or pays(own, *both))
    assert agreement.checker.check(json.loads(design_text(design))).failures == []
    own = seen[0][0]
    u, settled, t = own.u, 0, mpmath.mpf(own.t)
    for factor in (1.0, 0.99, 0.9):
        own.u, own.ranges = [one * factor for one in u], {}
        for _, first, second in seen:
            if not pays(own, first, second):
                continue
            for i, j in product(range(first[0], first[1] + 1), range(second[0], second[1] + 1)):
                a, b = t + own.a[j] - own.a[i], t + own.b[j] - own.b[i]
                settled += 1
                assert a * mpmath.log(a / b) - (a - b) <= own.charge + own.kappa * (own.u[j] - own.u[i])
    assert settled > 400


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 40, 3285])
def test_both_checkers_agree_on_changed_files(number):
    """The honest file holds for both, and of six changed ones both say the same, but for less than a rounding."""
    _, document = kinds.honest(number)
    assert kinds.both(document) == "accepted by both"
    rng = np.random.default_rng([kinds.SEED, number, 1])
    for _ in range(6):
        changed, how = kinds.mutant(document, rng)
        assert "alone" not in kinds.verdicts(changed), how


def test_the_room_for_rounding_is_small():
    """A bound better by 1e-9 than the proved one is refused by both, and is no rounding."""
    _, document = kinds.honest(1)
    changed = document | {"lower_bound": document["value"]}
    assert kinds.verdicts(changed) == "refused by both"
    assert kinds.both(kinds.loosened(changed)) == "refused by both"


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("k", "constraint"), [(2, ldpopt.LocalDP(2.3, nx.path_graph(2))), (5, ApproximateLDP(1, 0.1))])
def test_honest_designs_hold_without_the_rounding_of_floats(k, constraint):
    """Chords of ratios, and columns of five inputs' levels, prove in balls what is stated, within the usual budget."""
    p0, p1 = np.random.default_rng(5).dirichlet(np.ones(k), 2)
    design = ldpopt.optimal_channel(ldpopt.Divergence(ldpopt.KL, p0, p1), constraint)
    assert design.certified
    assert design.verify()
    assert design.verify(exact=True)
    assert agreement.checker.check(json.loads(design_text(design))).failures == []


def test_both_checkers_accept_the_same_distributions():
    """Both accept sums within 1e-9 of 1, and no others, of distributions and of rows."""
    _, document = kinds.honest(0)
    for size, said in ((1.5e-9, "refused by both"), (1.0, "refused by both")):
        changed = json.loads(json.dumps(document))
        row = changed["channel"]["matrix"][0]
        row[row.index(max(row))] += size
        assert kinds.verdicts(changed) == said


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_both_count_respondents_alike(epsilon, tmp_path):
    """A proved least number of respondents is accepted by both, and one more by neither [Scarf]."""
    pilots = (np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5]))
    targets = (np.array([[1.0, 0.0]]), np.eye(3))
    variances, weights = (np.array([1e-4]), np.full(3, 2e-4)), (np.ones(1), np.ones(3))
    bound = RespondentsBound.from_targets(epsilon, pilots, targets, variances, weights)
    bound.save(tmp_path / "least.json")
    document = json.loads((tmp_path / "least.json").read_text())
    assert load_respondents(tmp_path / "least.json").verify()
    assert agreement.checker.check(document).failures == []
    more = document | {"least": bound.least + 1}
    (tmp_path / "more.json").write_text(json.dumps(more))
    assert not load_respondents(tmp_path / "more.json").verify()
    assert agreement.checker.check(more).failures


@pytest.mark.parametrize("criterion", [AOptimal(), AOptimal([3.0, 1.0, 1.0, 2.0])], ids=repr)
def test_both_checkers_agree_on_the_bound_by_the_information_of_a_report(criterion):
    """The bound by the information of a report is accepted by both, and by neither where it is 1e-6 higher [Scarf]."""
    design = ldpopt.optimal_channel(FisherInformation(np.full(4, 0.25), criterion), ldpopt.LocalDP(1.0))
    proof = SharedInformation(design.utility, design.constraints, design.channel)
    certified = is_certified(design.value, proof.bound, design.tolerance, True, False)
    own = replace(design, certificate=proof, lower_bound=proof.bound, certified=certified)
    assert kinds.both(json.loads(design_text(own))) == "accepted by both"
    higher = replace(own, lower_bound=proof.bound * (1 + 1e-6), certified=certified)
    assert proof.bound < higher.lower_bound
    assert kinds.both(json.loads(design_text(higher))) == "refused by both"


@pytest.mark.parametrize(
    ("kind", "constraint", "k"), [("marginals", "LDP", 6), ("marginals", "a path", 4), ("sum", "TV", 4)]
)
def test_both_checkers_agree_on_shares_and_sums(kind, constraint, k):
    """Designs for shares of two questions, and sums of utilities, hold for both; a bound 1e-6 better for neither."""
    rng = np.random.default_rng(8)
    design = ldpopt.optimal_channel(kinds.utility_of(kind, k, rng), kinds.asked(constraint, k, rng))
    document = json.loads(design_text(design))
    assert document["certificate"]["kind"] == ("Contraction" if kind == "sum" else "EquivalenceDual")
    assert kinds.both(document) == "accepted by both"
    better = {"upper_bound": document["upper_bound"] * (1 - 1e-6)}
    if kind == "marginals":
        better = {"lower_bound": document["lower_bound"] * (1 + 1e-6)}
    assert kinds.both(document | better | {"certified": False}) == "refused by both"


def test_columns_along_a_graph_are_listed_within_the_budget():
    """How many there are is seen while they are listed; a path of twelve answers has too many for twenty seconds."""
    p0, p1 = np.random.default_rng(3).dirichlet(np.ones(12), 2)
    design = ldpopt.optimal_channel(ldpopt.WorstOf(ldpopt.KL, p0, [p1]), ldpopt.LocalDP(1.0, nx.path_graph(12)))
    document = json.loads(design_text(design))
    with pytest.raises(agreement.checker.BadInput, match="longer than the budget"):
        agreement.checker.check(document, budget=0.001)


@pytest.fixture(autouse=True)
def _criteria_once(monkeypatch):
    """What a channel is worth is the same in all files that hold it: of many answers it takes the checker seconds."""
    criterion = proofs.criterion

    def once(design, bits):
        asked = json.dumps([design.utility, design.rows, bits], default=str)
        if asked not in CRITERIA:
            CRITERIA[asked] = criterion(design, bits)
        return CRITERIA[asked]

    monkeypatch.setattr(proofs, "criterion", once)


def with_proof(design, proof):
    """The document of a design with another certificate, and the bound that it proves."""
    error = design.utility.error
    certified = is_certified(design.value, proof.bound, design.tolerance, error, False)
    bound = {"lower_bound" if error else "upper_bound": proof.bound}
    return json.loads(design_text(replace(design, certificate=proof, certified=certified, **bound)))


def estimated(k, p, relaxed, rows):
    """A file for k categories at a law p, proved by a relaxation with a kernel that is good for an even law."""
    q = ldpopt.mechanisms.randomized_response(k, 1.0)
    utility, caps = FisherInformation(p, AOptimal()), (ldpopt.LocalDP(1.0), ldpopt.TotalVariation(0.4))
    design = ldpopt.optimal_channel(FisherInformation([0.5, 0.5], AOptimal()), caps)
    kernel = np.eye(k) - np.outer(np.ones(k), p)
    proof = EquivalenceDual(utility, caps, q, p, kernel, rows, np.zeros((k, k)), relaxed)
    error = utility.value(q) * (1 + 1e-9)
    own = replace(design, utility=utility, channel=q, value=error, upper_bound=error, certificate=proof)
    return with_proof(replace(own, guarantees=tuple(cap.measure(q) for cap in caps)), proof)


def of_many(name):
    """A file whose certificate is of a kind that bounds what cannot be listed, or the bound of another problem."""
    rng = np.random.default_rng(31)
    p, squares = np.repeat([3.0, 2.0], [12, 14]) / 64, np.full((2, 26), 0.5)  # exact fractions stay short
    if name in ("Sizes", "Scarf"):
        return estimated(14, np.full(14, 1 / 14), {"Sizes": Sizes(), "Scarf": Scarf()}[name], np.full(14, 1e-3))
    if name == "Relaxation":
        return estimated(26, p, Relaxation(squares, np.array([0.1, 0.2]), np.full((26, 26), 1e-3)), p)
    p0, p1 = rng.dirichlet(np.ones(4), 2)
    utility, caps = ldpopt.Divergence(ldpopt.KL, p0, p1), (ldpopt.LocalDP(1.0), ldpopt.TotalVariation(0.2))
    design = ldpopt.optimal_channel(utility, caps)
    if name == "Relaxed":
        inner = ldpopt.optimal_channel(utility, caps[0]).certificate
        return with_proof(design, Relaxed(utility, caps, design.channel, inner))
    # With probability 1/1000 the hypothesis itself is told.
    points = np.vstack([np.column_stack([p0, p1]) * 0.999, [[0.001, 0.0], [0.0, 0.001]]])
    inner = ldpopt.optimal_channel(ldpopt.Divergence(ldpopt.KL, *points.T), caps)
    points = np.column_stack([inner.utility.p0, inner.utility.p1])
    return with_proof(design, Dominated(utility, caps, design.channel, points, inner.certificate))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", ["Sizes", "Scarf", "Relaxation", "Relaxed", "Dominated"])
def test_both_checkers_agree_on_bounds_without_listed_columns(name):
    """The kernel and the checker prove the same bound to 1e-9 of itself, and neither one that is 1e-6 better."""
    document = of_many(name)
    side, worse = ("lower_bound", 1 - 1e-9) if "criterion" in document["utility"] else ("upper_bound", 1 + 1e-9)
    document[side] *= worse
    assert kinds.both(document) == "accepted by both"
    better = document | {side: document[side] * (1 + np.sign(1 - worse) * 1e-6), "certified": False}
    assert kinds.both(better) == "refused by both"


@pytest.mark.parametrize("name", ["Relaxation", "Relaxed", "Dominated"])
def test_numbers_of_these_that_are_no_such_numbers_are_refused(name):
    """Negative, missing and permuted numbers, of other shapes and of other problems, are no proof, and no traceback."""
    document = of_many(name)
    proof, forged = document["certificate"], []
    if name == "Relaxation":
        wrong = [("spans", [-1.0, 0.2]), ("spans", [1e308, 1e308]), ("squares", [[0.5] * 25] * 2)]
        forged = [proof | {"relaxed": proof["relaxed"] | {key: bad}} for key, bad in wrong]
        forged += [proof | {"relaxed": {"kind": []}}]
    if name == "Relaxed":
        wrong = [], [{"kind": "TotalVariation", "eta": 0.1}], "x"
        forged = [proof | {"relaxation": proof["relaxation"] | {"constraints": bad}} for bad in wrong]
        forged += [proof | {"relaxation": bad} for bad in ({}, {"kind": "Relaxed"})]
    if name == "Dominated":
        points = proof["points"]
        swapped = [[a, b] for (a, _), (_, b) in zip(points, points[1:] + points[:1], strict=True)]
        wrong = points[:-1], points[::2] * 2, [[a, a] for a, _ in points], [[0.0, 0.0]] * 6, swapped
        forged = [proof | {"points": bad} for bad in wrong]
        forged += [proof | {"of_points": bad} for bad in ({}, {"kind": "PartsBound"})]
    for one in forged:
        assert kinds.both(document | {"certificate": one}) == "refused by both"
