"""The check of the built site's links, which `.ci/run` makes, finds what leads nowhere and nothing else."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from dead_links import dead_links

sys.path.pop(0)

pytestmark = pytest.mark.full


@pytest.fixture
def site(tmp_path):
    """Two pages and a picture."""
    (tmp_path / "part").mkdir()
    (tmp_path / "index.html").write_text('<p id="here"></p><a href="part/one.html#place">x</a><a href="#here">y</a>')
    (tmp_path / "part" / "one.html").write_text('<p id="place"></p><img src="../a%20b.png"><a href="..">home</a>')
    (tmp_path / "a b.png").write_bytes(b"")
    return tmp_path


def test_links_that_lead_somewhere_pass(site):
    """Pages, places, pictures with coded names and folders with an index are found."""
    assert dead_links(site) == (4, [])


@pytest.mark.parametrize(
    "address",
    ["two.html", "part/one.html#elsewhere", "#nowhere", "b.png", "../outside.html", "http://example.org", "part/"],
)
def test_links_that_lead_nowhere_are_listed(site, address):
    """A page or a place that is not there, one outside the site, and one that is not https is a line each."""
    (site / "index.html").write_text(f'<a href="{address}">x</a>')
    count, dead = dead_links(site)
    assert count == 3
    assert [line.split(": ")[:2] for line in dead] == [["index.html", address]]
