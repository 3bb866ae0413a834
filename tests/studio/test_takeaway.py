"""Take away: code, command, files, report and link each give the state's result again, to the last digit."""

import base64
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import ldpopt
from ldpopt import ApproximateLDP, Channel, FisherInformation, LocalDP, optimal_channel
from ldpopt.cli import app
from ldpopt.design.load import parse_design
from ldpopt.divergences import KL, alpha, hockey_stick
from ldpopt.divergences.base import NAMED, format_divergence, parse_divergence
from ldpopt.errors import InvalidInput
from ldpopt.io.channels import parse_channel
from ldpopt.mechanisms import randomized_response
from ldpopt_studio import ask, inspect, meaning, source, takeaway, tell
from ldpopt_studio.questionnaire import plan_view
from ldpopt_studio.source import TOP_LEVEL_NAMES, write_file_command
from ldpopt_survey.plan.plan import Plan

ODD = ["a,b", "it's", '"quoted"', "línea", "$HOME `x`", "back\\slash", "-x", "#", "🙂", "two  blanks", "%s {x}", "END"]


def random_state(seed):
    """Draw a state of two populations: sizes, zeros, ties, odd labels, every divergence and type of limit."""
    rng = np.random.default_rng([16, seed])
    k = int(rng.choice([2, 3, 5, 9, 24, 40]))
    p0, p1 = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), 2)
    if rng.random() < 0.3 and k > 3:
        p1[0] = 0.0
        p1 /= p1.sum()
    if rng.random() < 0.2:
        p0, p1 = np.full(k, 1 / k), np.full(k, 1 / k)
        p1[0], p1[1] = 1.5 / k, 0.5 / k
    family = str(rng.choice([*sorted(NAMED), "hockey-stick:1.3", "alpha:1.7"]))
    if (p1 == 0).any() and family not in ("total-variation", "squared-hellinger", "jensen-shannon", "le-cam"):
        family = "jensen-shannon"
    state = {
        "view": "tell",
        "p0": p0.tolist(),
        "p1": p1.tolist(),
        "labels": [f"answer {at}" for at in range(k)],
        "names": ["young", "old"],
        "divergence": family,
        "epsilon": float(rng.choice([1e-3, 0.1, 0.7, 1.0, 2.5, 9.0]) * rng.uniform(0.9, 1.1)),
        "eta": [None, float(rng.uniform(0.05, 0.9)), 1.0][int(rng.integers(3))],
        "power": 0.8,
        "level": 0.05,
    }
    if rng.random() < 0.3:
        state["labels"][: len(ODD)] = ODD[:k]
        state["names"] = ['the "first"\n', "P1"]
    if k <= 5 and rng.random() < 0.3:
        kind = rng.integers(3)
        if kind == 0:
            state |= {"delta": 1e-3, "divergence": "kl" if p1.min() > 0 else "total-variation"}
        elif kind == 1:
            state |= {"renyi": 0.3 * state["epsilon"], "renyi_order": 2.0}
        else:
            state["outputs"] = 2
    return state


STATES = [random_state(seed) for seed in range(50)]


@pytest.mark.full(but=3)
@pytest.mark.parametrize("seed", range(20))
def test_exported_code_reproduces_the_design(seed):
    """The program of each of 20 random states designs the page's channel, entry by entry, with the same value.

    The program knows nothing but its own text: it runs in a fresh namespace.
    """
    state = STATES[seed]
    shown = tell.view(state)
    code = takeaway.take_away({"view": "tell", "state": state})["code"]
    namespace = {}
    exec(compile(code, "taken.py", "exec"), namespace)
    design = namespace["design"]
    assert abs(design.value - shown["value"]) <= 1e-12
    rows = {label: row for label, row in zip(design.channel.inputs, design.channel.matrix, strict=True)}
    drawn = {answer["label"]: shown["answers"].index(answer) for answer in shown["answers"]}
    for block in shown["blocks"]:
        for label, at in drawn.items():
            if block["start"] <= at < block["stop"]:
                assert np.abs(rows[label] - np.asarray(block["row"])).max() <= 1e-12
    if shown["respondents"]["private"] is not None:
        assert namespace["respondents"].respondents == shown["respondents"]["private"]
    assert bool(namespace["verification"]) == shown["proof"]["verified"]


