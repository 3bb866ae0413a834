"""Draw the pictures of the task gallery anew: ``python docs/images/tasks.py``.

Each is drawn by the lines of ``docs/examples/gallery.md`` next to it: the figure of their last line, made small.
"""

import ast
import os
import re
import tempfile
from io import BytesIO
from pathlib import Path

import matplotlib
from PIL import Image

matplotlib.use("agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
PAGE = HERE.parent / "examples" / "gallery.md"
TASK = re.compile(
    r"^## (.+)\n\n.+\n(?:.+\n)*\n```\{testcode\}\n((?:.*\n)*?)```\n\n!\[.+\]\(\.\./images/tasks/(.+)\)", re.MULTILINE
)
WIDTH = 800


def last(code: str) -> object:
    """The value of the last line, after all others were run in a fresh namespace."""
    *before, line = ast.parse(code).body
    space: dict[str, object] = {}
    exec(compile(ast.Module(before, []), "gallery.md", "exec"), space)
    assert isinstance(line, ast.Expr)
    drawn = eval(compile(ast.Expression(line.value), "gallery.md", "eval"), space)
    if drawn is None:  # a table of reports, which is drawn as bars
        import pandas as pd

        drawn = pd.crosstab(space["answers"]["cycles"], space["reports"]["cycles"]).plot.barh(
            stacked=True, xlabel="answers", ylabel="says", color=["#0072B2", "#D55E00"], figsize=(6, 2.4)
        )
        drawn.legend(title="reports", frameon=False, bbox_to_anchor=(1, 1))
    return drawn


def main() -> None:
    """Every picture of the page."""
    tasks = TASK.findall(PAGE.read_text("utf-8"))
    os.chdir(tempfile.mkdtemp())
    for title, code, name in tasks:
        figure = last(code).figure  # type: ignore[attr-defined]
        drawn = BytesIO()
        figure.savefig(drawn, dpi=110, bbox_inches="tight", facecolor="white")
        plt.close("all")
        image = Image.open(drawn).convert("RGB")
        image.thumbnail((WIDTH, 700), Image.Resampling.LANCZOS)
        image.quantize(64).save(HERE / "tasks" / name, optimize=True)
        print(title, image.size)


if __name__ == "__main__":
    main()
