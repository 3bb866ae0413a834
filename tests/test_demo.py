"""The demonstration shows what the library computes on the survey, and nothing else."""

import re

import pytest

from ldpopt import Channel, demo, load_design, optimal_channel
from ldpopt.design import LocalDP, TotalVariation
from ldpopt.privacy import local_dp, total_variation


@pytest.fixture(scope="module")
def made():
    """A demonstration with both questions, on fewer levels of epsilon, and how often it reported progress."""
    patch = pytest.MonkeyPatch()
    patch.setattr(demo, "DEMO_EPSILONS", (0.5, 2.0))
    patch.setattr(demo, "CURVE_EPSILONS", (2.0,))
    patch.setattr(demo, "MAP_EPSILONS", (0.5, 2.0))
    patch.setattr(demo, "MAP_ETAS", (0.2, 0.4, 1.0))
    progress = []
    answered, files = demo.run(lambda *_: progress.append(1))
    expected = demo.steps()
    patch.undo()
    return answered, files, len(progress), expected


@pytest.mark.full
def test_every_design_is_within_its_limits_and_proved(made):
    """The channel in every file meets the limits in its name, and is the one whose proof was checked."""
    answered, files, _, _ = made
    for one in answered:
        for (epsilon, eta), design in one.designs.items():
            channel = Channel.from_json(files[demo.channel_file(one.name, epsilon, eta)])
            assert local_dp(channel).value <= epsilon
            assert eta is None or total_variation(channel).value <= eta
            assert channel == design.channel
            assert design.certified
            assert design.certificate.verify()


@pytest.mark.full
def test_every_design_comes_with_its_proof(made, tmp_path):
    """The design file beside each channel holds that design, and its proof holds as it was read."""
    answered, files, _, _ = made
    for one in answered:
        for limits, design in one.designs.items():
            path = tmp_path / demo.design_file(one.name, *limits)
            path.write_bytes(files[path.name])
            loaded = load_design(path)
            assert loaded.channel == Channel.from_json(files[demo.channel_file(one.name, *limits)]) == design.channel
            assert (loaded.value, loaded.upper_bound) == (design.value, design.upper_bound)
            assert loaded.verify()


def test_the_gaps_are_those_of_the_designs(made):
    """The gaps in the tables are 1 - baseline / optimum of the same designs."""
    for one in made[0]:
        for limits, design in one.designs.items():
            for name, gap in demo.textbook_gaps(one, *limits).items():
                at = [(row.epsilon, row.eta) for row in one.grid].index((limits[0], limits[1] or 1.0))
                kept = one.grid.column(name)[at]
                assert gap == pytest.approx(1 - kept / design.value, abs=1e-9)


def test_income_gains_over_the_textbook():
    """At epsilon 2 and eta 0.4 binary with erasure misses over 5 % of the optimum for the income question."""
    survey = demo.load_anes96()
    p0, p1 = survey.conditional("income", given="vote")
    utility = demo.Divergence(demo.KL, p0, p1)
    row = next(iter(demo.frontier(utility, [2.0], [0.4])))
    assert 1 - row.binary_with_erasure / row.optimum > 0.05
    assert row.optimum == optimal_channel(utility, [LocalDP(2.0), TotalVariation(0.4)]).value


def test_the_report_stands_alone(made):
    """The report embeds its pictures, links only to files beside it, and fetches nothing."""
    _, files, _, _ = made
    report = files["report.html"].decode()
    assert set(re.findall(r'src="([^"]{10})', report)) == {"data:image"}
    assert report.count("<img") == len([name for name in files if name.endswith(".png")]) == 6
    assert set(re.findall(r'href="([^"]+)"', report)) == {name for name in files if name.endswith(".json")}
    assert "<script" not in report
    assert "Whatever you answer" in report
    assert "PROOF FAILED" not in report


def test_progress_is_reported_to_the_end(made):
    """The demonstration reports as many steps as it announces."""
    _, _, steps, announced = made
    assert steps == announced
