"""The channel: a matrix whose rows, one for each true answer, hold the probabilities of the reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files import strict
from ldpopt.numbers.tolerances import MAX_CONDITION, ROW_ROUNDING, ROW_SUM
from ldpopt.values.distribution import Array, distribution, proportional, stochastic, unit_interval
from ldpopt.values.labels import ANSWER, Label, as_text, distinct_labels, grouped, matrix_labels, positions, to_jsonable
from ldpopt.values.results import Pictured

if TYPE_CHECKING:
    from ldpopt.exact import ExactChannel
    from ldpopt.values.distribution import Rng

__all__ = ["ERASED", "Channel", "ChannelLike", "Label", "as_channel"]

FORMAT = "ldpopt-channel"
VERSION = 1
ORIENTATION = "matrix[i][j] = Pr(outputs[j] | inputs[i])"
ERASED = "erased"
"""The label of the report that says nothing about the answer: an erased report."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Channel(Pictured):
    """A local mechanism Q with `matrix[x, y]` = Pr(report y | answer x) [GI, section VII]; only reports are released.

    Parameters
    ----------
    matrix : Array (k, m), non-negative, every row summing to 1 within `tolerances.ROW_SUM`; kept as read-only float64.
    inputs, outputs : Distinct labels (strings, numbers, or tuples of them) of the k answers and the m reports. By
        default, those of a frame, else 0..k-1 and 0..m-1. A Polars frame may name its inputs in a first column
        ``"answer"``.

    Raises `InvalidInput` for anything else. Numpy functions take a channel as its matrix. Every function of this
    package that takes a channel also takes an array.

    >>> q = Channel([[0.75, 0.25], [0.25, 0.75]], inputs=["yes", "no"])
    >>> q.push([0.5, 0.5])
    array([0.5, 0.5])
    >>> q.erase(0.5).outputs
    (0, 1, 'erased')
    """

    matrix: Array
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]

    _picture, _heads = "channel", 1

    def __init__(
        self, matrix: Any, inputs: Iterable[Label] | None = None, outputs: Iterable[Label] | None = None
    ) -> None:
        matrix, inputs, outputs = matrix_labels(matrix, inputs, outputs, "channel")
        matrix = stochastic(matrix, "channel") + 0.0  # a negative zero becomes zero
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "inputs", distinct_labels(inputs, len(matrix), "inputs"))
        object.__setattr__(self, "outputs", distinct_labels(outputs, matrix.shape[1], "outputs"))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of inputs k and the number of outputs m."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def rank(self) -> int:
        """The rank of the matrix. If it is k, the distribution of the reports determines that of the answers."""
        return int(np.linalg.matrix_rank(self.matrix))

    @cached_property
    def inverse(self) -> Array | None:
        """The inverse of the matrix, shape (k, k); None if it is not square, or its condition number is above 1e12.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).inverse
        array([[ 1.5, -0.5],
               [-0.5,  1.5]])
        """
        if self.shape[0] != self.shape[1]:
            return None
        try:
            inverse = np.asarray(np.linalg.inv(self.matrix))
        except np.linalg.LinAlgError:
            return None
        # The rows of the matrix itself sum to one.
        if not np.abs(inverse).sum(axis=1).max() < MAX_CONDITION:
            return None
        inverse.setflags(write=False)
        return inverse

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False and dtype is not None and np.dtype(dtype) != self.matrix.dtype:
            raise ValueError(f"a {np.dtype(dtype)} array of a channel needs a copy")
        return np.array(self.matrix, dtype=dtype, copy=bool(copy) or None)

    def __getitem__(self, labels: tuple[Any, Any]) -> Any:
        """`channel[x, y]`: the probability of the report y for the answer x, by their labels; `:` stands for all.

        >>> channel = Channel([[0.75, 0.25], [0.25, 0.75]], inputs=["no", "yes"], outputs=["A", "B"])
        >>> float(channel["yes", "B"]), channel["no", :], channel[:, "B"]
        (0.75, array([0.75, 0.25]), array([0.25, 0.75]))
        """
        if not isinstance(labels, tuple) or len(labels) != 2:
            raise invalid("channel[...]", "two labels, channel[x, y], with : for all", Phrase("another index"))
        all_labels = slice(None)
        x, y = (
            all_labels if isinstance(label, slice) and label == all_labels else int(positions(axis_labels, [label])[0])
            for axis_labels, label in zip((self.inputs, self.outputs), labels, strict=True)
        )
        return self.matrix[x, y]

    __iter__ = None
    """A channel is not a sequence of rows: `channel.matrix` is."""

    def push(self, p: Any) -> Array:
        """Compute the distribution p Q of the report, (m,), for the answer's distribution p, (k,)."""
        return np.asarray(distribution(p, "p", size=self.shape[0], labels=self.inputs) @ self.matrix)

    def posterior(self, prior: Any) -> Array:
        """Compute Pr(answer x | report y), shape (m, k), for a prior of the answer, shape (k,).

        A report that never occurs has a row of NaN.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).posterior([0.5, 0.5])
        array([[0.75, 0.25],
               [0.25, 0.75]])
        """
        joint = (distribution(prior, "prior", size=self.shape[0], labels=self.inputs)[:, None] * self.matrix).T
        mass = joint.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(joint, mass, out=np.full_like(joint, np.nan), where=mass > 0))

    def then(self, post: ChannelLike) -> Channel:
        """Compose with post-processing: the report passes through `post`, an (m, m') channel."""
        post = as_channel(post, "post-processing")
        if post.shape[0] != self.shape[1]:
            raise invalid("post-processing", f"{self.shape[1]} inputs, one for each output", post.shape[0])
        return Channel(_stochastic(np.asarray(self.matrix @ post.matrix, dtype=np.float64)), self.inputs, post.outputs)

    def __matmul__(self, post: ChannelLike) -> Channel:
        """`self @ post` is `self.then(post)`: the report of this channel is the answer of the next.

        >>> (Channel([[0.75, 0.25], [0.25, 0.75]]) @ [[0.75, 0.25], [0.25, 0.75]]).matrix
        array([[0.625, 0.375],
               [0.375, 0.625]])
        """
        return self.then(post)

    def garbles(self, other: ChannelLike) -> bool:
        """Return True if this channel is `other` with some post-processing [Blackwell].

        It then never reveals more.

        other : a channel for the same answers.

        A linear program decides, and its answer is proved in rational numbers (`ldpopt.garbling.is_garbling`). For
        floats the proof holds up to a total variation of 1e-12, for two exact channels exactly.

        >>> wide = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> (wide @ wide).garbles(wide), wide.garbles(wide @ wide)
        (True, False)
        """
        from ldpopt.garbling import is_garbling

        return is_garbling(self, other)

    def product(self, other: ChannelLike) -> Channel:
        """Build the Kronecker product: two answers through two independent channels."""
        # The labels are pairs.
        other = as_channel(other)
        return Channel(
            _stochastic(np.asarray(np.kron(self.matrix, other.matrix), dtype=np.float64)),
            tuple((a, b) for a in self.inputs for b in other.inputs),
            tuple((a, b) for a in self.outputs for b in other.outputs),
        )

    def coin(self, other: ChannelLike, weight: float) -> Channel:
        """Mix this channel, with probability `weight` in [0, 1], and `other`, by a public coin.

        The report shows which channel was used. Outputs are labelled ``(0, y)`` for this channel and ``(1, y)`` for
        `other`; inputs as in this channel.
        """
        other = as_channel(other)
        weight = unit_interval(weight, "weight")
        if other.shape[0] != self.shape[0]:
            raise invalid("other channel", f"{self.shape[0]} inputs", other.shape[0])
        matrix = np.hstack([weight * self.matrix, (1 - weight) * other.matrix])
        outputs = [(0, y) for y in self.outputs] + [(1, y) for y in other.outputs]
        return Channel(_stochastic(matrix), self.inputs, tuple(outputs))

    def erase(self, alpha: float) -> Channel:
        """Replace the report by ``'erased'`` with probability `alpha` in [0, 1] for every answer [GI, Thm 8].

        If ``'erased'`` is already an output, its probability must not depend on the answer; else `InvalidInput`.
        """
        alpha = unit_interval(alpha, "alpha")
        matrix, outputs = (1 - alpha) * self.matrix, self.outputs
        if ERASED not in outputs:
            matrix, outputs = np.hstack([matrix, np.zeros((len(matrix), 1))]), (*outputs, ERASED)
        elif np.ptp(self.matrix[:, outputs.index(ERASED)]) > ROW_SUM:
            raise invalid(
                "erase", f"an uninformative column where the label {ERASED!r} is taken", Phrase("an informative one")
            )
        matrix[:, outputs.index(ERASED)] += alpha
        return Channel(_stochastic(matrix), self.inputs, outputs)

    def merge(self, groups: Iterable[Iterable[Label]] | None = None) -> Channel:
        """Merge outputs: each group of labels becomes one output, labelled by its first member. All others stay.

        Without `groups`, outputs with proportional columns, which say the same, are merged, and those that never occur
        are dropped. This changes no guarantee and no utility.

        >>> Channel([[0.2, 0.4, 0.4], [0.1, 0.2, 0.7]]).merge().matrix
        array([[0.6, 0.4],
               [0.3, 0.7]])
        """
        parts = proportional(self.matrix) if groups is None else grouped(self.outputs, groups)
        matrix = np.stack([self.matrix[:, part].sum(axis=1) for part in parts], axis=1)
        return Channel(_stochastic(matrix), self.inputs, tuple(self.outputs[part[0]] for part in parts))

    def sample(self, x: Any, rng: Rng = None) -> Any:
        """Simulate a report for the answer label `x`, or reports for an array of answer labels.

        rng : a `numpy.random.Generator`, a seed of one, or None.

        This is for simulation only: a release of real data needs the operating system's randomness and exact
        arithmetic.

        >>> Channel([[1, 0], [0, 1]], inputs=["no", "yes"]).sample(["yes", "no"], rng=0)
        array([1, 0])
        """
        if not isinstance(x, (list, np.ndarray)) and (isinstance(x, np.generic) or not hasattr(x, "__array__")):
            return self.outputs[int(self.sample_indices(positions(self.inputs, [x]), rng)[0])]
        report_positions = self.sample_indices(positions(self.inputs, x), rng)
        if self.outputs == tuple(range(len(self.outputs))):
            return report_positions
        labels = np.empty(len(self.outputs), dtype=object)
        labels[:] = self.outputs
        return labels[report_positions]

    def sample_indices(self, x: npt.NDArray[np.integer[Any]], rng: Rng = None) -> npt.NDArray[np.intp]:
        """Simulate report positions for an array of answer positions 0..k-1."""
        from ldpopt.values.distribution import generator, simulate

        x = np.asarray(x)
        k = len(self.inputs)
        if x.size and (x.dtype.kind not in "iu" or x.min() < 0 or x.max() >= k):
            raise invalid("answers", f"positions 0 to {k - 1}", Phrase(f"{x.dtype} from {x.min()} to {x.max()}"))
        return simulate(self.matrix, x, generator(rng))

    def exact(self, bits: int = 62, denominator: int | None = None) -> ExactChannel:
        """Convert to a channel in integers, whose guarantees are proved (`ldpopt.exact`).

        Each probability is an integer over 2**bits, or over a `denominator` that suits a device: 36 for two dice. A
        small one can lose utility; `optimal_channel` with `Denominator(36)` finds the best channel of this kind.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).exact(4).weights.tolist()
        [[12, 4], [4, 12]]
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).exact(denominator=10).weights.tolist()
        [[7, 3], [3, 7]]
        """
        from ldpopt.exact import round_exact, round_to_denominator

        if denominator is not None:
            return round_to_denominator(self.matrix, denominator, inputs=self.inputs, outputs=self.outputs)
        return round_exact(self.matrix, bits, inputs=self.inputs, outputs=self.outputs)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON-ready values (see docs/reference/formats/channel-file.md)."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "orientation": ORIENTATION,
            "inputs": [to_jsonable(label) for label in self.inputs],
            "outputs": [to_jsonable(label) for label in self.outputs],
            "matrix": self.matrix.tolist(),
        }

    def to_json(self, guarantees: Sequence[Any] = ()) -> str:
        """Convert to JSON text; `guarantees` are recorded as claims, to be measured again."""
        return strict.json_text({**self.to_dict(), "guarantees": [guarantee.to_dict() for guarantee in guarantees]})

    @classmethod
    def from_json(cls, text: str | bytes) -> Channel:
        """Read a channel that `to_json` wrote. Raises `InvalidInput` for unknown fields, versions and wrong values."""
        from ldpopt.values.schema import labelled, version_of

        name = "channel file"
        data = strict.json_value(text, name)
        version_of(data, name, FORMAT, (VERSION,))
        inputs, outputs = labelled(data, name, "matrix", ("guarantees",))
        if data.get("orientation", ORIENTATION) != ORIENTATION:
            raise invalid(name, f"the orientation {ORIENTATION!r}", data["orientation"])
        return cls(data["matrix"], inputs, outputs)

    def to_pandas(self) -> Any:
        """Convert to a pandas frame with inputs as index and outputs as columns.

        `Channel(frame)` is the inverse.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"], ["A", "B"]).to_pandas()
                A     B
        yes  0.75  0.25
        no   0.25  0.75
        """
        import pandas

        index, columns = (pandas.Index(list(labels), tupleize_cols=False) for labels in (self.inputs, self.outputs))
        return pandas.DataFrame(self.matrix, index=index, columns=columns)

    def _columns(self) -> dict[str, list[Any]]:
        """The inputs as a column `ANSWER`, since a Polars frame has no index, and a column named after each output."""
        names = [as_text(label) for label in self.outputs]
        if ANSWER in names or len(set(names)) < len(names):
            raise invalid("channel", f"outputs that differ as text, none of them {ANSWER!r}", Phrase("other outputs"))
        return {ANSWER: list(self.inputs), **dict(zip(names, self.matrix.T.tolist(), strict=True))}

    def __repr__(self) -> str:
        k, m = self.shape
        return f"Channel({k} input{'s' * (k != 1)} -> {m} output{'s' * (m != 1)})"

    def _cells(self) -> list[tuple[str, list[str]]]:
        columns = ([f"{value:.4f}" for value in column] for column in self.matrix.T)
        heads = [("answer \\ report", [str(x) for x in self.inputs])]
        return heads + [(str(y), column) for y, column in zip(self.outputs, columns, strict=True)]

    def _title(self) -> str:
        return repr(self)


