"""The program as a user starts it: exit codes, one line for an error, clean ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

import ldpopt

PAIR = ("--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5")
COMMANDS = ("demo", "design", "check", "frontier")


def test_help_names_every_command_and_the_version_is_the_packages(run):
    """The version is the package's; the help names every command and the exit codes."""
    assert run("--version").stdout == f"ldpopt {ldpopt.__version__}\n"
    shown = run("--help")
    assert shown.exit_code == 0
    for word in (*COMMANDS, "Exit codes"):
        assert word in shown.stdout
    for command in COMMANDS:
        assert run(command, "-h").exit_code == 0


def test_unknown_commands_are_refused(refused):
    """A command that does not exist is bad input."""
    assert "No such command 'desing'" in refused("desing")


def test_bad_input_of_a_real_process_is_refused_in_one_line(spawn, tmp_path):
    """Exit code 2, the one line, no traceback, no output, no file."""
    process = spawn("check", "nowhere.csv")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 2
    assert out == ""
    assert err == "ldpopt: error: nowhere.csv: expected a readable file, got no such file or directory\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_real_process_writes_a_channel_for_the_next_command(run, spawn, tmp_path):
    """Exit code 0, nothing on standard error, and a channel that the next command measures."""
    process = spawn("design", *PAIR, "--epsilon", "1")
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert "wrote channel.json" in out
    assert "local dp ≤ 1 " in run("check", "channel.json").stdout


@pytest.mark.full
def test_an_interrupt_ends_cleanly(spawn, tmp_path):
    """Ctrl-C ends with 130, without a traceback and without a file but those that the next run goes on from."""
    many = ",".join(str(step / 1000) for step in range(100, 600))
    # What a shell runs in the background ignores interrupts, and so would what the tests start there.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = spawn("frontier", *PAIR, "--epsilon", many, "--resume", "kept")
    signal.signal(signal.SIGINT, before)
    # With its first part written it is among 10 500 designs, however busy or fast the machine is.
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob("kept/part-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (130, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.full
def test_a_reader_that_leaves_is_no_crash(spawn, tmp_path):
    """When the reader of the output is gone the program ends without a traceback."""
    (tmp_path / "q.csv").write_text("0.75,0.25\n0.25,0.75\n")
    for arguments in (["check", "q.csv"], ["check", "q.csv", "--json"]):
        read, write = os.pipe()
        os.close(read)
        process = subprocess.Popen(
            [sys.executable, "-m", "ldpopt", *arguments], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        os.close(write)
        assert process.communicate(timeout=600)[1] == ""
        assert process.returncode == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "ldpopt survey pl", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "ldpopt survey pl"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "ldpopt survey pl", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_shells_complete_commands_and_options(shell, asked):
    """What the script of a shell asks for the words typed so far is answered, and nothing else is printed."""
    environment = os.environ | asked | {"_LDPOPT_COMPLETE": f"complete_{shell}"}
    answered = subprocess.run(
        [sys.executable, "-m", "ldpopt"], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert "plan" in answered.stdout
    assert "privatize" not in answered.stdout
    assert answered.stderr == ""


def test_help_shows_no_type_beside_a_flag(run):
    """A flag takes no value, and its help says none."""
    for command in ((), ("design",), ("survey", "plan")):
        assert "bool" not in run(*command, "--help").stdout


@pytest.mark.parametrize("asked", [None, "3"])
def test_a_command_uses_one_thread_unless_the_user_sets_more(asked):
    """The number of threads is set before NumPy is loaded, unless the user has set it.

    Importing the program loads no numpy, no solver and no plotting: the help is there at once.
    """
    given = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    code = (
        "import os, sys; from ldpopt.cli import app, main; "
        "assert not {'numpy', 'scipy', 'cvxpy', 'matplotlib', 'pandas'} & {*sys.modules}; "
        "sys.argv = ['ldpopt', '--version']; main(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=given if asked is None else {**given, "OPENBLAS_NUM_THREADS": asked},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.split()[-1] == (asked or "1")


LISTING = """
import sys
sys.path.insert(0, "site")
from ldpopt.cli import main
sys.argv[1:] = ["--help"]
code = main()
print(code, *sorted(name for name in sys.modules if name.split(".")[0] in ("ldpopt_survey", "ldpopt_studio", "silent")))
"""


def test_the_list_of_commands_imports_no_application(tmp_path):
    """A registered command is listed by the first sentence of its module, which is imported only if it has none."""
    record = tmp_path / "site" / "applications-1.dist-info"
    record.mkdir(parents=True)
    lines = (
        "[ldpopt.commands]",
        "survey = ldpopt_survey.cli:app",
        "studio = ldpopt_studio.cli:app",
        "still = silent:app",
    )
    (record / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: applications\nVersion: 1\n", "utf-8")
    silent = "import typer\napp = typer.Typer()\n@app.command()\ndef still():\n    '''Say nothing.'''\n"
    (tmp_path / "site" / "silent.py").write_text(silent, "utf-8")
    done = subprocess.run([sys.executable, "-c", LISTING], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 silent"
    shown = " ".join(done.stdout.replace("│", " ").split())
    from ldpopt_studio.cli import studio
    from ldpopt_survey.cli import app

    for sentence in (app.info.help, studio.__doc__.split("\n\n")[0], "Say nothing."):
        assert sentence in shown


@pytest.mark.parametrize("path", ["/", ".", ""])
@pytest.mark.parametrize(
    "line",
    [
        ("design", "--p0", ".5,.5", "--p1", ".2,.8", "-e", "1", "-o"),
        ("design", "--p0", ".5,.5", "--p1", ".2,.8", "-e", "1", "--save-design"),
        ("survey", "privatize", "plan.json", "answers.csv", "-o"),
        ("survey", "privatize", "plan.json", "answers.csv", "-o", "r.csv", "--key"),
        ("survey", "privatize", "plan.json", "answers.csv", "-o", "r.csv", "--ledger"),
        ("survey", "invitations", "plan.json", "3", "-o"),
        ("survey", "kit", "plan.json", "--force", "--out"),
    ],
)
def test_a_path_without_a_name_is_refused(refused, line, path):
    """Neither the root nor the folder itself is a file, nor a new folder."""
    assert "expected the path of a file" in refused(*line, path)


@pytest.mark.parametrize("line", [("survey", "collect", "plan.json", "--rate"), ("verify", "a.json", "--budget")])
def test_no_option_takes_nan(refused, line):
    """No range of numbers keeps it out, since it is not less than any."""
    assert "expected a number, got nan" in refused(*line, "nan")
