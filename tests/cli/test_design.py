"""``ldpopt design`` writes the optimal channel of every kind of source, and refuses what is none."""

import csv
import json

import numpy as np
import pytest
from typer.main import get_command

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.cli import app
from ldpopt.datasets import load_anes96
from ldpopt.design import constraints
from ldpopt.design.registry import command_options
from ldpopt.divergences import CHI_SQUARED, KL, alpha, hockey_stick
from ldpopt.privacy import local_dp, total_variation

PAIR = ("--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5")
P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


def machine(run, *arguments):
    result = run("design", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_channel_and_picture_are_written(run, tmp_path):
    """The channel file holds the library's own optimum, within the limits asked for; the picture is a picture."""
    result = run("design", *PAIR, "--labels", "low,middle,high", "--epsilon", "1", "--eta", "0.3")
    assert result.exit_code == 0
    channel = Channel.from_json((tmp_path / "channel.json").read_text())
    expected = optimal_channel(
        Divergence(KL, P0, P1, inputs=("low", "middle", "high")), [LocalDP(1), TotalVariation(0.3)]
    )
    assert channel == expected.channel
    assert local_dp(channel).value <= 1
    assert total_variation(channel).value <= 0.3
    assert (tmp_path / "channel.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["channel.json", "channel.png"]
    for said in ("optimal, proof checked", "Whatever you answer", "wrote channel.json", "KL divergence (nats)"):
        assert said in result.stdout


def test_machines_get_everything_and_no_files(run, tmp_path):
    """With --json standard output is the design as JSON, channel included, and nothing is written unless named."""
    found = machine(run, *PAIR, "-e", "1", "-t", "0.3")
    assert found["certified"]
    assert found["verified"]
    assert found["value"] <= found["upper_bound"] <= found["value"] * (1 + 1e-6)
    assert (found["epsilon"], found["eta"]) == (1.0, 0.3)
    assert found["without_privacy"] == pytest.approx(KL(P0, P1))
    channel = Channel.from_json(json.dumps(found["channel"]))
    assert KL(channel.push(P0), channel.push(P1)) == pytest.approx(found["value"], rel=1e-12)
    assert list(tmp_path.iterdir()) == []
    found = machine(run, *PAIR, "-e", "1", "--out", "mine.json", "--picture", "mine.svg")
    assert found["files"] == ["mine.json", "mine.svg"]
    assert found["eta"] is None
    assert (tmp_path / "mine.svg").read_text().startswith("<?xml")


def test_a_cap_that_does_not_bind_is_no_error(run):
    """Eta above tanh(epsilon/2) is accepted, and the design says that it does not bind."""
    assert "does not bind" in machine(run, *PAIR, "-e", "1", "-t", "0.9")["note"]
    assert "does not bind" in run("design", *PAIR, "-e", "1", "-t", "0.9").stdout


@pytest.mark.parametrize(
    ("name", "f"),
    [("kl", KL), ("chi-squared", CHI_SQUARED), ("hockey-stick:1.5", hockey_stick(1.5)), ("alpha:2", alpha(2))],
)
def test_divergences_by_name(run, name, f):
    """A divergence named on the command line is the library's, parameters included."""
    expected = optimal_channel(Divergence(f, P0, P1), LocalDP(1.0))
    assert machine(run, *PAIR, "-e", "1", "--divergence", name)["value"] == expected.value


def test_all_kinds_of_files_give_the_same_channel(run, tmp_path):
    """A table of probabilities, JSON, a table of counts and microdata give the channel of the same populations."""
    (tmp_path / "pair.csv").write_text("answer,p0,p1\nx,0.5,0.2\ny,0.3,0.3\nz,0.2,0.5\n")
    (tmp_path / "pair.json").write_text(json.dumps({"p0": P0, "p1": P1, "labels": ["x", "y", "z"]}))
    (tmp_path / "counts.csv").write_text("answer,old,young\nx,5,2\ny,3,3\nz,2,5\n")
    with (tmp_path / "micro.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "answer"])
        for group, counts in (("a", (5, 3, 2)), ("b", (2, 3, 5))):
            writer.writerows([group, label] for label, n in zip("xyz", counts, strict=True) for _ in range(n))
    inline = machine(run, *PAIR, "--labels", "x,y,z", "-e", "1")["channel"]
    for source in (
        ["pair.csv"],
        ["pair.json"],
        ["counts.csv", "--columns", "old,young", "--counts"],
        ["micro.csv", "--answer", "answer", "--group", "group"],
    ):
        assert machine(run, *source, "-e", "1")["channel"] == inline


def test_microdata_are_designed_for_by_their_conditional_distributions(run, tmp_path):
    """The shipped survey, as a file of respondents, gives the design of its conditional distributions."""
    survey = load_anes96()
    rows = zip(survey["vote"].codes, survey["party"].codes, strict=True)
    (tmp_path / "anes.csv").write_text("vote,party\n" + "".join(f"{vote},{party}\n" for vote, party in rows))
    found = machine(run, "anes.csv", "--answer", "party", "--group", "vote", "-e", "2", "-t", "0.4")
    utility = Divergence(KL, *survey.conditional("party", given="vote"))
    assert found["value"] == optimal_channel(utility, [LocalDP(2), TotalVariation(0.4)]).value


def test_existing_files_are_refused_unless_forced(run, refused, tmp_path):
    """An output that exists is refused, whichever it is, and replaced with --force."""
    (tmp_path / "channel.png").write_text("precious")
    assert "channel.png: expected a path that does not exist yet" in refused("design", *PAIR, "-e", "1")
    assert run("design", *PAIR, "-e", "1", "--force").exit_code == 0
    assert (tmp_path / "channel.png").read_bytes().startswith(b"\x89PNG")
    assert "--force" in refused("design", *PAIR, "-e", "2")


INLINE = {
    "NaN": (["0.5,nan", "0.5,0.5"], "p0: expected finite numbers, got nan at entry 1"),
    "infinite": (["0.5,0.5", "0.5,inf"], "p1: expected finite numbers, got inf at entry 1"),
    "negative": (["1.5,-0.5", "0.5,0.5"], "p0: expected non-negative entries, got -0.5 at entry 1"),
    "sum": (["0.5,0.5", "0.5,0.6"], "p1: expected entries that sum to 1 within 1e-09"),
    "lengths": (["0.5,0.5", "0.5,0.3,0.2"], "p1: expected 2 entries, as many as p0, got 3"),
    "one answer": (["1", "1"], "p0: expected at least 2 entries, got 1"),
    "equal": (["0.5,0.5", "0.5,0.5"], "p0 and p1: expected two different distributions, got equal ones"),
    "disjoint": (["1,0", "0,1"], "p0 and p1: expected overlapping supports, got disjoint ones"),
    "text": (["0.5,half", "0.5,0.5"], "p0: expected numbers separated by commas, got 'half' at entry 1"),
    "empty entry": (["0.5,,0.5", "0.5,0.5"], "p0: expected numbers separated by commas, got '' at entry 1"),
}


@pytest.mark.parametrize(("pair", "message"), INLINE.values(), ids=INLINE)
def test_bad_distributions_are_refused(refused, pair, message):
    """Every malformed pair of distributions is refused with what, expected, got and where."""
    assert message in refused("design", "--p0", pair[0], "--p1", pair[1], "--epsilon", "1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-e", "0"], "epsilon: expected a number of nats between 1e-09 and 700, got 0.0"),
        (["-e", "-1"], "epsilon: expected a number of nats between 1e-09 and 700, got -1.0"),
        (["-e", "inf"], "epsilon: expected a positive finite number of nats, got inf"),
        (["-e", "nan"], "epsilon: expected a positive finite number of nats, got nan"),
        (["-e", "one"], "epsilon: expected a number, got 'one'"),
        (["-e", "1", "-t", "1.5"], "eta: expected a number in [0, 1], got 1.5"),
        (["-e", "1", "-t", "-0.1"], "eta: expected a number in [0, 1], got -0.1"),
        (["-e", "1", "-t", "nan"], "eta: expected a number in [0, 1], got nan"),
        (["-e", "1", "-f", "manhattan"], "divergence: expected one of kl, reverse-kl"),
        (["-e", "1", "-f", "hockey-stick"], "divergence: expected one of kl, reverse-kl"),
        (["-e", "1", "-f", "hockey-stick:-1"], "gamma: expected a positive finite number, got -1.0"),
        (["-e", "1", "-f", "alpha:two"], "divergence alpha: expected a number, got 'two'"),
        (["-e", "1", "--labels", "a,b"], "labels: expected 3 distinct labels, separated by commas, got 'a,b'"),
        (["-e", "1", "--labels", "a,b,a"], "labels: expected 3 distinct labels"),
        (["-e", "1", "--picture", "channel.bmp"], "channel.bmp: expected a picture named *.png, *.svg, *.pdf, *.pgf"),
        (["-e", "1", "--out", "nowhere/channel.json"], "expected a path in a folder that exists"),
        (["-e", "1", "--out", "same.png", "--picture", "same.png"], "same.png: expected a path for each output"),
        (["-e", "1", "--columns", "a,b"], "require a FILE"),
        ([], "--epsilon, --rho or --renyi"),
        (["-e", "1", "--loud"], "No such option"),
    ],
)  # fmt: skip
def test_bad_options_are_refused_by_name(refused, options, message):
    """Every malformed option is refused by name."""
    assert message in refused("design", *PAIR, *options)


