"""Channels to files and back: JSON preserves everything, spreadsheets read CSV, and OpenDP draws from a measurement.

A measurement draws each report from the integers of the exact channel, with the system's randomness and without
floating point. So reports have exactly the probabilities of the proof of the channel's epsilon. It needs ``opendp``
0.12 or newer, an optional extra.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from secrets import randbelow
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.exact import FORMAT as EXACT_FORMAT
from ldpopt.exact import ExactChannel
from ldpopt.extras import missing
from ldpopt.files import strict
from ldpopt.files.atomic import PathLike, naming, read_text, write_text
from ldpopt.files.escapes import csv_text, for_csv, from_csv
from ldpopt.files.table import is_number, parse_table
from ldpopt.privacy.guarantee import Guarantee

FRACTION = re.compile(r"[0-9]+\s*/\s*[0-9]+", re.ASCII)

CORNER = "answer \\ report"


def read_channel(path: PathLike) -> Channel | ExactChannel:
    """Read the channel in a JSON or CSV file; see docs/reference/formats/channel-file.md.

    Probabilities that are fractions, such as 3/4, make an exact channel. Recorded guarantees are ignored; they can be
    measured again. Those of an exact channel are proved again from its integers.

    Parameters
    ----------
    path : A JSON file of `write_channel`, a design file, a JSON list of rows, or a CSV file. CSV has either numbers
        only, or output labels in the first line and input labels in the first column (then the cell in the corner is
        not a number).

    Returns
    -------
    Channel or ExactChannel
        The channel, with its labels.

    Raises
    ------
    InvalidInput
        If the file is not a channel; the message names the file and the mistake in it.
    CertificateError
        If the integers of an exact channel do not prove its guarantees.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "q.csv"
    ...     _ = path.write_text(",yes,no\\nyes,0.75,0.25\\nno,0.25,0.75\\n")
    ...     read_channel(path).outputs
    ('yes', 'no')
    """
    return parse_channel(read_text(path), path)


def parse_channel(text: str, path: PathLike) -> Channel | ExactChannel:
    """Return the channel in the contents of a file, like `read_channel`.

    Parameters
    ----------
    text : The contents of the file.
    path : The name of the file, which decides between JSON and CSV.

    Returns
    -------
    Channel or ExactChannel
        The channel, with its labels.

    Raises
    ------
    InvalidInput
        If the text is not a channel; the message names `path` and the mistake.

    Examples
    --------
    >>> parse_channel("0.75,0.25\\n0.25,0.75", "q.csv").shape
    (2, 2)
    """
    with naming(path):
        if not is_json(path, text):
            exact_channel = _of_fractions(str(path), text) if "/" in text else None
            if exact_channel is not None:
                return exact_channel
            return Channel(*parse_matrix_csv(str(path), text))
        data = strict.json_value(text, "channel file")
        if isinstance(data, dict) and data.get("command") == "design":  # the output of `ldpopt design --json`
            data = data.get("channel")
            text = strict.json_text(data)
        if isinstance(data, dict) and data.get("schema") == "ldpopt-design":
            from ldpopt.design.load import parse_design

            return parse_design(text).channel
        if isinstance(data, list):
            entries = (entry for row in data if isinstance(row, list) for entry in row)
            has_fractions = any(isinstance(entry, str) and FRACTION.fullmatch(entry.strip()) for entry in entries)
            return ExactChannel.from_fractions(data) if has_fractions else Channel(data)
        exact = isinstance(data, dict) and data.get("format") == EXACT_FORMAT
        return ExactChannel.from_json(text) if exact else Channel.from_json(text)


def _of_fractions(path: str, text: str) -> ExactChannel | None:
    """The channel of a CSV file with a probability such as 3/4; None without such fractions."""
    table = parse_table(path, text)
    first = table.rows[0][0].strip()
    skip = 0 if is_number(first) or FRACTION.fullmatch(first) else 1
    cells = [[cell.strip() for cell in row[skip:]] for row in table.rows[skip:]]
    if not any(FRACTION.fullmatch(cell) for row in cells for cell in row):
        return None
    if skip == 0:
        return ExactChannel.from_fractions(cells)
    inputs = [from_csv(table.text(row, 0)) for row in range(1, len(table.rows))]
    outputs = [from_csv(table.text(0, column)) for column in range(1, table.width)]
    return ExactChannel.from_fractions(cells, _labels(inputs), _labels(outputs))


def write_channel(
    path: PathLike, channel: ChannelLike | ExactChannel, guarantees: Sequence[Guarantee] = (), force: bool = False
) -> Path:
    """Write a channel to a file, completely or not at all.

    Both formats store probabilities exactly. Labels other than strings and 0, 1, 2, ... need JSON. An `ExactChannel`
    needs JSON, too, which holds its integers with the epsilon and eta that they prove.

    Parameters
    ----------
    path : The file. The ending ``.csv`` gives labels and probabilities only, any other gives JSON.
    channel : `Channel`, `ExactChannel`, or a (k, m) array whose rows sum to 1.
    guarantees : Guarantees that JSON records as claims.
    force : True replaces an existing file, which is refused otherwise.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InvalidInput
        If the place cannot be written, or the format cannot hold the channel.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     print(write_channel(Path(folder) / "q.csv", [[0.75, 0.25], [0.25, 0.75]]).read_text())
    ...     path = write_channel(Path(folder) / "q.json", Channel([[0.75, 0.25], [0.25, 0.75]]).exact(bits=8))
    ...     read_channel(path).bits
    answer \\ report,0,1
    0,0.75,0.25
    1,0.25,0.75
    <BLANKLINE>
    8
    """
    as_csv = Path(path).suffix.lower() == ".csv"
    if as_csv and guarantees:
        raise invalid("guarantees", "a JSON file to record them in", str(path))
    if isinstance(channel, ExactChannel):
        if as_csv or guarantees:
            raise invalid("channel", "a JSON file, and no other guarantees, for an exact channel", str(path))
        return write_text(path, channel.to_json(), force)
    text = channel_to_csv(channel) if as_csv else as_channel(channel).to_json(guarantees)
    return write_text(path, text, force)


def is_json(path: PathLike, text: str) -> bool:
    """Return True if the contents of a file are read as JSON: by its name, or else by its first letter.

    >>> is_json("q.csv", "[[1]]"), is_json("q", "[[1]]")
    (False, True)
    """
    suffix = Path(path).suffix.lower()
    return suffix == ".json" or (suffix != ".csv" and text.lstrip()[:1] in ("{", "["))


Labels = tuple[Label, ...]


def parse_matrix_csv(path: str, text: str) -> tuple[npt.NDArray[np.float64], Labels | None, Labels | None]:
    """Return the numbers of a CSV file, and the labels of its rows and columns, if any.

    The numbers need not be a channel. The matrix has one row per line.

    Parameters
    ----------
    path : The name of the file, for errors.
    text : The contents of the file.

    Returns
    -------
    tuple
        The matrix, shape (rows, columns), the labels of its rows, and those of its columns, or None.

    Raises
    ------
    InvalidInput
        If there is text in a number's place, or lines have different lengths.

    Examples
    --------
    >>> parse_matrix_csv("q.csv", ",yes,no\\nyes,3,1\\nno,1,3")
    (array([[3., 1.],
           [1., 3.]]), ('yes', 'no'), ('yes', 'no'))
    """
    table = parse_table(path, text)
    bare = is_number(table.rows[0][0])
    if not bare and (len(table.rows) < 2 or table.width < 2):
        got = Phrase(f"{len(table.rows)} x {table.width} cells")
        raise invalid(path, "a line of labels and a line for each input", got)
    skip = 0 if bare else 1
    rows, columns = range(skip, len(table.rows)), range(skip, table.width)
    matrix = np.array([[table.number(row, column) for column in columns] for row in rows])
    if bare:
        return matrix, None, None
    inputs = [from_csv(table.text(row, 0)) for row in range(1, len(table.rows))]
    outputs = [from_csv(table.text(0, column)) for column in range(1, table.width)]
    return matrix, _labels(inputs), _labels(outputs)


def _labels(labels: list[str]) -> tuple[Label, ...]:
    """Labels from text: the default labels 0, 1, 2, ... become numbers, all others stay text."""
    default_labels = tuple(range(len(labels)))
    return default_labels if labels == [str(i) for i in default_labels] else tuple(labels)


def channel_to_csv(channel: ChannelLike) -> str:
    """Return the labels and probabilities of a channel as CSV.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.

    Returns
    -------
    str
        The contents of a CSV file.

    Raises
    ------
    InvalidInput
        If a label could not be read back.

    Examples
    --------
    >>> print(channel_to_csv([[0.75, 0.25], [0.25, 0.75]]))
    answer \\ report,0,1
    0,0.75,0.25
    1,0.25,0.75
    <BLANKLINE>
    """
    channel = as_channel(channel)
    for name, labels in (("inputs", channel.inputs), ("outputs", channel.outputs)):
        texts = [str(label) for label in labels]
        if _labels(texts) != labels or any(not text.strip() or text != text.strip() for text in texts):
            expected = "labels that are strings, or 0, 1, 2, ..., for a CSV file (JSON keeps the others)"
            raise invalid(name, expected, labels)
    rows = zip(channel.inputs, channel.matrix.tolist(), strict=True)
    head = [CORNER, *map(for_csv, channel.outputs)]
    return csv_text([head, *([for_csv(label), *map(repr, row)] for label, row in rows)])


def to_opendp(channel: ChannelLike) -> Any:
    """Convert a channel to an OpenDP measurement with the epsilon that its integers prove.

    It maps one answer to one report. The measurement has the discrete metric (any two answers are neighbors) and the
    measure ``max_divergence``, in nats. It chains and composes like OpenDP's own. An answer that is not an input is
    refused, and the error does not repeat it.

    OpenDP requires a call of ``enable_features("contrib", "honest-but-curious")`` first, since it cannot check Python
    code.

    Parameters
    ----------
    channel : `ExactChannel`, or another channel (k, m), which is first made exact with 62 bits.

    Returns
    -------
    Measurement
        The measurement of OpenDP.

    Raises
    ------
    InvalidInput
        If the channel has no finite epsilon.
    MissingExtra
        If opendp is not installed.

    Examples
    --------
    >>> import opendp.prelude as dp  # doctest: +SKIP
    >>> dp.enable_features("contrib", "honest-but-curious")  # doctest: +SKIP
    >>> ask = to_opendp(Channel([[0.75, 0.25], [0.25, 0.75]], ["yes", "no"], ["yes", "no"]))  # doctest: +SKIP
    >>> ask("yes") in ("yes", "no"), round(ask.map(1), 6)  # doctest: +SKIP
    (True, 1.098612)
    """
    inner = getattr(channel, "channel", channel)
    exact = inner if isinstance(inner, ExactChannel) else as_channel(channel).exact()
    epsilon = exact.proof().epsilon
    if not epsilon < float("inf"):
        raise invalid("channel", "one with a finite epsilon", Phrase("a report that rules some answer out"))
    try:
        dp = import_module("opendp.prelude")
    except ImportError:
        raise missing("opendp") from None
    ends = {label: list(accumulate(row)) for label, row in zip(exact.inputs, exact.weights.tolist(), strict=True)}

    def is_input(answer: Any) -> bool:
        try:
            return answer in ends
        except TypeError:
            return False

    def report(answer: Any) -> Label:
        if not is_input(answer):
            raise invalid("answer", "one of the inputs of the channel", Phrase("an unknown answer"))
        return exact.outputs[bisect_right(ends[answer], randbelow(exact.denominator))]

    domain = dp.user_domain(f"one of {len(ends)} answers", is_input)
    return dp.m.make_user_measurement(
        domain, dp.discrete_distance(), dp.max_divergence(), report, lambda d: epsilon if d else 0.0
    )
