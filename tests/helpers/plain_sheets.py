"""Sheets that are not the best ones, and are found at once: for tests of what is printed, whatever the letters are."""

import numpy as np

from ldpopt_survey.paper.design import Sheet


def plain_sheet(pilot, epsilon, D, *_):
    """A letter for each answer, on its own card twice as often as on the others, and one for the outcomes left over."""
    assert epsilon >= np.log(2)
    k = len(pilot)
    often = D // (k + 1)
    left_over = np.full((k, 1), D - often * (k + 1))
    letters = often * (1 + np.eye(k, dtype=np.int64))
    return Sheet(np.hstack([letters, left_over]) if left_over.any() else letters, 0.0, 0.0)
