"""A dash is standard input or output: what one command prints another reads, and messages step aside."""

import json
import re
import shlex
from pathlib import Path

import pytest

PEOPLE = "who,p0,p1\nlow,0.5,0.2\nmiddle,0.3,0.3\nhigh,0.2,0.5\n"
DESIGN = ("design", "-", "--epsilon", "1")


@pytest.fixture
def pipe(run):
    """Run commands, each on the output of the one before; gives the last one's (output, errors, code)."""

    def piped(text, *commands):
        for arguments in commands:
            done = run(*arguments, input=text)
            text = done.stdout
        return text, done.stderr, done.exit_code

    return piped


def test_printed_designs_are_verified_and_checked(pipe, tmp_path):
    """The JSON of a design holds its proof and its channel; so do the files that it writes to standard output."""
    for last, part in ((("--json",), "certified"), (("-o", "x.json", "--save-design", "-"), "certified")):
        said, _, code = pipe(PEOPLE, (*DESIGN, *last), ("verify", "-", "--json"))
        assert code == 0
        assert json.loads(said)[part] is True
        (tmp_path / "x.json").unlink(missing_ok=True)
        (tmp_path / "x.png").unlink(missing_ok=True)
    for last in (("--json",), ("-o", "-")):
        said, _, code = pipe(PEOPLE, (*DESIGN, *last), ("check", "-", "--json"))
        assert code == 0
        assert json.loads(said)["guarantees"][0]["value"] == pytest.approx(1.0)
    assert not list(tmp_path.iterdir())


def test_messages_step_aside_and_name_no_temporary_file(pipe, tmp_path):
    """Standard output has the file alone; what is said goes to standard error and calls the streams by their names."""
    said, errors, code = pipe(PEOPLE, (*DESIGN, "-o", "-"))
    assert code == 0
    assert "matrix" in json.loads(said)
    assert "KL divergence (nats) kept" in errors
    assert "/tmp" not in said + errors
    _, errors, code = pipe("who,p0\nlow,1\n", DESIGN)
    assert code == 2
    assert errors.startswith("ldpopt: error: standard input: ")
    assert len(errors.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_survey_goes_through_pipes(pipe, tmp_path):
    """Plan, counts and estimates pass from one command to the next."""
    (tmp_path / "a.csv").write_text("vote\n" + "yes\nno\n" * 40)
    toml = '[survey]\nname = "s"\n[budget]\nepsilon = 2.0\n[[questions]]\nname = "vote"\ncategories = ["no", "yes"]\n'
    plan, _, code = pipe(toml, ("survey", "plan", "-", "-o", "-"))
    assert code == 0
    (tmp_path / "plan.json").write_text(plan)
    _, errors, code = pipe("", ("survey", "privatize", "plan.json", "a.csv", "-o", "r.csv"))
    assert code == 0, errors
    said, errors, code = pipe(
        "", ("survey", "aggregate", "plan.json", "r.csv", "-o", "-"), ("survey", "estimate", "plan.json", "-", "--json")
    )
    assert code == 0, errors
    assert "vote" in json.loads(said)["questions"] if "questions" in json.loads(said) else "vote" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("design", "-", "-e", "1", "-o", "-", "--save-design", "-"), "one input and one output"),
        (("design", "-", "-e", "1", "-o", "-", "--json"), "one input and one output"),
        (("survey", "paper", "plan.json", "--device", "dice", "-o", "-"), "several files"),
        (("demo", "-o", "-"), "several files"),
        (("verify", "-"), "standard input: expected a file with contents"),
    ],
)
def test_impossible_streams_are_refused(pipe, arguments, said):
    """Two files on one stream, a folder and an empty stream are refused."""
    _, errors, code = pipe("", arguments)
    assert code == 2
    assert said in errors


def test_quiet_version_capitals_and_first_steps(run):
    """-q prints errors alone, -V the version, names go in any capitals, and no command at all says what to do next."""
    assert "design" in run().stdout
    assert run().exit_code == 0
    assert run("-V").stdout.startswith("ldpopt ")
    limits = ("--p0", "0.5,0.5", "--p1", "0.2,0.8", "-e", 1, "-f", "KL", "-o", "c.json")
    done = run("-q", "Design", *limits)
    assert (done.exit_code, done.stdout) == (0, "")
    assert run("CHECK", "c.json").stdout


