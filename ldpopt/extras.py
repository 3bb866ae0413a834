"""Packages that only some functions need. A missing one is reported in one line, before the work begins."""

from __future__ import annotations

from importlib.util import find_spec

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
