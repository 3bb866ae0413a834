"""Channels with probabilities that are multiples of 1/D: they are realized with dice, cards, or slips of paper.

    max  utility(Q)   s.t.  Q within the constraints,  D Q integer

`method` solves this exactly by an integer program where the integer columns can be listed (`patterns.proof_levels`).
Otherwise it rounds the real optimum, or draws columns of two entries near it (`levels`), and improves them by moves of
units (`search`, `worth`). Every bound for real channels holds for these too. With all integer columns listed,
`patterns.proof_levels` proves a bound for the multiples alone.
"""
