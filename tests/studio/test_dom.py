"""The page's numbers: a privacy limit or an upper bound is rounded up, as the program's own texts round it."""

import json
import random
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from kit_plans import NODE, WITHOUT_NODE

from ldpopt.numbers.rounding import ceil_digits

STATIC = Path(str(files("ldpopt_studio"))) / "static"
PROGRAM = """
const { atMost, percentAtMost } = await import(process.argv[1]);
const cases = JSON.parse(process.argv[2]);
const told = cases.map(([value, digits]) => [atMost(value, digits), percentAtMost(value, digits)]);
console.log(JSON.stringify(told));
"""


@pytest.mark.skipif(NODE is None, reason=WITHOUT_NODE)
def test_the_page_rounds_limits_up():
    """The displayed number is at least the value and less than a unit of its last digit above it."""
    rng = random.Random(1)
    values = [10 ** rng.uniform(-3, 5) for _ in range(400)]
    values += [0.3, 0.1 + 0.2, 1.09861228866811, 0.5000000000000001, 2.5e-5, 999.96, 0.99999, 123456.7, 0.0]
    cases = [(value, digits) for value in values for digits in (2, 3, 4, 6)]
    arguments = [NODE, "--input-type=module", "-e", PROGRAM, (STATIC / "dom.js").as_uri(), json.dumps(cases)]
    result = subprocess.run(arguments, capture_output=True, check=True, text=True)
    for (value, digits), (plain, percent) in zip(cases, json.loads(result.stdout), strict=True):
        displayed = float(plain.replace(",", "").replace("−", "-"))
        assert value <= displayed <= value * (1 + 10.0 ** (1 - digits)), (value, digits, plain)
        assert displayed == float(ceil_digits(value, digits)), (value, digits, plain)
        assert float(percent.removesuffix(" %").replace(",", "").replace("−", "-")) >= 100 * value * (1 - 1e-15)


def test_no_module_of_the_page_rounds_a_limit_to_the_nearest():
    """A limit, and a bound that is called one, is never passed to `shown`."""
    limit = re.compile(r"\bshown\((?:[\w.\[\]]+\.)?(?:epsilon(?:_at_delta)?|eta|bound|upper_bound)\b")
    modules = sorted(STATIC.glob("*.js"))
    # The sliders and curves show the value at which a control stands, which is exact in these digits.
    controls = {"tell_curves.js"}
    wrong = [path.name for path in modules if path.name not in controls and limit.search(path.read_text("utf-8"))]
    assert len(modules) > 15
    assert wrong == []
