"""Views and jobs run in processes that can be killed, and their results are the functions' own."""

import asyncio
import base64
import io
import os
import re
import signal
import tempfile
import time

import numpy as np
import openpyxl
import pytest

from ldpopt_studio import load, processes
from ldpopt_studio.fields import FieldError
from ldpopt_studio.processes import FOLDER_PREFIX, Jobs, Views, compute_outcome, remove_stale_folders
from ldpopt_studio.server import JOBS
from ldpopt_survey.reports.page import workbook

pytestmark = pytest.mark.full

STATE = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3}


def test_an_abandoned_view_is_killed():
    """After the page has left a large view, the next view is answered. A view abandoned in the queue never runs."""
    many = [1 / 3000] * 3000
    large = STATE | {"p0": [*many[:-2], 2 / 3000, 0.0], "p1": many}

    async def scene():
        views, looks = Views(), []

        async def gone():
            looks.append(1)
            return len(looks) > 3

        async def stays():
            return False

        async def left():
            return True

        try:
            first = asyncio.create_task(views.outcome("tell:view", large, gone))
            await asyncio.sleep(0)
            second = asyncio.create_task(views.outcome("tell:view", large, left))
            third = asyncio.create_task(views.outcome("tell:view", STATE, stays))
            return await asyncio.gather(first, second, third)
        finally:
            views.close()

    first, second, third = asyncio.run(scene())
    assert "error" in first
    assert "error" in second
    assert third["result"]["proof"]["verified"] is True


def test_a_job_reports_its_progress_and_can_be_killed():
    """A job's result is that of its function; a cancelled job and its process are gone."""
    jobs = Jobs(JOBS)
    jobs.warm()
    try:
        job_id = jobs.start("phases", STATE)
        progress = []
        while not (output := jobs.poll(job_id))["done"]:
            progress.append(output["progress"])
            time.sleep(0.02)
        assert progress == sorted(progress)
        assert output["result"]["pieces"][0]["low"] == 0.05
        long = jobs.start("envelope", STATE)
        process = jobs._jobs[long].process
        assert process.is_alive()
        assert jobs.cancel(long)
        assert not process.is_alive()
        assert jobs.poll(long) is None
        assert not jobs.cancel(long)
    finally:
        jobs.close()


def test_an_upload_is_removed_with_its_view(tmp_path, monkeypatch):
    """A view that is killed while it reads an upload leaves no file, nor does a studio that was killed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in (f"{FOLDER_PREFIX}{2**22 + 7}-old", f"{FOLDER_PREFIX}{os.getpid()}-live", f"{FOLDER_PREFIX}x-foreign"):
        (tmp_path / name).mkdir()
    remove_stale_folders()
    remaining = {path.name for path in tmp_path.iterdir()}
    assert remaining == {f"{FOLDER_PREFIX}{os.getpid()}-live", f"{FOLDER_PREFIX}x-foreign"}
    content = workbook({"data": np.random.default_rng(1).random((20_000, 10)).tolist()})
    state = {"name": "a.xlsx", "content": base64.b64encode(content).decode()}

    async def scene():
        views = Views()

        async def gone():  # as soon as there is the upload
            return any(tmp_path.glob(f"{FOLDER_PREFIX}*/*/file.xlsx"))

        try:
            return await views.outcome("load:view", state, gone)
        finally:
            views.close()

    assert "error" in asyncio.run(scene())
    assert {path.name for path in tmp_path.iterdir()} == remaining


@pytest.mark.parametrize("content", [b"no workbook", None])
def test_errors_of_an_upload_contain_no_folder(content):
    """Errors of a workbook, with or without chosen columns, do not show its temporary folder."""
    if content is None:
        book, kept = openpyxl.Workbook(), io.BytesIO()
        for row in (["group", "answer"], ["a", "x"], ["b", "y"], ["c", "x"]):
            book.active.append(row)
        book.save(kept)
        content = kept.getvalue()
    state = {"name": "a.xlsx", "content": base64.b64encode(content).decode()}
    for chosen in ({}, {"answer": "answer", "group": "group"}):
        try:
            message = load.view(state | chosen)["problem"]
        except FieldError as error:
            message = str(error)
        assert "expected" in message
        assert tempfile.gettempdir() not in message


def test_an_unexpected_error_is_one_line_without_a_traceback(monkeypatch, capfd):
    """The terminal gets the type and the line; the page gets a sentence."""
    monkeypatch.setattr(load, "view", lambda state: 1 / 0)
    message = compute_outcome("load:view", {})
    output = capfd.readouterr()
    assert "ZeroDivisionError" in message["error"]
    assert re.fullmatch(r"ldpopt studio: unexpected ZeroDivisionError in test_processes\.py:\d+\n", output.err)
    assert output.out == ""


def test_a_process_prints_nothing_if_its_studio_was_killed(tmp_path, monkeypatch, capfd):
    """Reporting progress to a closed pipe prints neither a traceback nor a line, and removes the folder."""
    parent_pipe, child_pipe = processes.CONTEXT.Pipe()

    def works(state, report):
        parent_pipe.close()
        report(0.5)

    monkeypatch.setattr(load, "view", works)
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = signal.getsignal(signal.SIGINT)
    folder = tmp_path / "work"
    folder.mkdir()
    parent_pipe.send_bytes(b'["load:view", {}]')
    try:
        processes._run_process(child_pipe, False, str(folder))
    finally:
        signal.signal(signal.SIGINT, before)
        tempfile.tempdir = None  # the folder is gone
        child_pipe.close()
    output = capfd.readouterr()
    assert (output.out, output.err) == ("", "")
    assert not folder.exists()
