"""The common part of all proofs: certificates, checks of numbers, sorted inputs, sets, and lists of columns.

A certificate holds numbers (multipliers) and a problem: a utility and constraints. It proves a bound on the utility of
every channel within the constraints by arithmetic that is rounded outward, or exact. Wrong numbers prove a worse bound
or none (`Unproved`), never a false one. For a program  max c.x s.t. A x <= b, x >= 0,  any multipliers y >= 0 prove

    c.x <= b.y + sum over x of max(0, c - A'y) x,

so that a proof computes the shortfall of the multipliers from the dual constraints A'y >= c, and adds it. `certificate`
is the base, `numbers` and `hypotheses` check the parts, `listed` proves bounds from listed columns, `proof` derives
bounds from the bounds of other problems. Nothing here, and nothing that a module named `proof...` of another folder
imports, calls a solver or a method: `tests/test_layers.py`.
"""
