"""``survey plan --prove``: bounds so far, and what is left when it is stopped; and time limits that change nothing."""

import time

import pytest

from ldpopt_survey.plan import survey as planning

TOML = """
[survey]
name = "s"
[budget]
epsilon = 1.0
[[questions]]
name = "a"
categories = ["no", "yes"]
pilot = [0.3, 0.7]
[[questions]]
name = "b"
categories = ["x", "y", "z"]
pilot = [0.5, 0.2, 0.3]
"""


def test_a_proof_that_is_stopped_leaves_the_plan_and_the_best_bound(run, monkeypatch, tmp_path) -> None:
    """Ctrl-C during the proof: the plan is written, and the best bound so far is said as such."""
    (tmp_path / "survey.toml").write_text(TOML)
    closer = planning.closer_bounds

    def interrupted(*given, **how):
        yield next(closer(*given, **how))
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "closer_bounds", interrupted)
    made = run("survey", "plan", "survey.toml", "--prove")
    assert made.exit_code == 0, made.output
    assert (tmp_path / "plan.json").exists()
    told = [line for line in made.stderr.splitlines() if line.startswith("proving, ")]
    assert len(told) == 2
    assert "the proof was stopped by Ctrl-C" in made.stderr
    assert "the best bound so far; the least may be larger" in made.stderr
    plain = run("survey", "plan", "survey.toml", "--force")
    assert "proving" not in plain.stderr
    assert "by a quick closed-form bound, which is not the least (--prove looks for that)" in plain.stdout


@pytest.mark.full
def test_a_proof_ends_with_the_time_limit(run, monkeypatch, tmp_path) -> None:
    """The limit ends the proof, not the plan; what is known then is said as the best so far."""
    (tmp_path / "survey.toml").write_text(TOML)

    def slow(*_, time_limit, **__):
        time.sleep(time_limit)
        yield from ()

    monkeypatch.setattr(planning, "closer_bounds", slow)
    made = run("survey", "plan", "survey.toml", "--prove", "--time-limit", "3")
    assert made.exit_code == 0, made.output
    assert "the proof was stopped by the time limit" in made.stderr


@pytest.mark.full
def test_time_limits_that_suffice_change_nothing(run, tmp_path) -> None:
    """`new`, `plan` and `paper` write the same files with a limit that is not reached, and say the same."""
    rows = ["q0,q1"] + [f"{'ab'[i % 2]},{'xyz'[i % 3]}" for i in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    steps = {
        "survey.toml": ("new", "people.csv", "--yes"),
        "plan.json": ("plan", "survey.toml"),
        "paper/plan.json": ("paper", "plan.json", "--device", "two-dice"),
    }
    for name, words in steps.items():
        plain = run("survey", *words, "--force")
        assert plain.exit_code == 0, plain.output
        written = (tmp_path / name).read_bytes()
        limited = run("survey", *words, "--force", "--time-limit", "900")
        assert limited.exit_code == 0, limited.output
        assert (tmp_path / name).read_bytes() == written
        assert limited.stdout == plain.stdout
