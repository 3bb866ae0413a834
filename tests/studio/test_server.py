"""Who may ask the studio, and what happens to everybody else."""

import asyncio
import json
import random
import re
import sys
from pkgutil import resolve_name

import pytest

pytest.importorskip("starlette", reason="starlette is not installed: the studio is not served here")
from studio_asgi import HOST, OURS, PORT, TOKEN, ask, call, post

from ldpopt_studio.server import JOBS, MAX_REQUEST, VIEWS, application

STATE = {"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3}
KIND, GIVEN = (b"content-type", b"application/json"), (b"x-studio-token", TOKEN.encode())


@pytest.fixture(scope="module")
def app():
    return application(TOKEN, PORT, {"tell": {"epsilon": 2.0}})


def test_a_request_of_the_page_is_answered(app):
    """With this machine's Host and the token, a state becomes a verified design."""
    response = post(app, "/api/tell", STATE)
    assert response.status == 200
    assert response.content["proof"] == response.content["proof"] | {"verified": True, "certified": True}
    assert ask(app, "GET", "/api/start").content["states"] == {"tell": {"epsilon": 2.0}}


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"0.0.0.0:{PORT}", "",
     f"127.0.0.1:{PORT}@evil.example", f"localhost.evil.example:{PORT}", f"127.0.0.1:0{PORT}"],
)  # fmt: skip
def test_a_foreign_host_is_rejected(app, host):
    """A name that an attacker bound to this machine (DNS rebinding) gets nothing, not even the page."""
    for method, path in (("GET", "/"), ("GET", "/api/start"), ("POST", "/api/tell")):
        assert ask(app, method, path, [(b"host", host.encode()), GIVEN, KIND], b"{}").status == 421


def test_a_missing_or_repeated_host_is_rejected(app):
    """A browser sends exactly one Host."""
    assert ask(app, "GET", "/", [GIVEN]).status == 421
    assert ask(app, "GET", "/", [HOST, HOST, GIVEN]).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_names_of_this_machine_are_accepted(app, host):
    """The names of this machine are accepted, with an Origin of the same name or without one."""
    named = (b"host", f"{host}:{PORT}".encode())
    assert ask(app, "GET", "/api/start", [named, GIVEN]).status == 200
    assert ask(app, "GET", "/api/start", [named, GIVEN, (b"origin", f"http://{host}:{PORT}".encode())]).status == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1", f"http://localhost:{PORT}.a"],
)
def test_a_foreign_origin_is_rejected(app, origin):
    """A page of another site is rejected even with the token."""
    for path in ("/", "/api/start"):
        assert ask(app, "GET", path, [*OURS, (b"origin", origin.encode())]).status == 403
    assert ask(app, "GET", "/api/start", [*OURS, (b"sec-fetch-site", b"cross-site")]).status == 403


@pytest.mark.parametrize("token", [None, "", "x", TOKEN[:-1], TOKEN + "t", TOKEN.upper()])
def test_without_the_token_nothing_is_computed(app, token):
    """Each path below /api requires the token, and nothing else grants access."""
    token_headers = [] if token is None else [(b"x-studio-token", token.encode())]
    for method, path in (
        ("GET", "/api/start"),
        ("POST", "/api/tell"),
        ("POST", "/api/jobs/phases"),
        ("GET", "/api/jobs/a"),
    ):
        response = ask(app, method, path, [HOST, KIND, *token_headers], json.dumps(STATE).encode())
        assert response.status == 401
        assert TOKEN not in response.body.decode()
    assert ask(app, "GET", "/api/start", [HOST, GIVEN, GIVEN]).status == 401


def test_a_token_in_the_address_is_ignored(app):
    """Addresses leak into histories and logs, so the interface does not accept a token from one."""
    assert ask(app, "GET", "/api/start", [HOST], query=b"token=" + TOKEN.encode()).status == 401


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/static/../server.py", "//etc/passwd", "/etc/passwd", "/%2e%2e/server.py", "/..%2fserver.py",
     "/app.js/..", "/./app.js", "/app.js\0", "/APP.JS", "/index.html/", "\\app.js", "/__pycache__/", "/studio.css?x"],
)  # fmt: skip
def test_paths_match_only_exact_names_of_files(app, path):
    """A path other than the exact name of a file of the page is not found, and no file is opened for it."""
    assert ask(app, "GET", path).status == 404


def test_the_policy_allows_only_the_page_s_own_files(app):
    """The policy allows no inline script or style, no other machine and no frame."""
    response = ask(app, "GET", "/", [HOST])
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    text = response.body.decode()
    assert "http://" not in text
    assert "https://" not in text
    assert "style=" not in text
    assert "<script>" not in text


def test_no_file_of_the_page_names_another_machine(app):
    """Scripts and style sheets contain no address of another machine; SVG's namespace is not requested."""
    for path in ("/app.js", "/api.js", "/charts.js", "/tell.js", "/studio.css", "/dom.js"):
        text = ask(app, "GET", path, [HOST]).body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text.replace("https?:", "")


def test_invalid_bodies_are_rejected_with_their_status(app):
    """Broken or deep JSON, lists, invalid numbers, other types and long bodies have their statuses."""
    for body, status in (
        (b"", 400), (b"{", 400), (b"[]", 400), (b"1", 400), (b'{"epsilon": NaN}', 400), (b'{"a":1,"a":2}', 400),
        (b"\xff\xfe", 400), (b"[" * 200_000, 400), (b" " * (MAX_REQUEST + 1), 413), (b'{"epsilon": 1e999}', 400),
    ):  # fmt: skip
        assert ask(app, "POST", "/api/tell", body=body).status == status, body[:20]
    for headers in (
        [HOST, GIVEN],
        [HOST, GIVEN, (b"content-type", b"text/plain")],
        [*OURS, (b"content-encoding", b"gzip")],
    ):
        assert ask(app, "POST", "/api/tell", headers, b"{}").status == 415


