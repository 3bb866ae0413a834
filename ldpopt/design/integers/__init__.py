"""Channels with probabilities that are multiples of 1/D: they are run with dice, cards, or slips of paper.

    max  utility(Q)   s.t.  Q within the constraints,  D Q integer

`method` solves this exactly where the integer columns can be listed (`patterns.proof_levels`), by an integer program,
and otherwise rounds the real optimum and improves it by moves of single units (`search`). Every bound for real channels
holds for these too; with all integer columns listed, `patterns.proof_levels` proves a bound for the multiples alone.
"""
