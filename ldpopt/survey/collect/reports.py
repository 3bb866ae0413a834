"""Files of reports: written complete or absent, joined, and read back in batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ldpopt import strictjson
from ldpopt.errors import InvalidInput, invalid
from ldpopt.files import aside, replace_text
from ldpopt.survey.collect.answers import values_hidden
from ldpopt.survey.collect.randomness.randomness import Simulated
from ldpopt.survey.plan.plan import Plan

MANIFEST = "_manifest.json"  # data-set readers pass over names that begin so
FORMAT = "ldpopt-reports"
VERSION = 1


def about(plan: Plan, mode: str) -> dict[str, Any]:
    """What reports say of themselves: the plan, the round, and whether they are a simulation."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "survey": plan.name,
        "round": plan.round,
        "plan": plan.checksum,
        "simulation": mode == Simulated.mode,
    }


def write_reports(path: Path, table: Any, plan: Plan, mode: str) -> None:
    """One partition's reports as Parquet or CSV, complete or absent."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    with aside(path) as written:
        if path.suffix == ".parquet":
            labelled = table.replace_schema_metadata({FORMAT: strictjson.dumps(about(plan, mode))})
            pq.write_table(labelled, written, compression="zstd", row_group_size=1 << 20)
        else:
            # CSV takes neither dictionaries nor string views.
            views = (pa.types.is_dictionary, pa.types.is_string_view)
            plain = [c.cast(pa.large_string()) if any(v(c.type) for v in views) else c for c in table.columns]
            csv.write_csv(pa.table(plain, table.column_names), written)


def write_manifest(folder: Path, plan: Plan, mode: str, names: Sequence[str], rows: int) -> None:
    """The list of a folder's partitions, written last."""
    content = {**about(plan, mode), "parts": list(names), "rows": rows}
    replace_text(folder / MANIFEST, strictjson.dumps(content))


def join(parts: Sequence[Path], path: Path) -> None:
    """All partitions as one file, complete or absent."""
    import pyarrow.parquet as pq

    with aside(path) as written:
        if path.suffix == ".csv":
            with open(written, "wb") as out:
                for number, part in enumerate(parts):
                    with open(part, "rb") as file:
                        header = file.readline()
                        out.write(header if number == 0 else b"")
                        while content := file.read(1 << 20):
                            out.write(content)
            return
        with pq.ParquetWriter(written, pq.read_schema(parts[0]), compression="zstd") as writer:
            for part in parts:
                with pq.ParquetFile(part) as file:
                    for group in range(file.num_row_groups):
                        writer.write_table(file.read_row_group(group))


def check_reports(files: Sequence[Path], given: Path | None, plan: Plan) -> None:
    """Reports belong to `plan`, and a folder of them is complete, as far as they say; else `InvalidInput`."""
    import pyarrow.parquet as pq

    claims = []
    if given is not None and given.is_dir() and (given / MANIFEST).exists():
        manifest = strictjson.loads((given / MANIFEST).read_bytes(), "manifest")
        claims.append(manifest)
        if not isinstance(manifest, dict) or sorted(path.name for path in files) != sorted(manifest.get("parts", [])):
            raise invalid("reports", "the partitions of their manifest, all of them", f"{len(files)} files", str(given))
    for path in files:
        if path.suffix == ".parquet":
            said = (values_hidden(str(path), pq.read_schema, path).metadata or {}).get(FORMAT.encode())
            claims += [] if said is None else [strictjson.loads(said, "reports")]
    for claim in claims:
        if not isinstance(claim, dict) or claim.get("plan") != plan.checksum:
            raise InvalidInput(f"reports: expected those of the plan {plan.name!r}, got those of another plan")
