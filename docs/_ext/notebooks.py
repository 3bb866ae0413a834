"""Execute the notebooks anew: ``python docs/_ext/notebooks.py [NAME ...]`` writes `notebooks/*.ipynb` with all outputs.

Each notebook is written as text (`notebooks/*.py`, in jupytext's percent format). This makes its executed form, which
GitHub and Jupyter show with pictures. It needs the extra "docs". Nothing that differs from run to run is kept: no times
and no random names of cells. Pictures are reduced to 128 colours, which drawn lines and letters do not show.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
SECONDS = 120


def executed(text: str) -> Any:
    """The notebook of a text, run from top to bottom in a fresh kernel."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02}"
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False).execute(cwd=str(FOLDER))
    _plain(notebook)
    return notebook


def _plain(notebook: Any) -> None:
    """Drop what differs from run to run, name and reduce the pictures."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    section = ""
    for cell in notebook.cells:
        section = ([section, *re.findall(r"^#+ (.*)$", cell.source, re.MULTILINE)] if _markdown(cell) else [section])[
            -1
        ]
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png")
            if png:
                output["data"]["image/png"] = _reduced(png)
                output["metadata"]["image/png"]["alt"] = f"Picture of the section “{section.replace('$', '')}”"


def _markdown(cell: Any) -> bool:
    return bool(cell.cell_type == "markdown")


def _reduced(png: str) -> str:
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        picture.convert("RGB").quantize(128).save(out, "png", optimize=True)
    return base64.b64encode(out.getvalue()).decode() + "\n"


def main(names: list[str]) -> int:
    """Execute the notebooks with these names (without ending), all without names."""
    import nbformat

    os.environ |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    texts = [path for path in sorted(FOLDER.glob("*.py")) if not names or path.stem in names]
    for path in texts:
        started = time.perf_counter()
        made = path.with_suffix(".ipynb")
        made.write_text(nbformat.writes(executed(path.read_text("utf-8"))) + "\n", "utf-8")
        print(f"{made.name}: {made.stat().st_size / 1000:.0f} kB in {time.perf_counter() - started:.0f} s", flush=True)
    return 0 if texts else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