class HasChannel(Protocol):
    """Any object with a property `channel`: a survey design, a finite pair, or the result of `optimal_channel`."""

    @property
    def channel(self) -> Channel | ExactChannel:
        """The channel that the object stands for."""


ChannelLike: TypeAlias = "Channel | ExactChannel | HasChannel | Array | Sequence[Sequence[float]]"


def as_channel(channel: ChannelLike, name: str = "channel") -> Channel:
    """Return a checked `Channel` from a channel, an object that has one, or an array.

    Parameters
    ----------
    channel : `Channel`, an object with a `channel`, or a (k, m) array whose rows sum to 1.
    name : The name of the value in errors.

    Returns
    -------
    Channel
        The checked channel.

    Raises
    ------
    InvalidInput
        If the value is anything else.

    Examples
    --------
    >>> as_channel([[0.75, 0.25], [0.25, 0.75]])
    Channel(2 inputs -> 2 outputs)
    """
    candidate = channel if isinstance(channel, Channel) else getattr(channel, "channel", channel)
    if isinstance(candidate, Channel):
        return candidate
    if not isinstance(candidate, np.ndarray):
        from ldpopt.exact import ExactChannel

        if isinstance(candidate, ExactChannel):  # a plan's question has one
            return Channel(candidate.matrix, candidate.inputs, candidate.outputs)
        if isinstance(channel, (str, bytes)):
            raise invalid(name, "a Channel or an array", Phrase("text (read a file with ldpopt.io.read_channel)"))
    try:
        return Channel(channel)
    except InvalidInput as error:
        raise InvalidInput(f"{name}{str(error).removeprefix('channel')}") from None


def _stochastic(matrix: Array) -> Array:
    """The matrix, its rows divided by their sums where these differ from one by rounding."""
    sums = matrix.sum(axis=1, keepdims=True)
    return np.where(np.abs(sums - 1) > ROW_ROUNDING, matrix / sums, matrix)
