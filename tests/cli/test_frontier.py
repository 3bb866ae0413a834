"""``ldpopt frontier`` writes the library's table and its picture."""

import csv

import pytest

from ldpopt import Divergence, frontier
from ldpopt.bounds import compare
from ldpopt.divergences import CHI_SQUARED, KL

PAIR = ("--p0", "0.5,0.3,0.2", "--p1", "0.2,0.3,0.5")
P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


def test_table_and_picture_are_written(run, tmp_path):
    """The table is the library's own, for the grid asked for."""
    result = run("frontier", *PAIR, "--epsilon", "1,2", "--eta", "0.1,0.3", "-f", "chi-squared")
    assert result.exit_code == 0, result.stderr
    expected = frontier(Divergence(CHI_SQUARED, P0, P1), [1.0, 2.0], [0.1, 0.3])
    assert (tmp_path / "frontier.csv").read_text() == expected.to_csv()
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote frontier.csv" in result.stdout


@pytest.mark.full
def test_the_default_grid_has_three_epsilons_and_all_caps(run, tmp_path):
    """Without a grid, three levels of epsilon and caps from 0 to 1 are tabulated."""
    assert run("frontier", *PAIR, "--out", "t.csv", "--picture", "t.svg").exit_code == 0
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 63
    assert {row["epsilon"] for row in rows} == {"0.5", "1.0", "2.0"}
    best = max(float(row["optimum"]) for row in rows)
    assert best <= KL(P0, P1)


@pytest.mark.full
def test_bounds_and_mechanisms_at_every_point(run, refused, tmp_path):
    """With --bounds the table is that of `bounds.compare`, drawn too; it runs in one process."""
    asked = ("frontier", *PAIR, "-e", "1,2", "-t", "0,0.3", "--bounds", "--picture", "frontier.pdf")
    assert run(*asked).exit_code == 0
    expected = compare(Divergence(KL, P0, P1), [1.0, 2.0], [0.0, 0.3])
    assert (tmp_path / "frontier.csv").read_text() == expected.to_csv()
    assert (tmp_path / "frontier.pdf").read_bytes().startswith(b"%PDF")
    assert "cannot be combined with --jobs or --resume" in refused(*asked, "--force", "--jobs", "2")


def test_bad_grids_and_existing_files_are_refused_before_writing(refused, tmp_path):
    """Bad grids, bad populations and existing files are refused before anything is written."""
    assert "epsilon: expected a number of nats between 1e-09 and 700, got 0.0" in refused(
        "frontier", *PAIR, "-e", "1,0"
    )
    assert "eta: expected a number in [0, 1], got 2.0" in refused("frontier", *PAIR, "-t", "0.5,2")
    assert "eta: expected numbers separated by commas, got '' at entry 1" in refused("frontier", *PAIR, "-t", "0.5,")
    assert "got equal ones" in refused("frontier", "--p0", "0.5,0.5", "--p1", "0.5,0.5")
    (tmp_path / "frontier.csv").write_text("precious")
    assert "frontier.csv: expected a path that does not exist yet" in refused("frontier", *PAIR, "-e", "1", "-t", "0.1")


@pytest.mark.full
def test_jobs_and_resume(run, refused, tmp_path):
    """Two processes and a folder to resume from write the table of one; the folder serves the same command only."""
    grid = ("frontier", *PAIR, "--epsilon", "1,2", "--eta", "0.1,0.3")
    assert run(*grid, "--out", "one.csv").exit_code == 0
    result = run(*grid, "--out", "two.csv", "--jobs", "2", "--resume", "work")
    assert result.exit_code == 0, result.stderr
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").iterdir()}
    assert len(parts) == 3
    assert run(*grid, "--out", "three.csv", "--resume", "work").exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "work").iterdir()} == parts
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "three.csv").read_bytes()
    other = ("frontier", *PAIR, "--epsilon", "1", "--eta", "0.1", "--out", "four.csv", "--resume", "work")
    assert "folder of the same frontier" in refused(*other)
    assert "jobs: expected" in refused("frontier", *PAIR, "--out", "four.csv", "--jobs", "0")