@pytest.mark.parametrize(
    ("contents", "options", "message"),
    [
        ("", [], "pair.csv: expected a file with contents, got an empty one"),
        ("p0,p1\n0.5,nan\n0.5,0.5\n", [], "pair.csv: expected a number, got nan at line 2, column 2"),
        ("p0,p1\n0.5\n", [], "pair.csv: expected 2 cells in each line, got 1 at line 2"),
        ("p0,p1\n5,1\n5,9\n", [], "pair.csv: p0: expected entries that sum to 1 within 1e-09"),
        ("a,b,c\n1,2,3\n", [], "pair.csv: expected a column 'p0', got 3 others"),
        ("a,g\nx,1\ny,2\nx,3\n", ["--answer", "a", "--group", "g"], "pair.csv: expected exactly two groups, got 3"),
        ("a,g\nx,1\n", ["--answer", "a"], "--answer and --group must be given together"),
        ("a,g\nx,1\n", ["--answer", "a", "--group", "g", "--counts"], "--columns and --counts cannot be combined"),
        ("p0,p1\n0.5,0.4\n0.5,0.6\n", ["--columns", "p0"], "--columns: expected two names"),
        ("p0,p1\n0.5,0.4\n0.5,0.6\n", [*PAIR], "populations: expected FILE, or --p0 and --p1"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_by_name(refused, tmp_path, contents, options, message):
    """Every file without two populations is refused with its name, and the line where there is one."""
    (tmp_path / "pair.csv").write_text(contents)
    assert message in refused("design", "pair.csv", "--epsilon", "1", *options)


def test_unreadable_sources_are_refused(refused, tmp_path):
    """A missing file, a folder, bytes that are no text, and no source at all are refused."""
    (tmp_path / "binary.csv").write_bytes(b"p0,p1\n\xff\xfe\n")
    (tmp_path / "broken.json").write_text('{"p0": [0.5, 0.5')
    assert "nowhere.csv: expected a readable file" in refused("design", "nowhere.csv", "-e", "1")
    assert "expected a readable file" in refused("design", tmp_path, "-e", "1")
    assert "binary.csv: expected UTF-8 text" in refused("design", "binary.csv", "-e", "1")
    assert "broken.json: populations: expected valid JSON" in refused("design", "broken.json", "-e", "1")
    assert "expected FILE, or both --p0 and --p1, got none" in refused("design", "-e", "1")
    assert "expected FILE, or both --p0 and --p1, got one" in refused("design", "--p0", "1,0", "-e", "1")


@pytest.mark.full
def test_a_thousand_answers_are_designed_and_drawn(run, tmp_path):
    """A thousand answers are designed, certified and drawn."""
    rng = np.random.default_rng(5)
    rows = zip(rng.dirichlet(np.ones(1000)), rng.dirichlet(np.ones(1000)), strict=True)
    (tmp_path / "big.csv").write_text(
        "p0,p1\n" + "".join(f"{a!r},{b!r}\n" for a, b in rows).replace("np.float64(", "").replace(")", "")
    )
    assert run("design", "big.csv", "-e", "1", "--counts").exit_code == 0
    assert Channel.from_json((tmp_path / "channel.json").read_text()).shape[0] == 1000


def test_a_refused_table_names_the_option_that_mends_it(refused, tmp_path):
    """Counts are told of --counts, other names of --columns, a file of respondents of --answer and --group."""
    (tmp_path / "towns.csv").write_text("answer,east,west\nwalk,10,5\ncar,90,95\n")
    assert "(--counts divides counts by their sum), got 100" in refused(
        "design", "towns.csv", "--columns", "east,west", "-e", "1"
    )
    assert "got 3 others (--columns NAME,NAME says which two)" in refused("design", "towns.csv", "-e", "1")
    (tmp_path / "people.csv").write_text("income,vote\nlow,red\nhigh,blue\n")
    said = refused("design", "people.csv", "-e", "1")
    assert "got text at line 2, column 1 (for a line per respondent give --answer and --group)" in said
    assert "low" not in said


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (["-e", "1", "--delta", "0.05"], ("hockey_stick", 0.05)),
        (["--rho", "0.5"], ("zcdp", 0.5)),
        (["--renyi", "2:0.5"], ("renyi", 0.5)),
        (["-e", "4", "--outputs", "2"], ("outputs", 2)),
    ],
    ids=["delta", "rho", "renyi", "outputs"],
)
def test_each_other_limit_is_a_constraint_of_the_library(run, options, limit):
    """Every other limit is a constraint of the library, whose measure is among the guarantees and within it."""
    found = machine(run, "--p0", "0.8,0.2", "--p1", "0.3,0.7", *options)
    values = {one["notion"]: one["value"] for one in found["guarantees"]}
    assert values[limit[0]] <= limit[1]
    assert found["verified"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delta", "0.1"], "delta requires epsilon as well"),
        (["--renyi", "2"], "ORDER:NATS"),
        (["-e", "1", "--outputs", "0"], "--outputs"),
    ],
)
def test_limits_that_are_none(run, options, message):
    """Without a limit of privacy, or with half of one, there is a message and no design."""
    result = run("design", *PAIR, *options)
    assert result.exit_code != 0
    assert message in result.stderr


