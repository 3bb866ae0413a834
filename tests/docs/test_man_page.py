"""The page for `man` says of every command what its --help says, since it is made of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("docutils")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from man_page import man_page

sys.path.pop(0)


def test_the_manual_has_every_command(tmp_path):
    """It has a section for each command with its options, and reads in `man` where there is one."""
    page = man_page()
    assert re.search(r"(?i)^\.TH \W*ldpopt\W* \W*1", page, re.MULTILINE)
    names = ("DEMO", "DESIGN", "VERIFY", "CHECK", "FRONTIER", "STUDIO", "SURVEY", "SURVEY PLAN")
    for name in names:
        assert f"LDPOPT {name}" in page
    for option in ("save\\-design", "time\\-limit", "epsilon", "picture"):
        assert option in page or option.replace("\\-", "-") in page
    assert "<bool>" not in page
    assert page.count("Usage: ldpopt") > 20
    if shutil.which("man") and shutil.which("groff"):
        (tmp_path / "ldpopt.1").write_text(page, "utf-8")
        read = subprocess.run(["man", "-l", str(tmp_path / "ldpopt.1")], capture_output=True, text=True, timeout=600)
        assert "LDPOPT VERIFY" in read.stdout
