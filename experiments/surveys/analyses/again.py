"""The cells of a table with a public column, again from another seed: prints coverage cell by cell.

python experiments/surveys/analyses/again.py [replications]
"""

from __future__ import annotations

import sys

import numpy as np
from run import drawn, held, said

from ldpopt.channel import Channel
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import two_way

JOINT = np.array([[0.30, 0.20], [0.15, 0.15], [0.05, 0.15]])


def main() -> None:
    replications = int(sys.argv[1]) if sys.argv[1:] else 4000
    private, public = randomized_response(3, 1.0), Channel(np.eye(2))
    for n in (1000, 2000, 4000):
        rng = np.random.default_rng(99 + n)
        hits = []
        for _ in range(replications):
            cell = drawn(JOINT.ravel(), n, rng)
            made = two_way(said(cell // 2, private, rng), cell % 2, private, public)
            hits.append(held(made.joint.intervals(), JOINT.ravel()))
        print(n, np.mean(hits, axis=0).round(4).tolist())


if __name__ == "__main__":
    main()