def test_a_time_limit_is_passed_on(run, monkeypatch, tmp_path):
    """Out of time the design is what is known by then; the text says so and the files are those of a design."""
    from ldpopt.values import deadline

    now = iter(range(10**6))
    monkeypatch.setattr(deadline, "monotonic", lambda: float(next(now)))
    pair = ("--p0", "0.3,0.25,0.2,0.15,0.1", "--p1", "0.1,0.15,0.2,0.25,0.3")
    limits = ("--epsilon", "4", "--outputs", "3", "--time-limit", "0.5", "--save-design", "design.json")
    result = run("design", *pair, *limits)
    assert result.exit_code == 0, result.stderr
    assert "the time limit of 0.5 s ended" in " ".join(result.stdout.split())
    assert (tmp_path / "design.json").exists()


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "-inf", "soon", "1e-400"])
def test_a_bad_time_limit_is_refused_in_one_line(run, bad, tmp_path):
    """A bad time limit starts no work and writes no file."""
    result = run("design", *PAIR, "--epsilon", "1", "--time-limit", bad)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "time" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("when", [0.0, 0.5, 1.0])
def test_an_interrupted_design_leaves_nothing(run, monkeypatch, tmp_path, when):
    """Whenever Ctrl-C comes, it is no success and no file is there, whole or half."""

    def interrupted(*_, progress, **__):
        progress(when)
        raise KeyboardInterrupt

    monkeypatch.setattr("ldpopt.design.optimal_channel", interrupted)
    result = run("design", *PAIR, "--epsilon", "1", "--save-design", "design.json")
    assert result.exit_code in (1, 130)  # 130 of the program itself, where typer's runner says 1
    assert not list(tmp_path.iterdir())


