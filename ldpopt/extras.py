"""What is loaded only where it is needed: packages, and the functions that draw.

A package that is not installed is reported in one line, before the work begins.

`pa`, `pc`, `pq` and `arrow_csv` are pyarrow and its parts, which take long to load, and load when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ldpopt.errors import LdpoptError

EXTRAS = {
    "pyarrow": "",
    "cryptography": "",
    "fpdf": "",
    "uharfbuzz": "paper",
    "python_calamine": "",
    "pyreadstat": "spss",
    "dask": "dask",
    "distributed": "dask",
    "dp_accounting": "interop",
    "opendp": "interop",
    "starlette": "collect",
    "uvicorn": "collect",
    "psycopg": "collect",
    "sklearn": "sklearn",
}
"""The extra that installs each module; the empty string for a module that ldpopt itself installs."""


class MissingExtra(LdpoptError, ImportError):
    """A package is not installed that comes with ldpopt or with one of its extras."""


def missing(module: str, extra: str = "") -> MissingExtra:
    """The error for a module that is not installed. extra : the extra to name, where several install the module."""
    name = module.split(".")[0]
    extra = extra or EXTRAS[name]
    from_ = f"'ldpopt[{extra}]'" if extra else "ldpopt"
    return MissingExtra(f"this needs the package {name}, which is not installed: python -m pip install {from_}")


def need(*modules: str, extra: str = "") -> None:
    """Raise `MissingExtra` unless these modules of `EXTRAS` can be imported; `extra` as in `missing`."""
    for module in modules:
        if find_spec(module) is None:
            raise missing(module, extra)


class _Later:
    """A module that is imported when something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


pa: Any = _Later("pyarrow")
pc: Any = _Later("pyarrow.compute")
pq: Any = _Later("pyarrow.parquet")
arrow_csv: Any = _Later("pyarrow.csv")

_DRAW: dict[str, Callable[..., Any]] = {}
_LOADERS: list[Callable[[], object]] = []


def load_with(load: Callable[[], object]) -> None:
    """Say what is called before the first picture is drawn: it must `register` the functions."""
    _LOADERS[:] = [load]


def register(*functions: Callable[..., Any]) -> None:
    """Functions that draw, each under its own name."""
    _DRAW.update({function.__name__: function for function in functions})


def drawing(name: str) -> Callable[..., Any]:
    """The function that draws the pictures of this name."""
    for load in _LOADERS:
        load()
    return _DRAW[name]
