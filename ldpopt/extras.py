"""Packages that only some of the work needs: what is missing is said in one line, before anything is begun."""

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
}
"""By the name of a module, the extra that installs it; none for what comes with the package."""


class MissingExtra(LdpoptError, ImportError):
    """A package that ldpopt or one of its extras installs is not there."""


def missing(module: str, extra: str = "") -> MissingExtra:
    """The error for a module that is not there. extra : one that installs it, where several do.

    >>> print(missing("pyarrow.parquet"))
    this needs the package pyarrow, which is not installed: python -m pip install ldpopt
    """
    name = module.split(".")[0]
    extra = extra or EXTRAS[name]
    from_ = f"'ldpopt[{extra}]'" if extra else "ldpopt"
    return MissingExtra(f"this needs the package {name}, which is not installed: python -m pip install {from_}")


def need(*modules: str, extra: str = "") -> None:
    """`MissingExtra` unless these modules of `EXTRAS` can be imported; `extra` as in `missing`."""
    for module in modules:
        if find_spec(module) is None:
            raise missing(module, extra)