@pytest.mark.parametrize(
    ("patch", "field"),
    [({"p0": "a"}, "p0"), ({"p0": [0.5, 0.6, 0.2]}, "p0"), ({"p1": [1.0]}, "p1"),
     ({"p1": [0.5, 0.3, 0.2]}, "p1"),
     ({"epsilon": -1}, "epsilon"), ({"epsilon": "1"}, "epsilon"), ({"epsilon": None}, "epsilon"),
     ({"epsilon": True}, "epsilon"), ({"eta": 2}, "eta"), ({"labels": ["a", "a", "b"]}, "labels"),
     ({"labels": [1, 2, 3]}, "labels"), ({"names": ["a"]}, "names"),
     ({"divergence": "no"}, "divergence"), ({"divergence": "alpha:x"}, "divergence"),
     ({"delta": -1}, "delta"),
     ({"renyi": 1, "renyi_order": 0.5}, "renyi_order"), ({"renyi": -1, "renyi_order": 2}, "renyi"),
     ({"outputs": 0}, "outputs"), ({"power": 2}, "power"), ({"p0": {}}, "p0"), ({"p0": [[1]]}, "p0"),
     ({"p0": []}, "p0")],
)  # fmt: skip
def test_an_invalid_state_names_its_field(app, patch, field):
    """An invalid state returns status 422 and the message of the field that is wrong."""
    response = post(app, "/api/tell", STATE | patch)
    assert response.status == 422
    assert list(response.content["errors"]) == [field]
    assert re.search("expected|required", response.content["errors"][field])


def test_each_registered_function_exists():
    """Each name that the page may call refers to a function."""
    for place in (*VIEWS.values(), *JOBS.values()):
        assert callable(resolve_name(f"ldpopt_studio.{place}"))


SCRAPS = [
    "",
    "/",
    "api",
    "api/",
    "jobs",
    "tell",
    "start",
    "..",
    "%2e%2e",
    "etc/passwd",
    "\0",
    "a" * 300,
    "é",
    "\\",
    "//",
    "?",
    "index.html",
]
VALUES = [
    None,
    True,
    -1,
    0,
    1e308,
    -1e-320,
    "inf",
    "",
    "\ud800",
    [],
    {},
    [[]],
    [0.5, 0.5],
    ["a"],
    {"p0": 1},
    "x" * 5000,
]


def malformed_request(rng):
    """Draw a request with a foreign host, origin, token, method or path, or with an invalid body."""
    names = ["host", "x-studio-token", "content-type", "origin", "content-length", "cookie", "transfer-encoding"]
    wrong = [b"", b"evil.example", b"null", b"\xff", TOKEN.encode()[:-1], b"text/plain", b"-5", b"chunked"]
    asking = [one for one in VIEWS if one != "examples"]  # which needs no state
    called = "/api/" + rng.choice([*asking, "jobs/" + rng.choice([*JOBS]), "jobs/x"])
    noise = bytes(rng.randrange(256) for _ in range(rng.randrange(30)))
    kind = rng.randrange(4)
    if kind == 0:
        method = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"])
        path = "/" + "/".join(rng.choice(SCRAPS) for _ in range(rng.randrange(1, 4)))
        headers = [*(pair for pair in OURS if rng.random() < 0.9), (rng.choice(names).encode(), rng.choice(wrong))]
        return method, path, headers, noise
    if kind == 1:
        return "POST", called, OURS, rng.choice([noise, json.dumps(rng.choice(VALUES[:9])).encode(), b'{"p0":' + noise])
    if kind == 2:
        patch = {rng.choice([*STATE]): rng.choice([one for one in VALUES if one != [0.5, 0.5]])}
        return "POST", "/api/tell", OURS, json.dumps(STATE | patch).encode()
    return "POST", called, rng.sample(OURS, rng.randrange(len(OURS))), json.dumps(VALUES[-2]).encode()


@pytest.mark.full
def test_thousands_of_malformed_requests_are_rejected(app):
    """None gets more than a file of the page, none causes a server error, and no file is opened for any."""
    post(app, "/api/tell", STATE)  # what is imported on the way is read before
    opened_paths, watching = [], True
    sys.addaudithook(lambda event, args: opened_paths.append(args[0]) if watching and event == "open" else None)
    rng = random.Random(16)
    statuses = {}

    async def all_of_them():
        for _ in range(3000):
            method, path, headers, body = malformed_request(rng)
            response = await call(app, method, path, headers, body)
            statuses[response.status] = statuses.get(response.status, 0) + 1
            if response.status == 200 and path.startswith("/api/"):
                # Only a state that is one after all, such as one without a cap, has a document.
                assert (method, path) == ("POST", "/api/tell") or (method in ("GET", "HEAD") and path == "/api/start")
                assert {HOST, GIVEN} <= set(headers)
            assert TOKEN.encode() not in response.body

    asyncio.run(all_of_them())
    watching = False
    assert set(statuses) <= {200, 400, 401, 403, 404, 405, 415, 421, 422}
    assert statuses[421] > 30
    assert statuses[401] > 30
    assert statuses[422] > 300
    assert statuses[200] < 450
    assert [path for path in opened_paths if not str(path).startswith("/dev/")] == []
