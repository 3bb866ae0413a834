"""Columns of text as numbers, and values that stand for no answer, compared as text or as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldpopt.errors import invalid

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"


def to_numbers(column: Any) -> Any:
    """A pyarrow column of numbers, or of their text, as finite float64; null where there is none.

    >>> import pyarrow as pa
    >>> to_numbers(pa.array([" 3.5", "nan", "x", None, "1e3"])).to_pylist()
    [3.5, None, None, None, 1000.0]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = pc.cast(column, pa.float64(), safe=False)
    elif _is_text(column):
        trimmed = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
        number = pc.and_(pc.match_substring_regex(trimmed, _NUMBER), pc.less(pc.binary_length(trimmed), 60))
        trimmed = pc.utf8_ltrim(pc.if_else(number, trimmed, pa.scalar(None, pa.large_string())), "+")
        numbers = pc.cast(trimmed, pa.float64())
    else:
        raise invalid("bins", "a column of numbers", str(column.type))
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


def is_one_of(column: Any, codes: Sequence[str]) -> Any:
    """Where a pyarrow column holds one of `codes`: as its text without blanks around it, or as the same number.

    >>> import pyarrow as pa
    >>> is_one_of(pa.array(["-9", "-9.0", "9", None, "k.A. "]), ["-9", "k.A."]).to_pylist()
    [True, True, False, False, True]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = [one for one in to_numbers(pa.array(list(codes), pa.string())).to_pylist() if one is not None]
    if not _is_text(column):
        try:
            return pc.is_in(to_numbers(column), pa.array(numbers, pa.float64()))
        except ValueError:  # no numbers, such as true and false
            column = pc.cast(column, pa.large_string())
    trimmed = pc.utf8_trim_whitespace(pc.cast(column, pa.large_string()))
    said = pc.is_in(trimmed, pa.array(list(codes), pa.large_string()))
    return pc.or_(said, pc.is_in(to_numbers(trimmed), pa.array(numbers, pa.float64())))


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_text(column.type) for is_text in texts)
