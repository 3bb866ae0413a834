"""Every integral, search and grid behind a measure stands on the page that says what encloses it."""

import ast
import re
from pathlib import Path

import pytest

import ldpopt

ROOT = Path(ldpopt.__file__).parents[1]
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "explanation" / "enclosures.md").read_text("utf-8")
PACKAGES = ("privacy", "composition", "mechanisms")

QUADRATURE = {"quad", "quad_vec", "dblquad", "nquad", "fixed_quad", "trapezoid", "simpson", "romberg", "integral"}
SEARCHES = {
    "minimize_scalar", "minimize", "brentq", "brenth", "bisect", "ridder", "toms748", "newton", "root", "root_scalar",
    "fsolve", "linprog", "milp", "least_squares", "fminbound", "golden", "differential_evolution", "curve_fit",
    "bisected",
}  # fmt: skip
GRIDS = {"linspace", "geomspace", "logspace", "leggauss", "hermgauss", "laggauss", "chebgauss", "interp", "rfft",
         "irfft", "rfftn", "fftconvolve"}  # fmt: skip
MATRICES = {"eig", "eigh", "eigvals", "eigvalsh", "svd", "pinv", "lstsq", "solve", "inv", "matrix_rank", "nnls"}
WATCHED = QUADRATURE | SEARCHES | GRIDS | MATRICES | {"enclosed"}


def called(source: str) -> set[str]:
    """The watched functions that a module takes from elsewhere, under whatever name, or reaches by an attribute."""
    tree = ast.parse(source)
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    # The class attribute `enclosed` of a pair is no call.
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr != "enclosed"}
    return {name for name in names if name in WATCHED}


def used() -> dict[str, set[str]]:
    """The watched functions of each module that has some."""
    found = {
        f"{package}/{path.name}": called(path.read_text("utf-8"))
        for package in PACKAGES
        for path in sorted((ROOT / "ldpopt" / package).glob("*.py"))
    }
    return {name: functions for name, functions in found.items() if functions}


def listed() -> dict[str, set[str]]:
    """The functions that each row of the page's table names."""
    rows = re.findall(r"^\| `([^`]+\.py)` \| ([^|]+) \| ([^|]+) \|$", PAGE.split("Searches that are")[0], re.MULTILINE)
    assert all(len(text.split()) >= 3 for _, _, text in rows)
    return {name: set(re.findall(r"`(\w+)`", functions)) for name, functions, _ in rows}


def test_every_use_is_listed_and_every_listed_use_exists():
    """A new integral, search, grid or factorization in these packages needs a line that says what encloses it."""
    assert listed() == used()


def test_uses_are_found_under_other_names():
    """The scan sees calls of attributes, of renamed imports, and functions that are passed on."""
    assert called("from scipy.integrate import quad as area\narea(f, 0, 1)") == {"quad"}
    assert called("import scipy.optimize as so\nbest = partial(so.minimize_scalar, f)") == {"minimize_scalar"}
    assert called("np.linalg.svd(a)") == {"svd"}
    assert called("x = sum(values)") == set()


@pytest.mark.full
def test_estimates_are_not_called_exact():
    """The one module whose integrals nothing encloses calls no measure exact."""
    from ldpopt.mechanisms import ContinuousPair, LaplacePair

    pair = LaplacePair(1.0)
    plain = ContinuousPair(pair.log_p, pair.log_q, pair.edges, pair.epsilon)
    both = plain.mcdp()
    measures = [plain.total_variation(), plain.hockey_stick(0.5), plain.renyi(2.0), plain.renyi(1.0), plain.zcdp(),
                both.mu, both.tau, plain.approximate_dp(0.1)]  # fmt: skip
    assert not any(measure.exact for measure in measures)
    assert pair.renyi(2.0).exact