PIPES = re.findall(
    r"^\| `(.+?)` \| .+ \|$",
    (Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md")
    .read_text("utf-8")
    .replace("\\|", "\x00"),
    re.MULTILINE,
)
"""The pipes in the table of the documentation; a NUL stands between their commands."""


@pytest.fixture
def files(begun, run, tmp_path):
    """The files that the pipes of the table begin with."""
    return begun(files_of_pipes)(tmp_path)


def files_of_pipes(folder, run):
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "matrix.csv").write_text("0.75,0.25\n0.25,0.75\n")
    (folder / "answers.csv").write_text("vote\n" + "yes\nno\n" * 40)
    (folder / "survey.toml").write_text(
        '[survey]\nname = "s"\n[budget]\nepsilon = 2.0\n[[questions]]\nname = "vote"\ncategories = ["no", "yes"]\n'
    )
    assert run("survey", "plan", "survey.toml", "-o", "plan.json").exit_code == 0
    assert run("survey", "privatize", "plan.json", "answers.csv", "-o", "reports.csv").exit_code == 0


def test_the_table_has_ten_pipes():
    """Each joins two commands or more, and one of them is ours."""
    assert len(PIPES) == 10
    assert all("\x00" in pipe and "ldpopt" in pipe for pipe in PIPES)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("piped", PIPES, ids=[re.sub(r"\W+", "-", pipe)[:60] for pipe in PIPES])
def test_a_pipe_of_the_table_runs(run, files, piped):
    """Every command of the pipe ends with 0 on what the one before it printed, and the last one prints something."""
    said = b""
    for part in piped.split("\x00"):
        program, *arguments = shlex.split(part)
        if program == "ldpopt":
            done = run(*arguments, input=said)
            assert done.exit_code == 0, (part, done.stderr)
            said = done.stdout_bytes
        elif program == "cat":
            said = (files / arguments[0]).read_bytes()
        elif program == "tee":
            (files / arguments[0]).write_bytes(said)
        elif program == "head":
            said = said.splitlines()[0]
        else:
            assert (program, arguments) == ("python", ["-m", "json.tool"])
            json.loads(said)
    assert said.strip()
    if "frontier" in piped:
        assert said.startswith(b"epsilon")
    if "verify" in piped:
        assert b"certified" in said
    if "privatize" in piped:
        assert b"from 80 reports" in said


@pytest.mark.full
def test_reports_survive_a_broken_pipe(run, spawn, files, tmp_path):
    """Reports after a broken pipe are not lost and not overwritten, since the same answers are not reported again."""
    piped = ("survey", "privatize", "plan.json", "answers.csv", "--alike", "-o", "-")
    kept = tmp_path / "plan.json.reports.parquet"
    with spawn(*piped) as broken:
        broken.stdout.close()
        errors = broken.stderr.read()
    assert broken.returncode == 1
    assert f"the reports are in {kept.name}" in errors
    before = kept.read_bytes()
    assert before.startswith(b"PAR1")
    refused = run(*piped)
    assert "an earlier pipe did not take" in refused.stderr
    assert (refused.exit_code, kept.read_bytes()) == (2, before)


def test_a_plan_from_a_pipe_is_not_privatized_with(run, files):
    """Its ledger would be thrown away, and a second report of the same people would be refused by nobody."""
    plan = (files / "plan.json").read_text()
    done = run("survey", "privatize", "-", "answers.csv", "-o", "again.csv", input=plan)
    assert (done.exit_code, (files / "again.csv").exists()) == (2, False)
    assert "ledger" in done.stderr


def test_csv_of_reports_from_a_pipe_has_no_manifest(run, files):
    """Estimation says so, and what has one."""
    done = run("survey", "estimate", "plan.json", "-", input=(files / "reports.csv").read_bytes())
    assert done.exit_code == 2
    assert "Parquet from a pipe includes it, CSV does not" in done.stderr