@pytest.mark.parametrize("seed", range(0, 50, 9))
def test_downloaded_files_hold_the_numbers_of_the_page(seed):
    """The design file verifies and has the page's value; both channel files hold the design's exact numbers."""
    state = STATES[seed]
    files = {file["name"]: file["content"] for file in takeaway.take_away({"view": "tell", "state": state})["files"]}
    design = parse_design(files["design.json"])
    assert design.value == tell.view(state)["value"]
    assert bool(design.verify())
    assert parse_channel(files["channel.json"], "channel.json") == design.channel
    table = parse_channel(files["channel.csv"], "channel.csv")
    assert np.array_equal(table.matrix, design.channel.matrix)
    assert table.inputs == design.channel.inputs
    assert json.loads(files["populations.json"])["p0"] == design.utility.p0.tolist()


@pytest.fixture
def shell(tmp_path):
    """Run a text in a shell, in an empty folder where `ldpopt` is the program."""
    if not shutil.which("sh") or os.name == "nt":
        pytest.skip("needs a POSIX shell")
    program = tmp_path / "bin" / "ldpopt"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ldpopt "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    python = program.with_name("python")
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "work"
    folder.mkdir()

    def run(text):
        paths = os.pathsep.join(filter(None, sys.path))
        env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": paths}
        completed = subprocess.run(
            ["sh", "-ec", text], cwd=folder, env=env, capture_output=True, text=True, timeout=600
        )
        assert completed.returncode == 0, completed.stderr
        return folder

    return run


def assert_same_design(text, seed):
    """Check that a design file from a command holds the state's design."""
    design, expected = parse_design(text), tell.solve(STATES[seed]).design
    assert abs(design.value - expected.value) <= 1e-12
    assert np.abs(design.channel.matrix - expected.channel.matrix).max() <= 1e-12
    assert design.channel.inputs == expected.channel.inputs
    assert bool(design.verify())


@pytest.mark.full
def test_the_command_reproduces_the_design(shell):
    """The command, run by a shell, writes a design with the page's value and channel, for any labels."""
    seed = next(at for at, one in enumerate(STATES) if ODD[1] in one["labels"])
    folder = shell(takeaway.take_away({"view": "tell", "state": STATES[seed]})["command"])
    assert_same_design((folder / "design.json").read_text("utf-8"), seed)


@pytest.mark.parametrize("seed", [at for at, one in enumerate(STATES) if ODD[0] not in one["labels"]][:6])
def test_command_options_reproduce_the_state_to_the_last_digit(seed, tmp_path, monkeypatch):
    """A command without an input file holds the state's exact numbers in its options."""
    monkeypatch.chdir(tmp_path)
    command = takeaway.take_away({"view": "tell", "state": STATES[seed]})["command"]
    if "<<" in command:
        (tmp_path / "populations.json").write_text(command.split("\n")[1])
    line = shlex.split(command.splitlines()[-1])
    assert line[0] == "ldpopt"
    assert CliRunner().invoke(app, [*line[1:], "--json"]).exit_code == 0
    assert_same_design((tmp_path / "design.json").read_text("utf-8"), seed)


@pytest.mark.parametrize("state", [{"text": "a\nEND\nb"}, STATES[0], {"ε": ["ü", "🙂", "</script>", "'"]}])
def test_a_link_restores_its_state(state):
    """A link holds the exact state, in characters that addresses allow."""
    link = takeaway.link_fragment("tell", state)
    assert set(link) <= set("#&=-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    parts = dict(part.split("=") for part in link.removeprefix("#").split("&"))
    text = base64.urlsafe_b64decode(parts["state"] + "=" * (-len(parts["state"]) % 4))
    assert (parts["view"], json.loads(text)) == ("tell", state)


def test_a_here_document_does_not_end_early():
    """The marker line of a here-document does not occur in the file's own lines."""
    content = "END\nEND_\nx\n"
    assert write_file_command("a b.txt", content) == f"cat > 'a b.txt' <<'END__'\n{content}END__\n"


@pytest.mark.parametrize("name", [*sorted(NAMED), "hockey-stick:1.5", "alpha:-0.3", "alpha:2.0"])
def test_a_divergence_is_formatted_as_the_name_that_parses_to_it(name):
    """Parsing and formatting a divergence gives its name again."""
    assert format_divergence(parse_divergence(name)) == name
    assert parse_divergence(format_divergence(alpha(1 / 3))).recipe == alpha(1 / 3).recipe


@pytest.mark.parametrize("text", ["hello:", "kl:2", "hockey-stick", "hockey-stick:x", "alpha:nan", ""])
def test_an_invalid_name_of_a_divergence_is_rejected(text):
    """An unknown name, and a missing, superfluous or nonnumeric parameter are rejected."""
    with pytest.raises(InvalidInput):
        parse_divergence(text)


# -- surveys, and what they mean -------------------------------------------------------------------------


def survey_state(seed):
    """Draw a state of the survey's view: one to three questions, odd names, either aim, with and without a cap."""
    rng = np.random.default_rng([17, seed])
    questions = []
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.choice([2, 3] if questions else [2, 3, 5]))  # joint plans of over 36 cells take minutes
        name = str(rng.choice(["vote", 'Do "you"?', "it's", ""]))
        labels = ODD[:k] if rng.random() < 0.5 else []
        pilot = rng.integers(1, 60, k).tolist()
        questions.append({"name": name, "labels": labels, "pilot": pilot, "half_width": float(rng.uniform(0.02, 0.1))})
    return {
        "questions": questions,
        "solve": "respondents",
        "epsilon": float(rng.uniform(0.5, 3)),
        "eta": float(rng.choice([0.1, 1.0])),
        "aim": ["together", "widest"][seed % 2],
    }


