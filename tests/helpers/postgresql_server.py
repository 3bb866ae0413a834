"""A PostgreSQL server of one's own, in a folder that goes afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ABSENT = "PostgreSQL's server programs are not installed (on Debian: apt-get install postgresql)"


def programs() -> Path | None:
    """The folder of the newest server's programs, if there is one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Server:
    """A cluster that listens at a socket in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._programs = folder, programs()
        # The server refuses to run as root.
        self._as = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        self.url = f"postgresql:///postgres?host={folder}&user=postgres"

    def run(self, program: str, *arguments: str) -> None:
        """One of the server's programs."""
        command = [str(self._programs / program), *arguments]
        # Into a file: the server that pg_ctl leaves behind would hold a pipe open.
        with open(self.folder.parent / "log", "ab") as log:
            subprocess.run(command, stdout=log, stderr=log, cwd="/", check=True, timeout=600, **self._as)

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = f"-k {self.folder} -c listen_addresses='' -c max_connections=40"
        self.run(
            "pg_ctl", "start", "-w", "-D", str(self.folder / "data"), "-o", settings, "-l", str(self.folder / "log")
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop; "immediate" is what a crash does."""
        self.run("pg_ctl", "stop", "-w", "-m", mode, "-D", str(self.folder / "data"))


@contextmanager
def server() -> Iterator[Server]:
    """A server that runs for as long as the block does."""
    with tempfile.TemporaryDirectory(prefix="ldpopt-pg-") as outer:
        os.chmod(outer, 0o755)
        folder = Path(outer) / "cluster"
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        made = Server(folder)
        options = ("-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync")
        made.run("initdb", "-D", str(folder / "data"), *options)
        made.start()
        try:
            yield made
        finally:
            made.stop("immediate")
