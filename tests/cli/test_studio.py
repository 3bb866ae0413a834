"""``ldpopt studio`` before it serves: errors are one line."""

import contextlib
import http.client
import json
import signal
import socket
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ldpopt import extras
from ldpopt.cli import app


def run_studio(*arguments):
    result = CliRunner().invoke(app, ["studio", "--no-browser", *arguments])
    return result.exit_code, result.output.strip()


def test_without_the_extra_the_error_names_the_install_command(monkeypatch):
    """Exit code 1, and one line with the command that installs what is missing."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    code, line = run_studio()
    assert code == 1
    install = "python -m pip install 'ldpopt[studio]'"
    assert line == f"ldpopt: error: this needs the package starlette, which is not installed: {install}"


def test_an_occupied_port_is_an_error_of_the_option():
    """Exit code 2, with the option's name and no other."""
    pytest.importorskip("starlette", reason="starlette is not installed: the studio is not started here")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, line = run_studio("--port", str(taken.getsockname()[1]))
    assert code == 2
    assert line.startswith("ldpopt: error: --port: expected a place to listen at, got address already in use")


def test_an_invalid_file_is_an_error_before_the_studio_starts(tmp_path):
    """The file is read before the socket is opened, and the message is that of `ldpopt design`."""
    pytest.importorskip("starlette", reason="starlette is not installed: the studio is not started here")
    path = tmp_path / "pair.csv"
    path.write_text("p0,p1\n0.5,0.5\n0.6,0.5\n", encoding="utf-8")
    code, line = run_studio(str(path))
    assert code == 2
    assert "expected entries that sum to 1" in line
    assert "http" not in line


@pytest.mark.full
def test_control_c_stops_the_studio_at_once(spawn):
    """While a large view is computed, too: within seconds, without a traceback."""
    pytest.importorskip("starlette", reason="starlette is not installed: the studio is not started here")
    process = spawn("studio", "--no-browser", "--port", "0")
    address = process.stdout.readline().strip()
    root, _, token = address.partition("/?token=")
    many = [1 / 3000] * 3000
    state = json.dumps({"p0": [*many[:-2], 2 / 3000, 0.0], "p1": many, "epsilon": 1.0, "eta": 0.3}).encode()
    headers = {"x-studio-token": token, "content-type": "application/json"}
    request_thread = threading.Thread(
        target=lambda: send_request(urllib.request.Request(root + "/api/tell", state, headers)), daemon=True
    )
    request_thread.start()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in errors


def send_request(request):
    """Send a request, and ignore its end."""
    with contextlib.suppress(OSError, http.client.HTTPException), urllib.request.urlopen(request, timeout=600):
        pass


def test_the_browser_gets_no_token_in_its_arguments(monkeypatch):
    """The browser opens a file that only this user can read; one that does not return delays nothing."""
    pytest.importorskip("starlette", reason="starlette is not installed: the studio is not started here")
    opened, ended, served = [], threading.Event(), []

    def opens(address):
        path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
        opened.append((address, path, path.read_text("utf-8"), path.stat().st_mode & 0o777))
        ended.wait(60)

    def serves(_, listener, **__):
        until = time.monotonic() + 30
        while not opened and time.monotonic() < until:
            time.sleep(0.01)
        listener.close()
        served.append(True)

    monkeypatch.setattr("webbrowser.open", opens)
    monkeypatch.setattr("ldpopt_survey.server.web.serve", serves)
    result = CliRunner().invoke(app, ["studio", "--port", "0"])
    ended.set()
    address, path, text, mode = opened[0]
    token = result.stdout.splitlines()[0].partition("?token=")[2]
    assert (result.exit_code, served) == (0, [True])
    assert token
    assert token not in address
    assert f"?token={token}" in text
    assert mode == 0o600
    assert not path.exists()
