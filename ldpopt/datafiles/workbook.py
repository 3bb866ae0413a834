"""An Excel workbook -> the rows of its first sheet, read by a process of its own with limits on memory and time.

A file of a few kilobytes can ask its reader for gigabytes, or abort it. This module is also that process's program,
which imports nothing of the package.
"""

import json
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

MAX_CELLS = 10_000_000
"""Cells of the rectangle that a sheet spans; one cell in its last corner makes it 17 thousand million."""


def limits_of(size: int) -> tuple[int, int]:
    """(bytes of memory, seconds) in which a workbook of `size` bytes is read, or refused."""
    return (350 << 20) + 50 * size, 2 + (size >> 18)


def workbook_rows(path: Path) -> list[list[Any]] | None:
    """The rows of the first sheet but for empty ones: numbers, texts and truth values. None if it cannot be read.

    Whole numbers are floats, days and times are text as ISO 8601 writes them, and empty cells are "".
    """
    memory, seconds = limits_of(path.stat().st_size)
    command = [sys.executable, "-P", "-B", __file__, str(path), str(memory), str(seconds)]
    try:
        # The clock is for systems that do not limit a process's own seconds, and for a reader that waits.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10 * seconds)
    except subprocess.TimeoutExpired:
        return None
    rows: list[list[Any]] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return rows


def _read(path: str, memory: int, seconds: int) -> list[list[Any]]:
    from python_calamine import CalamineWorkbook

    with suppress(ImportError):  # only POSIX has limits; elsewhere the clock alone ends the process
        resource: Any = import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with CalamineWorkbook.from_path(path) as workbook:
        sheet = workbook.get_sheet_by_index(0)
        if sheet.total_height * sheet.total_width > MAX_CELLS:
            raise MemoryError
        rows: list[list[Any]] = sheet.to_python()
    return [row for number, row in enumerate(rows) if number == 0 or any(cell != "" for cell in row)]


if __name__ == "__main__":
    # Whatever goes wrong has one meaning, and no message, which could quote answers.
    try:
        found = _read(sys.argv[1], *map(int, sys.argv[2:]))
        json.dump(found, sys.stdout, default=lambda cell: cell.isoformat() if hasattr(cell, "isoformat") else str(cell))
        sys.stdout.flush()
    except BaseException:
        sys.exit(1)
