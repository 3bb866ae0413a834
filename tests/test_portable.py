"""Nothing is imported that only POSIX systems have, so that Windows can design, check, plan and estimate."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packages import PACKAGES, modules

import ldpopt

POSIX = ("fcntl", "pwd", "grp", "resource", "termios", "syslog", "crypt", "posix_ipc")

WITHOUT = f"""
import sys
for name in {POSIX!r}:
    sys.modules[name] = None  # importing it is an ImportError from now on
import os
"""

EVERYTHING = """
import importlib, pkgutil, ldpopt, ldpopt_studio, ldpopt_survey
for package in (ldpopt, ldpopt_survey, ldpopt_studio):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print("imported")
"""

WORK = """
import numpy as np
from pathlib import Path
from ldpopt import *
from ldpopt.divergences import KL
from ldpopt_survey import *
design = optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0))
assert design.certified and design.verify()
sweep(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), lambda e: LocalDP(e), [1.0], resume="folder")
planned = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),)))
plan = Plan.from_json(planned.plan.to_json())
Path("answers.csv").write_text("vote\\n" + "no\\nyes\\nno\\nno\\nyes\\n" * 20)
privatize(plan, "answers.csv", "reports.csv")
counts = aggregate(plan, "reports.csv")
table = dict(enumerate(counts["vote"].tolist()))
assert abs(sum(estimate(table, plan.question("vote").channel.matrix).values) - 1) < 1e-9
print("worked")
"""


def python(program: str, folder: Path) -> str:
    """What the program prints."""
    environment = {"PYTHONPATH": str(Path(ldpopt.__file__).parents[1]), "PATH": "/usr/bin:/bin", "MPLBACKEND": "agg"}
    environment["HOME"] = str(folder)  # Windows says it by a variable too; without one, Python asks `pwd`
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, env=environment)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.mark.full
def test_the_package_works_without_posix_modules(tmp_path: Path) -> None:
    """Every module is imported, and a survey goes from its plan to its estimate, without those modules and flags."""
    missing = "".join(f"if hasattr(os, {name!r}): del os.{name}\n" for name in ("geteuid", "O_NOFOLLOW"))
    assert python(WITHOUT + missing + EVERYTHING + WORK, tmp_path).split() == ["imported", "worked"]


def test_no_module_names_them() -> None:
    """Not even a function of the package imports one of them later."""
    for path in modules(*PACKAGES).values():
        text = path.read_text("utf-8")
        assert not re.search(rf"\b(import|from) ({'|'.join(POSIX)})\b", text), path
    assert len(modules(*PACKAGES)) > 300