@pytest.mark.full(but=2)
@pytest.mark.parametrize("seed", [1, 3, 4, 5, 26])
def test_exported_code_reproduces_the_plan_of_a_survey(seed):
    """The program of a survey makes the plan in the downloaded file, for any names of questions."""
    state = survey_state(seed)
    taken = takeaway.take_away({"view": "ask", "state": state})
    files = {file["name"]: file["content"] for file in taken["files"]}
    namespace = {}
    exec(compile(taken["code"], "taken.py", "exec"), namespace)
    assert namespace["plan"].to_json() == files["plan.json"]
    if len(state["questions"]) == 1:
        kept, design = parse_design(files["design.json"]), namespace["design"]
        assert bool(kept.verify())
        assert abs(kept.value - design.value) <= 1e-12
        assert np.abs(kept.channel.matrix - design.channel.matrix).max() <= 1e-12


@pytest.mark.full(but=1)
@pytest.mark.parametrize("solve", ["respondents", "epsilon"])
def test_several_questions_are_downloaded_as_the_questionnaire_on_the_page(solve, shell, tmp_path, monkeypatch):
    """The plan, the file, the command and the report belong to "Who is asked what", not to the split of epsilon."""
    questions = [{"name": name, "pilot": [1, 1], "half_width": 0.05} for name in ("a", "b", "c")]
    state = {"questions": questions, "epsilon": 2.5, "solve": solve, "respondents": 9000, "split": [3, 1, 1]}
    page = {**state, "epsilon": ask.survey_view(state)["epsilon"]}  # as the card is asked for it
    shown = plan_view(page, lambda share: None)
    taken = takeaway.take_away({"view": "ask", "state": state})
    files = {file["name"]: file["content"] for file in taken["files"]}
    plan = Plan.from_json(files["plan.json"])
    booklets = [{"questions": tuple(a.name for a in q.answers), "share": str(q.probability)} for q in plan.questions]
    assert booklets == shown["booklets"]
    assert files["survey.toml"] == shown["file"]
    if solve == "epsilon":
        folder = shell(taken["command"])
    else:  # the same lines, without a shell
        folder, (written, line) = tmp_path, taken["command"].strip().rsplit("\n", 1)
        assert written + "\n" == write_file_command("survey.toml", files["survey.toml"])
        monkeypatch.chdir(folder)
        (folder / "survey.toml").write_text(files["survey.toml"], "utf-8")
        assert CliRunner().invoke(app, shlex.split(line)[1:]).exit_code == 0
    assert Plan.from_json((folder / "plan.json").read_text("utf-8")).checksum == plan.checksum
    assert files["bound.json"] == (folder / "bound.json").read_text("utf-8")
    page = takeaway.report_file({"view": "ask", "state": state})["content"]
    assert f"A survey of {shown['respondents']:,} people" in page
    assert f"fewer than {shown['least']:,} people" in page
    assert takeaway.view({"view": "ask", "state": state}) == {"slow": True}


@pytest.mark.full
@pytest.mark.parametrize(("aim", "even"), [("widest", False), ("together", True)])
def test_the_command_of_a_survey_plans_the_downloaded_channel(shell, aim, even):
    """`ldpopt survey plan` is used if it has the page's aim, and a program otherwise."""
    question = survey_state(0)["questions"][0]
    state = {"questions": [question | ({"pilot": [1] * len(question["pilot"])} if even else {})], "epsilon": 1.0}
    taken = takeaway.take_away({"view": "ask", "state": {**state, "aim": aim}})
    folder = shell(taken["command"])
    expected = Plan.from_json((folder / "plan.json").read_text("utf-8"))
    kept = Plan.from_json(next(file["content"] for file in taken["files"] if file["name"] == "plan.json"))
    assert [one.channel for one in expected.questions] == [one.channel for one in kept.questions]
    other = takeaway.take_away({"view": "ask", "state": {**state, "aim": "together" if aim == "widest" else "widest"}})
    assert other["command"].startswith("cat > survey.py")


