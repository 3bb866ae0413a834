"""Whether every script here still runs: all are loaded, and those that have a quick form for it run once in that.

    python experiments/smoke.py

The claims of the papers (`papers`) are run by the tests. Exit code 1 names what fails.
"""

import contextlib
import os
import runpy
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # `experiments`, which is not installed
QUICK = (
    "benchmarks/run.py", "figures/sheet.py", "trust/bounds.py", "trust/browser_kills.py", "trust/closings.py",
    "trust/collect.py", "trust/duplicates.py", "trust/engine/three_answers.py", "trust/exponents.py",
    "trust/field.py", "trust/hostile.py", "trust/inequalities.py", "trust/interruptions.py", "trust/kinds.py",
    "trust/laws.py", "trust/reach.py", "trust/smooth.py", "trust/texts.py",
)  # fmt: skip
"""Scripts that are run with ``--quick``; exit code 1 is a failure."""


def loads(script: Path) -> bool:
    """Whether a script can be loaded, with all that it imports."""
    with contextlib.redirect_stdout(sys.stderr):
        kept = sys.path[:]
        sys.path.insert(0, str(script.parent))
        try:
            runpy.run_path(str(script), run_name="smoke")
        except Exception:
            traceback.print_exc()
            return False
        finally:
            sys.path[:] = kept
            # Modules of one name are in several folders.
            for name, module in list(sys.modules.items()):
                if str(HERE) in str(getattr(module, "__file__", "")):
                    del sys.modules[name]
    return True


def main() -> int:
    """Load all scripts, and run some."""
    scripts = [path for path in sorted(HERE.rglob("*.py")) if HERE / "papers" not in path.parents]
    broken = [path for path in scripts if path != Path(__file__).resolve() and not loads(path)]
    run = [HERE / name for name in QUICK]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = list(pool.map(lambda one: subprocess.run([sys.executable, str(one), "--quick"], check=False), run))
    broken += [one for one, end in zip(run, ends, strict=True) if end.returncode]
    print(*(f"{path.relative_to(HERE)} fails" for path in broken), f"{len(scripts)} scripts", sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
