"""A package that an extra installs is asked for by the command that installs it."""

import tomllib
from pathlib import Path

import pytest

from ldpopt.errors import LdpoptError
from ldpopt.extras import EXTRAS, missing, need


def test_installed_packages_raise_no_error():
    """Nothing is raised, or imported, for packages that are installed."""
    need("pyarrow", "cryptography")
    need()


def test_missing_packages_are_named_with_their_extra(monkeypatch):
    """The message has the package and the extra, and is one of the package's own errors."""
    monkeypatch.setattr("ldpopt.extras.find_spec", lambda name: None)
    with pytest.raises(LdpoptError, match=r"package distributed, .* 'ldpopt\[dask\]'"):
        need("distributed")
    assert isinstance(missing("pyarrow.csv"), ImportError)


def test_the_extras_are_those_of_the_project():
    """Every extra that is named exists, and installs the package that it is named for."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    for module, extra in EXTRAS.items():
        named = project["optional-dependencies"][extra] if extra else project["dependencies"]
        assert any(one.startswith(module.replace("_", "-")) or extra in ("dask", "sklearn") for one in named)