def test_exported_code_reproduces_the_bounds_of_the_meaning_view(capsys):
    """The program prints the view's bound on the chance and its epsilon of all rounds."""
    state = {"question": {"pilot": [0.5, 0.3, 0.2]}, "epsilon": 1.0, "prior": 0.01, "rounds": 3, "answer": 1}
    shown = meaning.view(state)
    namespace = {}
    exec(compile(takeaway.take_away({"view": "meaning", "state": state})["code"], "taken.py", "exec"), namespace)
    assert abs(1 / (1 + namespace["odds_against"]) - shown["posterior"]["most"]) <= 1e-12
    assert f"at most {1 / (1 + namespace['odds_against'])}" in capsys.readouterr().out
    assert namespace["composition"].epsilon_at(1e-6) == pytest.approx(shown["now"]["epsilon_at_delta"], abs=1e-9)


def test_reports_of_surveys_and_meaning_have_numbers_proofs_and_code():
    """The reports state people, proofs and guarantees, and how to reproduce them.

    A channel of one question has a proof of its own; that of a booklet of all questions is proved with the whole plan.
    """
    pilots = {"age": [5, 1, 3], "vote": [4, 1]}
    questions = [{"name": name, "labels": [], "pilot": pilot, "half_width": 0.05} for name, pilot in pilots.items()]
    for epsilon, proved in ((0.1, "No channel within these limits has less than"), (3.0, "<h2>age + vote</h2>")):
        state = {"questions": questions, "solve": "respondents", "epsilon": epsilon}
        page = takeaway.report_file({"view": "ask", "state": state})["content"]
        before, found, after = page.partition(proved)
        assert found
        assert ("No channel within these limits" in before + found) or epsilon == 3.0
        assert "No channel within these limits" not in after or epsilon == 0.1
        assert re.search(r"No private survey of fewer than [\d,]+ people reaches these half-widths", page)
        assert "Whatever you answer" in page
    state = {"question": {"pilot": [0.5, 0.5]}, "epsilon": 1.0, "prior": 0.01}
    page = takeaway.report_file({"view": "meaning", "state": state})["content"]
    assert "at most 1 in 37" in page
    assert "compose([channel], rounds)" in page
    rounds = page.partition("Many rounds")[2].partition("</table>")[0]
    assert "2.673 %" in rounds  # the chance is 0.026724...: a promise is rounded up


# -- any channel ---------------------------------------------------------------------------------------


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "state",
    [
        {"text": randomized_response(4, 1.0).to_json()},
        {"text": "\ta\tb\nx y\t30\t10\n'z\t1\t3\n", "mend": True, "epsilon": 0.5, "eta": 0.2},
        {"text": "1,0\n0,1"},
        {"text": "[[0.5, 0.5], [0.5, 0.5]]"},
        {"text": Channel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], [("a", 1), ("b", 2)], [0, 1, "erased"]).to_json(),
         "p0": [0.5, 0.5], "p1": [0.1, 0.9], "divergence": "alpha:1.5"},
    ],
)  # fmt: skip
def test_exported_code_of_any_channel_holds_the_inspected_channel(state, capsys):
    """The program holds the exact channel, repaired or not, and computes the same optimum."""
    shown = inspect.view(state)
    taken = takeaway.take_away({"view": "inspect", "state": state})
    namespace = {}
    exec(compile(taken["code"], "taken.py", "exec"), namespace)
    assert namespace["channel"].matrix.tolist() == shown["matrix"]
    assert namespace["channel"] == inspect.read_inspection(state).channel
    assert "local dp" in capsys.readouterr().out
    if shown["comparison"]:
        assert abs(namespace["design"].value - shown["comparison"]["optimum"]) <= 1e-12
        assert abs(namespace["question"].value(namespace["channel"]) - shown["comparison"]["value"]) <= 1e-12
    files = {file["name"]: file["content"] for file in taken["files"]}
    assert parse_channel(files["channel.json"], "channel.json") == namespace["channel"]


def test_an_inspected_design_file_is_downloaded_unchanged():
    """Forged or not, the dropped file and the downloaded file are identical."""
    text = takeaway.take_away({"view": "tell", "state": STATES[0]})["files"][0]["content"]
    files = {
        one["name"]: one["content"] for one in takeaway.take_away({"view": "inspect", "state": {"text": text}})["files"]
    }
    assert files["design.json"] == text


