"""Whatever file operation of a run fails, and wherever it is killed, the same call ends with the same reports.

Every operation of every form, one after the other: ``python experiments/trust/collect.py --operations``.
"""

from pathlib import Path

import pytest
from faults import spoil_operations

pytestmark = pytest.mark.full

FORMS = {"csv file fresh": "kill", "parquet folder fresh": "full", "csv folder memoised": "kill",
         "parquet file memoised": "fail"}  # fmt: skip


@pytest.mark.parametrize(("form", "kind"), FORMS.items())
def test_every_file_operation_once(tmp_path: Path, form: str, kind: str) -> None:
    """Wherever in the code a file operation fails, or the process ends there, a repeated call loses nothing."""
    spoil_operations(tmp_path, form, kind, all_of_them=False)
