"""A dash is standard input or output: what one command prints another reads, and messages step aside."""

import json

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


def test_what_design_prints_is_verified_and_checked(pipe, tmp_path):
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
        (("verify", "-"), "standard input: expected a file with contents"),
    ],
)
def test_what_no_stream_can_be_is_refused(pipe, arguments, said):
    """Two things on one stream, a folder, and nothing at all."""
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
