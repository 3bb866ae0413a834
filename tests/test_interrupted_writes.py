"""Killed or interrupted at any moment, writing leaves a whole file or none under the name."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from packages import PACKAGES, modules

from ldpopt.channel import Channel
from ldpopt.io import read_channel, write_channel

pytestmark = pytest.mark.full

CHANNEL = Channel(np.full((40, 40), 1 / 40))


@pytest.mark.parametrize("step", ["write", "flush", "fsync", "link", "replace"])
@pytest.mark.parametrize("force", [False, True])
def test_an_interrupt_at_any_step_leaves_a_whole_file(tmp_path, monkeypatch, step, force):
    """Ctrl-C during any call to the system leaves the old file or the new one, whole, and nothing beside it."""
    path = tmp_path / "q.json"
    if force:
        write_channel(path, np.eye(2))
    before = path.read_bytes() if force else None

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    if step in ("write", "flush"):
        real = type(path).open

        class File:
            def __init__(self, inner):
                self.inner = inner

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.inner.close()

            def fileno(self):
                return self.inner.fileno()

            def write(self, data):
                self.inner.write(data[: len(data) // 2])
                if step == "write":
                    raise KeyboardInterrupt

            flush = interrupt

        monkeypatch.setattr(type(path), "open", lambda self, *a, **k: File(real(self, *a, **k)))
    else:
        monkeypatch.setattr(os, step, interrupt)
    used = step not in (("link",) if force else ("replace",))
    try:
        write_channel(path, CHANNEL, force=force)
    except KeyboardInterrupt:
        monkeypatch.undo()
        assert (path.read_bytes() if path.exists() else None) in (before, CHANNEL.to_json().encode())
    else:
        assert not used
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] in ([], ["q.json"])


WRITER = """
import sys, numpy as np
from ldpopt.channel import Channel
from ldpopt.io import write_channel
q = Channel(np.full((60, 60), 1 / 60))
e = q.exact()
print("ready", flush=True)
while True:
    write_channel(sys.argv[1], q, force=True)
    write_channel(sys.argv[2], e, force=True)
"""


def test_a_killed_process_leaves_whole_files(tmp_path):
    """A process killed in the middle of writing leaves files that are read back whole."""
    float_path, exact_path = tmp_path / "q.json", tmp_path / "e.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for attempt in range(3):
        command = [sys.executable, "-c", WRITER, str(float_path), str(exact_path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.05 + 0.013 * attempt)
            process.send_signal(signal.SIGKILL)
        if float_path.exists():
            assert read_channel(float_path).shape == (60, 60)
        if exact_path.exists():
            assert read_channel(exact_path).shape == (60, 60)
    assert float_path.exists()


def test_no_module_reads_or_writes_pickles():
    """No file of the package imports a serialiser that runs code, and numpy is told not to."""
    for path in modules(*PACKAGES).values():
        # Worker processes of the same run are no files: only joblib's own reading and writing of files is refused.
        text = path.read_text("utf-8").replace("from joblib import Parallel, delayed\n", "")
        for name in ("pickle", "shelve", "marshal", "dill", "joblib", "yaml", "cloudpickle"):
            assert f"import {name}" not in text, path
            assert f"from {name}" not in text, path
        assert text.count("np.load(") == text.count("np.load(dropped, allow_pickle=False)") + text.count(
            "np.load(path, allow_pickle=False)"
        ), path
        assert "eval(" not in text.replace(".eval(", "").replace("literal_eval(", ""), path
        assert " exec(" not in text, path