# -- reports -------------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_report_of_a_design_is_self_contained():
    """The report escapes names, has value, guarantees, proof and code, and refers to no other machine."""
    state = STATES[0] | {"names": ["<b>bold</b>", "b & c"]}
    expected = takeaway.report_file({"view": "tell", "state": state})
    page = expected["content"]
    assert expected["name"] == "tell.html"
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold&lt;/b&gt; against b &amp; c" in page
    assert f"{tell.view(state)['value']:.6g}" in page
    assert "No channel within these limits keeps more than" in page
    assert "data:image/png;base64," in page
    assert "ldpopt design" in page
    assert "http" not in page.replace("http-equiv", "").replace("https://doi.org", "").replace("https://arxiv.org", "")
    assert "<script" not in page


def test_the_report_of_a_forged_design_says_that_its_proof_fails():
    """A report also lists the changes of a repaired matrix."""
    text = json.loads(takeaway.take_away({"view": "tell", "state": STATES[0]})["files"][0]["content"])
    forged = json.dumps(text | {"upper_bound": text["value"]})
    page = takeaway.report_file({"view": "inspect", "state": {"text": forged, "name": "<x>.json"}})["content"]
    assert "The proof fails" in page
    assert "<x>" not in page
    page = takeaway.report_file({"view": "inspect", "state": {"text": "3 1\n1 3", "mend": True}})["content"]
    assert "which were 4" in page


def test_an_unknown_view_or_invalid_state_is_an_error_of_its_field():
    """Unknown views, missing states and invalid states name the field that is wrong."""
    for state, field in (({"view": "x", "state": {}}, "view"), ({"view": "tell"}, "state"), ({}, "view"),
                         ({"view": "tell", "state": {"p0": [1]}}, "p1")):  # fmt: skip
        with pytest.raises(InvalidInput) as error:
            takeaway.take_away(state)
        assert error.value.field == field


def test_a_slow_state_is_left_to_a_job():
    """States with slow limits, large surveys and large files are left to jobs; others are computed at once."""
    quick = next(one for one in STATES if not {"delta", "renyi", "outputs"} & set(one))
    assert "code" in takeaway.view({"view": "tell", "state": quick})
    large = {"questions": [{"pilot": [1] * 20}], "epsilon": 1.0}
    for name, state in (("tell", {**quick, "outputs": 2}), ("ask", large), ("inspect", {"text": "1,0\n0,1\n" * 1000})):
        assert takeaway.view({"view": name, "state": state}) == {"slow": True}


def test_programs_import_public_names():
    """The package exports each name that programs import from it."""
    assert set(ldpopt.__all__) >= TOP_LEVEL_NAMES


def test_values_are_written_as_python_code():
    """Constraints, divergences, lists and imports become Python code."""
    limits = [source.constraint_source(limit) for limit in (LocalDP(1.0), ApproximateLDP(1.0, 1e-6))]
    assert limits == ["LocalDP(1.0)", "ApproximateLDP(epsilon=1.0, delta=1e-06)"]
    assert source.divergence_source(KL) == ("KL", "KL")
    assert source.divergence_source(hockey_stick(1.5)) == ("hockey_stick(1.5)", "hockey_stick")
    assert source.list_source("p", [0.1, 0.9]) == "p = [0.1, 0.9]"
    assert source.header_comment("Asks", ["vote"]).startswith('# Asks: "vote".')
    assert (
        source.import_lines(["LocalDP", "Outputs"]) == "from ldpopt import LocalDP\nfrom ldpopt.design import Outputs"
    )
    assert source.plan_limits(optimal_channel(FisherInformation([0.5, 0.5]), LocalDP(1.0))) == {"epsilon": 1.0}


def test_a_design_is_downloaded_with_channel_populations_and_program():
    """The files are the design, its channel in two formats, its populations and the program."""
    questions = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3}
    taken = takeaway.take_away({"view": "tell", "state": questions})
    names = ["design.json", "channel.json", "channel.csv", "populations.json", "design.py"]
    assert [file["name"] for file in taken["files"]] == names
    assert takeaway.link_fragment("tell", {"epsilon": 1}) == "#view=tell&state=eyJlcHNpbG9uIjoxfQ"


def test_a_custom_divergence_has_no_name():
    """A user-defined divergence cannot be formatted as text."""
    from ldpopt.divergences import FDivergence

    assert format_divergence(KL) == "kl"
    with pytest.raises(InvalidInput, match="a named one"):
        format_divergence(FDivergence(lambda t: (t - 1) ** 4))
