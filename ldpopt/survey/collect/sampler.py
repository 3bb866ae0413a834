"""Exact sampling from an integer channel: a report follows from comparing a random word with integers, not floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.exact import ExactChannel
from ldpopt.survey.collect.randomness.keystream import CHUNK, WordArray, Words

Codes = npt.NDArray[np.unsignedinteger[Any]]

_GUIDE_BITS = 12
_GUIDE_CELLS = 1 << 18
_STRIDE = 32 * CHUNK  # after so many answers, the words in cut cells are searched together


class Sampler:
    """Reports of an exact channel, one 64-bit word each.

    The report for answer x and word w is the number of cumulative weights of row x that are at most the top `bits` bits
    of w. So exactly weights[x, y] of the 2**bits values give output y. A guide table, indexed by the first bits of the
    word, decides nearly every report by one look-up. If a threshold cuts the cell of the table, the word is compared
    with the thresholds themselves. A report takes O(1) steps, or O(log m) in a cut cell.

    >>> from ldpopt.survey.collect.randomness.keystream import Given
    >>> every = np.arange(4, dtype=np.uint64) << np.uint64(62)
    >>> Sampler(ExactChannel([[3, 1], [1, 3]], bits=2)).reports(np.zeros(4, np.uint8), Given(every))
    array([0, 0, 0, 1], dtype=uint8)
    """

    def __init__(self, channel: ExactChannel) -> None:
        k, m = channel.shape
        self.inputs = k
        self._bits = channel.bits
        self._steps = np.cumsum(channel.weights, axis=1)  # (k, m), ending with 2**bits
        self._guide_bits = min(_GUIDE_BITS, self._bits, max(4, (_GUIDE_CELLS // k).bit_length() - 1))
        self._kind: np.dtype[np.unsignedinteger[Any]] = np.min_scalar_type(m)
        self._cut = m  # not an output: it marks a cell that a threshold cuts
        width = 1 << (self._bits - self._guide_bits)
        starts = np.arange(1 << self._guide_bits, dtype=np.int64) * width
        first = np.stack([np.searchsorted(row, starts, side="right") for row in self._steps])
        last = np.stack([np.searchsorted(row, starts + (width - 1), side="right") for row in self._steps])
        self._guide = np.where(first == last, first, self._cut).astype(self._kind).ravel()
        self._first, self._last = first.astype(self._kind).ravel(), last.astype(self._kind).ravel()

    def reports(self, answers: Codes, words: Words) -> Codes:
        """The positions of the reports for answers at positions 0..k-1, shape (n,). It uses the next n words."""
        if answers.size and (answers.dtype.kind != "u" or answers.max() >= self.inputs):
            raise invalid("answers", f"unsigned positions below {self.inputs}", "others")
        reports = np.empty(len(answers), self._kind)
        word, cell, row = (np.empty(min(CHUNK, len(answers)), np.uint64) for _ in range(3))
        for begin in range(0, len(answers), _STRIDE):
            end = min(begin + _STRIDE, len(answers))
            cut_places, cut_words, cut_cells = [], [], []
            for start in range(begin, end, CHUNK):
                stop = min(start + CHUNK, end)
                w, c, r = word[: stop - start], cell[: stop - start], row[: stop - start]
                y = reports[start:stop]
                words.fill(w)
                np.right_shift(w, np.uint64(64 - self._guide_bits), out=c)
                r[:] = answers[start:stop]
                r <<= np.uint64(self._guide_bits)
                c |= r
                # All cells are in range, so mode="clip" changes nothing but spares numpy a check of every index.
                np.take(self._guide, c.view(np.int64), out=y, mode="clip")
                cut = np.flatnonzero(y == self._cut)
                cut_places.append(cut + start)
                cut_words.append(w[cut])
                cut_cells.append(c[cut])
            places = np.concatenate(cut_places)
            reports[places] = self._search(np.concatenate(cut_cells), np.concatenate(cut_words))
        return reports

    def _search(self, cells: WordArray, words: WordArray) -> npt.NDArray[np.intp]:
        """The number of steps that are at most the word's top bits, by bisection among the steps that cut its cell."""
        value = (words >> np.uint64(64 - self._bits)).astype(np.int64)
        x = (cells >> np.uint64(self._guide_bits)).astype(np.intp)
        low, high = self._first[cells].astype(np.intp), self._last[cells].astype(np.intp)
        while (low < high).any():
            middle = (low + high) >> 1
            above = (low < high) & (self._steps[x, middle] <= value)
            low, high = np.where(above, middle + 1, low), np.where(above, high, middle)
        return low