def test_the_options_of_limits_are_those_that_constraints_declare():
    """Every number that a constraint asks for has its option, with the declared unit and sentence."""
    design = get_command(app).commands["design"]
    shown = {option.name: option for option in design.get_params(design.context_class(design))}
    for name, asked in command_options(constraints).items():
        assert shown[name].metavar == ":".join(one.unit for one in asked)
        assert shown[name].help == asked[-1].help


PAIR = ("--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5")


def test_a_cap_on_total_variation_alone_is_a_limit(run):
    """`--eta` alone designs the erasure channel, as `TotalVariation` alone does in Python."""
    result = run("design", *PAIR, "--eta", "0.3", "--json")
    assert result.exit_code == 0, result.stderr
    made = json.loads(result.stdout)
    expected = optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), TotalVariation(0.3))
    assert made["value"] == pytest.approx(expected.value, rel=1e-9)
    assert made["verified"]
    assert made["epsilon"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*PAIR, "--epsilon", "1", "--outputs", "0"), "--outputs: expected an integer of at least 1, got 0"),
        (("--p0", "1e308,1e308", "--p1", "0.5,0.5", "--epsilon", "1"), "p0: expected entries that sum to 1"),
        (("--p0", "0.5,0.5", "--p1", "1.7e308,1.7e308", "--epsilon", "1"), "p1: expected entries that sum to 1"),
        ((*PAIR, "--rho", "5e-324"), "rho: expected a number in [1e-300, 100]"),
    ],
)
@pytest.mark.parametrize("command", ["design", "frontier"])
def test_numbers_out_of_range_are_one_line(run, command, arguments, said):
    """Entries whose sum is beyond floats, and values that no constraint takes, are told in one line that names them."""
    if command == "frontier" and ("--outputs" in arguments or "--rho" in arguments):
        arguments = ("--p0", "1e308,1e308", "--p1", "0.5,0.5")
        said = "p0: expected entries that sum to 1"
    result = run(command, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.full
@pytest.mark.parametrize(
    "limits", [("--epsilon", "1", "--eta", "5e-324"), ("--epsilon", "1", "--delta", "5e-324"), ("--eta", "5e-324")]
)
def test_limits_at_the_ends_of_floats_print_no_warnings(spawn, limits):
    """The smallest floats give a design, and no line of numpy's reaches the terminal."""
    process = spawn("design", *PAIR, *limits)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Warning" not in said


def test_help_states_requirements_and_defaults(run, monkeypatch):
    """A limit is required, and each population without a file; nothing claims the default "none"."""
    monkeypatch.setenv("COLUMNS", "400")
    for command in ("design", "frontier"):
        shown = run(command, "--help").stdout
        lines = {line.split()[1]: line for line in shown.splitlines() if line.startswith("│ --")}
        assert "required without FILE" in lines["--p0"]
        assert "required without FILE" in lines["--p1"]
        assert "(none)" not in shown
        assert "no limit" in lines["--time-limit"]
        required = "at least one of --epsilon, --eta, --rho and --renyi" in shown
        assert required if command == "design" else "[default: 0.5,1,2]" in lines["--epsilon"]
