"""Survey folders, changed at random -> promises that are wrong, of which there must be none (`tests/survey_folders`).

python experiments/trust/folders.py --folders 1000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import survey_folders


def main() -> int:
    """Judge folders; exit code 1 if a promise is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folders", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    made, wrong = survey_folders.run(asked.folders, asked.seed)
    print(*(f"{count:6} {name}" for name, count in made.most_common()), *wrong, sep="\n")
    print(f"{asked.folders} folders, {len(wrong)} wrong promises or refusals")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
