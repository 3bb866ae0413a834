"""``ldpopt survey collect``, ``invitations`` and ``export``: from a plan to reports in a database, and out of it."""

import socket
import stat
from dataclasses import replace

import pytest
from collectors import habits

from ldpopt_survey.server import Submission, database


@pytest.fixture
def plan(tmp_path):
    made = habits()
    (tmp_path / "plan.json").write_text(made.to_json(), encoding="utf-8")
    return made


@pytest.fixture
def collected(tmp_path, plan):
    with database(tmp_path / "reports.db", plan, create=True) as store:
        rows = [bytes([n % 3, 0, 0, 0, n % 2, 0, 0, 0, n % 4, 0, 0, 0]) for n in range(300)]
        store.write([Submission(n.to_bytes(16, "big"), row) for n, row in enumerate(rows)], "2026-01-31")


@pytest.mark.full
def test_a_database_is_read_as_files_are(run, collected, tmp_path):
    """Counts, estimates and page from a file, by its name and by its address, are those of its export."""
    assert run("survey", "export", "plan.json", "reports.db").exit_code == 0
    for number, source in enumerate(("reports.db", "sqlite:///reports.db", "reports.parquet")):
        assert run("survey", "aggregate", "plan.json", source, "-o", f"{number}.json").exit_code == 0
    assert len({(tmp_path / f"{number}.json").read_bytes() for number in range(3)}) == 1
    said = [run("survey", "estimate", "plan.json", source, "--json") for source in ("reports.db", "reports.parquet")]
    assert said[0].exit_code == 0
    assert said[0].stdout == said[1].stdout
    assert run("survey", "report", "plan.json", "reports.db").exit_code == 0
    assert "300" in (tmp_path / "report.html").read_text("utf-8")


def test_closing_a_round_is_for_good(run, collected, plan, tmp_path):
    """The round is closed without a server, says how much it holds, and can be counted."""
    said = run("survey", "collect", "plan.json", "--close")
    assert (said.exit_code, "300 reports" in said.stdout) == (0, True)
    with database(tmp_path / "reports.db", plan) as store:
        assert store.state().closed


def test_invitations_are_in_one_private_file(run, plan, tmp_path):
    """Each line is a link of its own; the file is for its owner alone, and is never written over."""
    arguments = ("survey", "invitations", "plan.json", 5, "--link", "https://survey.example/#invitation=")
    assert run(*arguments).exit_code == 0
    path = tmp_path / "invitations.txt"
    lines = path.read_text("utf-8").splitlines()
    assert len(set(lines)) == 5
    assert all(line.startswith("https://survey.example/#invitation=") for line in lines)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(*arguments).exit_code == 2
    with database(tmp_path / "reports.db", plan) as store:
        assert store.summary().drawn == 5
    content = (tmp_path / "reports.db").read_bytes()
    assert not [line for line in lines if line.partition("=")[2].encode() in content]


@pytest.mark.parametrize(
    "arguments",
    [
        ("collect", "plan.json", "--close"),
        ("collect", "plan.json", "--db", "reports.txt"),
        ("collect", "plan.json", "--db", "none/reports.db"),
        ("collect", "plan.json", "--kit", "none"),
        ("collect", "plan.json", "--db", "plan.json"),
        ("invitations", "plan.json", 5, "-o", "none/invitations.txt"),
        ("export", "plan.json", "reports.db"),
        ("aggregate", "plan.json", "reports.db"),
        ("estimate", "plan.json", "sqlite:///reports.db"),
    ],
)
def test_impossible_collectors_are_refused_in_one_line(refused, plan, arguments):
    """The refusal writes nothing: no database, no token, no file."""
    refused("survey", *arguments)


def test_a_taken_port_is_refused_in_one_line(refused, plan):
    """Where another program listens nothing is begun, so that neither database nor token is made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "in use" in refused("survey", "collect", "plan.json", "--port", port, "--token", "token")
    assert "place to listen" in refused("survey", "collect", "plan.json", "--host", "no.such.host.invalid")


def test_a_password_is_never_shown(run, plan):
    """An address that leads nowhere is an error without the address."""
    said = run("survey", "collect", "plan.json", "--db", "postgresql://user:secret@127.0.0.1:1/reports")
    assert said.exit_code == 1
    assert "PostgreSQL" in said.stderr
    assert "secret" not in said.output


def test_a_collector_for_other_machines_warns(run, plan, tmp_path, monkeypatch):
    """With any address but the loopback a line on standard error says so; the token is made for its owner alone."""
    monkeypatch.setattr("ldpopt_survey.server.web.serve", lambda app, listener: None)
    quiet = run("survey", "collect", "plan.json", "--token", "token", "--port", 0)
    loud = run("survey", "collect", "plan.json", "--host", "0.0.0.0", "--token", "token", "--port", 0)
    assert quiet.exit_code == loud.exit_code == 0
    assert quiet.stderr == ""
    assert "unencrypted" in loud.stderr
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert (tmp_path / "token").read_text() not in quiet.output + loud.output
    (tmp_path / "token").chmod(0o644)
    seen = run("survey", "collect", "plan.json", "--token", "token", "--port", 0)
    assert seen.exit_code == 2
    assert "expected mode 0600" in seen.stderr


def test_a_frame_with_ids_counts_the_rounds_that_people_are_invited_to(run, tmp_path):
    """Nobody gets two invitations to a round, or one beyond the rounds they were told of, and no id is stored."""
    frame = [f"{number:012d}" for number in range(20)]
    for number in (1, 2, 3):
        made = replace(habits(), name="panel", respondent="id", rounds=2, round=number)
        (tmp_path / f"plan{number}.json").write_text(made.to_json(), encoding="utf-8")
    (tmp_path / "frame.csv").write_text("\n".join(["id", *frame]), encoding="utf-8")
    (tmp_path / "more.csv").write_text(
        "\n".join(["id", *(f"{number}.0" for number in range(10, 30))]), encoding="utf-8"
    )

    def invite(number, name, *more):
        out = f"{number}{name}{len(more)}.txt"
        said = run("survey", "invitations", f"plan{number}.json", "--frame", f"{name}.csv", "-o", out, *more)
        return said.exit_code, said.stdout + said.stderr, tmp_path / out

    assert invite(1, "frame")[0] == 0
    code, said, out = invite(1, "frame", "--alike")
    assert (code, "got 20 with other reports of round 1" in said, out.exists()) == (2, True, False)
    assert invite(2, "more")[0] == 0
    assert "and 10 whose reports of all rounds" in invite(3, "more")[1].replace("\n", " ")
    code, said, out = invite(3, "more", "--leave-out")
    assert (code, len(out.read_text("utf-8").splitlines())) == (0, 10)
    assert "10 are not invited" in said
    said = run("survey", "invitations", "plan3.json", 5, "-o", "counted.txt")
    assert (said.exit_code, "respondents' ids in a column 'id'" in said.stderr.replace("\n", " ")) == (2, True)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".db", ".ledger"))
    assert not any(one.encode() in stored for one in frame[10:])
    assert len(list(tmp_path.glob("*.ledger"))) == 1


def test_a_round_beyond_the_announced_ones_needs_invitations(run, tmp_path):
    """Without invitations the collector cannot count how often a person takes part."""
    made = replace(habits(), respondent="id", rounds=1, round=2)
    (tmp_path / "plan.json").write_text(made.to_json(), encoding="utf-8")
    said = run("survey", "collect", "plan.json", "--port", 0)
    assert (said.exit_code, "invitations by respondents' ids" in said.stderr.replace("\n", " ")) == (2, True)
