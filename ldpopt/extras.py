"""Lazily loaded packages, and the registered functions that draw.

A package that is not installed is reported in one line, before the work begins.

`pa`, `pc`, `pq` and `arrow_csv` are pyarrow and its parts, which take long to load, and load when they are first used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ldpopt.errors import LdpoptError

__all__ = [
    "EXTRAS", "MissingExtra", "arrow_csv", "drawing", "load_with", "missing", "need", "offering", "pa", "pc", "pq",
    "register", "uninstalled",
]  # fmt: skip

EXTRAS = {
    "pyarrow": "survey",
    "cryptography": "survey",
    "fpdf": "survey",
    "jinja2": "survey",
    "uharfbuzz": "paper",
    "python_calamine": "survey",
    "pyreadstat": "spss",
    "dask": "dask",
    "distributed": "dask",
    "dp_accounting": "interop",
    "opendp": "interop",
    "starlette": "collect",
    "uvicorn": "collect",
    "psycopg": "collect",
    "prometheus_client": "collect",
    "sklearn": "sklearn",
}
"""The extra that installs each module."""


class MissingExtra(LdpoptError, ImportError):
    """Something is not installed that comes with an extra."""


def missing(module: str, extra: str = "") -> MissingExtra:
    """Build the error for a module that is not installed."""
    # `extra` names the extra, if several install the module.
    name = module.split(".")[0]
    return uninstalled(f"this needs the package {name}, which", extra or EXTRAS[name])


def uninstalled(feature: str, extra: str) -> MissingExtra:
    """Build the error for a feature that an extra installs."""
    return MissingExtra(f"{feature} is not installed: python -m pip install 'ldpopt[{extra}]'")


def need(*modules: str, extra: str = "") -> None:
    """Raise `MissingExtra` unless these modules of `EXTRAS` can be imported; `extra` as in `missing`."""
    for module in modules:
        if find_spec(module) is None:
            raise missing(module, extra)


def offering(
    package: str, homes: Mapping[str, Iterable[str]], loaded: Iterable[Callable[..., Any]] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__all__`, `__getattr__` and `__dir__` of a package whose names load when they are first used.

    Parameters
    ----------
    package : Full name of the package.
    homes : The names that each module defines; those listed under the package itself are its modules.
    loaded : Further public functions and classes, which the package itself imports or defines.
    """
    modules = {name: module for module, names in homes.items() for name in names}
    public = [*(member.__name__ for member in loaded), *modules]

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return (
            import_module(f"{package}.{name}")
            if modules[name] == package
            else getattr(import_module(modules[name]), name)
        )

    def names_of_package() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return public, load, names_of_package


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
    """Register a function that is called before an unknown figure is drawn."""
    # It must `register` the functions.
    _LOADERS.append(load)


def register(*functions: Callable[..., Any]) -> None:
    """Register functions that draw, each under its name."""
    _DRAW.update({function.__name__: function for function in functions})


def drawing(name: str) -> Callable[..., Any]:
    """Return the function that draws the figures of this name."""
    for load in _LOADERS:
        if name not in _DRAW:
            load()
    return _DRAW[name]
