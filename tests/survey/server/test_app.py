"""The application's answers: statuses, headers, the kit's files, and what only the holder of the token sees."""

import asyncio
import base64
import json
import logging
import math

import httpx
import pytest
from collectors import body_of, habits

from ldpopt.errors import InvalidInput
from ldpopt_survey.server import Unavailable, collector, database, draw_invitations, static_files
from ldpopt_survey.server import app as application
from ldpopt_survey.server.progress import Progress

PLAN = habits()
TOKEN = "a-token-of-some-length"


def ask(tmp_path, *requests, before=None, **options):
    """The answers to requests (method, path, keywords), one after the other."""

    async def run():
        with database(tmp_path / "reports.db", PLAN, create=True) as store:
            if before is not None:
                before(store)
            app = collector(PLAN, store, **options)
            transport = httpx.ASGITransport(app)
            async with (
                app.router.lifespan_context(app),
                httpx.AsyncClient(transport=transport, base_url="http://collector") as client,
            ):
                return [await client.request(method, path, **more) for method, path, more in requests]

    return asyncio.run(run())


def post(body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return "POST", "/submissions", {"content": content, "headers": {"content-type": "application/json"} | headers}


def get(path, **headers):
    return "GET", path, {"headers": headers}


def statuses(*arguments, **options):
    return [made.status_code for made in ask(*arguments, **options)]


def test_the_statuses_are_those_of_the_format(tmp_path):
    """201 once, 200 for the same again, 409 for other content, and an error in one sentence for everything else."""
    body = body_of(PLAN, (1, 1, 1))
    made = ask(
        tmp_path,
        post(body),
        post(body),
        post(body_of(PLAN, (0, 1, 1), body["id"])),
        post(b"{"),
        post(b"x" * 100_000),
        post(body, **{"content-type": "text/plain"}),
        post(body, **{"content-encoding": "gzip"}),
        post(body | {"round": 2}),
        ("GET", "/submissions", {}),
        ("DELETE", "/", {}),
        get("/nothing"),
    )
    assert [one.status_code for one in made] == [201, 200, 409, 400, 413, 415, 415, 422, 404, 405, 404]
    assert made[0].json() == made[1].json() == {"stored": True}
    for one in made[2:]:
        assert list(one.json()) == ["error"]
        assert one.json()["error"].endswith(".")
        assert body["id"] not in one.text


def test_a_long_body_is_not_read_to_its_end(tmp_path):
    """Without a length the body is read up to the limit, and no further."""
    read = []

    async def endless():
        for _ in range(1000):
            read.append(1)
            yield b"x" * 1000

    (made,) = ask(tmp_path, ("POST", "/submissions", {"content": endless(), "headers": post(b"")[2]["headers"]}))
    assert made.status_code == 413
    assert len(read) < 10


def test_invitations_and_the_end_of_a_round(tmp_path):
    """403 without a good invitation, 503 once the round is closed, and a retry is still told that all is well."""
    drawn = []
    first, second = body_of(PLAN, (1, 1, 1)), body_of(PLAN, (1, 0, 1))
    assert statuses(tmp_path, post(first), before=lambda store: drawn.extend(draw_invitations(PLAN, store, 1))) == [403]
    invited = first | {"invitation": drawn[0]}
    assert statuses(tmp_path, post(invited), post(second | {"invitation": drawn[0]}), post(first)) == [201, 403, 200]
    made = ask(tmp_path, post(invited), post(second), get("/readyz"), before=lambda store: store.close_round())
    assert [one.status_code for one in made] == [200, 503, 200]
    assert made[1].headers["retry-after"]
    assert made[2].json() == {"ok": True, "closed": True}


def test_too_many_submissions_are_refused_with_429(tmp_path):
    """Beyond the rate the answer is 429, before anything is read."""
    made = statuses(tmp_path, *[post(body_of(PLAN, (1, 1, 1))) for _ in range(4)], rate=1)
    assert made == [201, 201, 429, 429]


def test_counts_are_for_the_holder_of_the_token(tmp_path):
    """Without a token set there is nothing; with one, only its holder gets numbers, and no report."""
    assert statuses(tmp_path, get("/counts")) == [404]
    good = f"Bearer {TOKEN}"
    wrong = [
        get("/counts", authorization=one)
        for one in ("", TOKEN, f"Bearer {TOKEN}x", "Bearer", f"Token {TOKEN}", "é".encode())
    ]
    made = ask(tmp_path, post(body_of(PLAN, (1, 1, 1))), get("/counts", authorization=good), *wrong, token=TOKEN)
    assert [one.status_code for one in made] == [201, 200, *[401] * 6]
    assert statuses(tmp_path, get("/counts", authorization=f"bearer  {TOKEN}"), token=TOKEN) == [200]
    found = made[1].json()
    assert (found["reports"], found["closed"], found["plan"]) == (1, False, PLAN.checksum)
    assert len(found["days"]) == 1
    assert set(found) == {"survey", "round", "plan", "closed", "reports", "days", "invitations"}


def kit(tmp_path, **files):
    folder = tmp_path / "kit"
    folder.mkdir()
    for name, content in ({"index.html": "<!doctype html>", "code.js": "1", "sub/page.html": "2"} | files).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_progress_is_for_the_holder_of_the_token(tmp_path):
    """A browser sends the token as a password; the page says whether the survey may be stopped, and is kept a while."""
    asked = []

    def progress():
        asked.append(1)
        return [Progress("<vote>", 900, 0.0612, 0.05), Progress("sport", 2000, 0.04, 0.05)]

    basic = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    tries = (get("/progress"), get("/progress", authorization=f"Basic {basic}x"), get("/progress", authorization=TOKEN))
    good = get("/progress", authorization=f"Basic {basic}"), get("/progress", authorization=f"Bearer {TOKEN}")
    *refused, one, two = ask(tmp_path, *tries, *good, token=TOKEN, progress=progress)
    assert [made.status_code for made in refused] == [401] * 3
    assert refused[0].headers["www-authenticate"] == "Basic"
    assert one.text == two.text
    assert len(asked) == 1
    assert "Collect on: 1 of 2 questions" in one.text
    assert "&lt;vote&gt;: within 6.12 points" in one.text
    assert one.headers["content-security-policy"].startswith("default-src 'none'")
    assert statuses(tmp_path, good[0], progress=progress) == [404]
    assert statuses(tmp_path, good[0], token=TOKEN) == [404]


def test_every_answer_has_the_headers_and_no_cookie(tmp_path):
    """Pages may run their own scripts and send to their own place alone; nothing is sniffed, framed or remembered."""
    files = static_files(kit(tmp_path))
    asked = [get("/"), get("/code.js"), post(b"{"), get("/healthz"), get("/nothing"), ("PUT", "/", {})]
    made = ask(tmp_path, *asked, kit=files)
    for one in made:
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in one.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in one.headers["content-security-policy"]
        assert "unsafe" not in one.headers["content-security-policy"]
        assert not {"set-cookie", "server", "access-control-allow-origin"} & set(one.headers)
    assert made[0].headers["content-type"] == "text/html; charset=utf-8"
    assert made[1].headers["content-type"] == "text/javascript; charset=utf-8"
    assert "script-src 'self'" in made[0].headers["content-security-policy"]
    assert made[2].headers["cache-control"] == "no-store"


def test_a_kit_is_served_by_its_table_alone(tmp_path):
    """The index stands for the folder; a path that is not in the table leads nowhere, however it is written."""
    (tmp_path / "secret.txt").write_text("secret")
    files = static_files(kit(tmp_path))
    good = ("/", "/index.html", "/sub/page.html")
    tricks = ("/%2e%2e/secret.txt", "/..%2fsecret.txt", "/code.js/", "/CODE.JS", "/code.js%00", "/sub", "/sub/", "/%2f")
    assert statuses(tmp_path, *map(get, good), kit=files) == [200] * len(good)
    assert statuses(tmp_path, *map(get, tricks), kit=files) == [404] * len(tricks)
    (first,) = ask(tmp_path, get("/code.js"), kit=files)
    (again,) = ask(tmp_path, get("/code.js", **{"if-none-match": first.headers["etag"]}), kit=files)
    assert (again.status_code, again.content) == (304, b"")


def test_other_sites_may_submit_only_where_they_are_named(tmp_path):
    """A browser asks first, and hears yes for a named site alone."""
    ours, other = "https://survey.example", "https://other.example"
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    for origins, origin, allowed in (((), ours, None), ((ours,), ours, ours), ((ours,), other, None)):
        before = ("OPTIONS", "/submissions", {"headers": asked | {"origin": origin}})
        sent = post(body_of(PLAN, (1, 1, 1)), origin=origin)
        for made in ask(tmp_path, before, sent, origins=origins):
            assert made.headers.get("access-control-allow-origin") == allowed
            assert "access-control-allow-credentials" not in made.headers


def test_pages_of_other_sites_cannot_submit(tmp_path):
    """The collector refuses a browser's page of another site, and takes its own page, a named site and programs."""
    own = {"origin": "https://collect.example", "sec-fetch-site": "same-origin"}
    named = {"origin": "https://survey.example", "sec-fetch-site": "cross-site"}
    old = {"origin": "http://collector.test", "host": "collector.test"}  # a browser without sec-fetch-site
    foreign = [
        named,
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "https://collect.example", "sec-fetch-site": "same-site"},
        {"origin": "https://survey.example.evil"},
    ]
    sent = [post(body_of(PLAN, (1, 1, 1)), **headers) for headers in (own, old, {}, *foreign)]
    assert statuses(tmp_path, *sent) == [201, 201, 201, *[403] * 6]
    assert statuses(tmp_path, post(body_of(PLAN, (1, 1, 1)), **named), origins=("https://Survey.example:443",)) == [201]


@pytest.mark.parametrize(
    "origin", ["*", "null", "javascript:alert(1)", "https://a.example/", "https://a.example/x", "http://a.example",
               "https://u:p@a.example", "https://a.example:", "https://a b", "a.example", "", None, "https://a.example\n"],
)  # fmt: skip
def test_an_origin_that_no_browser_sends_is_refused(tmp_path, origin):
    """Such an origin would let nobody in, or everybody."""
    with pytest.raises(InvalidInput, match="origin"):
        statuses(tmp_path, get("/"), origins=(origin,))


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf, 0, -1, 0.5, "7", True])
def test_a_rate_that_is_no_rate_is_refused(tmp_path, rate):
    """NaN is not between any two numbers."""
    with pytest.raises(InvalidInput, match="rate"):
        statuses(tmp_path, get("/"), rate=rate)


def test_unexpected_errors_quote_nothing_in_answers_or_logs(tmp_path, monkeypatch, caplog):
    """An error of the program itself gives an answer and a line in the log, without words of the request."""

    def broken(*_):
        raise ValueError("secret")

    monkeypatch.setattr(application.Reader, "read", broken)
    with caplog.at_level(logging.DEBUG):
        (made,) = ask(tmp_path, post(body_of(PLAN, (1, 1, 1))))
    assert made.status_code == 500
    assert made.headers["x-content-type-options"] == "nosniff"
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text + made.text


def test_a_database_that_cannot_store_is_503(tmp_path, monkeypatch):
    """Where nothing can be stored nothing is acknowledged, it is not ready and says so; it is alive all the time."""

    def gone(*_):
        raise Unavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr("ldpopt_survey.server.databases.SqliteStore.write", gone)
        patch.setattr("ldpopt_survey.server.databases.SqliteStore.probe", gone)
        asked = [get("/readyz"), post(body_of(PLAN, (1, 1, 1))), get("/readyz"), get("/healthz")]
        assert statuses(tmp_path, *asked) == [503, 503, 503, 200]
    assert statuses(tmp_path, post(body_of(PLAN, (1, 1, 1))), get("/readyz")) == [201, 200]


def test_metrics_are_for_the_holder_of_the_token(tmp_path):
    """Prometheus gets numbers with the token, and nobody else; a text without a report or an id."""
    body, good = body_of(PLAN, (1, 1, 1)), get("/metrics", authorization=f"Bearer {TOKEN}")
    assert statuses(tmp_path, get("/metrics")) == [404]
    made = ask(tmp_path, post(body), post(body), post(b"{"), get("/metrics"), good, token=TOKEN)
    assert [one.status_code for one in made] == [201, 200, 400, 401, 200]
    lines = made[-1].text.splitlines()
    assert {"ldpopt_submissions_accepted_total 2.0", 'ldpopt_submissions_refused_total{status="400"} 1.0'} <= set(lines)
    assert "ldpopt_submissions_waiting 0.0" in lines
    assert any(line.startswith("ldpopt_disk_free_bytes ") and float(line.split()[1]) > 0 for line in lines)
    assert body["id"] not in made[-1].text


def test_long_headers_are_refused(tmp_path):
    """More than 16 kB of headers get 431, before anything is read."""
    assert statuses(tmp_path, get("/healthz", **{"x-long": "x" * 20_000}), get("/healthz")) == [431, 200]


def test_nothing_of_the_sender_is_kept_or_logged(tmp_path, caplog):
    """Canaries in every header that tells of a sender are in no file and no line of the log."""
    canary = "canary-7f3a"
    headers = {
        name: canary for name in ("user-agent", "x-forwarded-for", "forwarded", "cookie", "referer", "x-real-ip")
    }
    with caplog.at_level(logging.DEBUG):
        body = body_of(PLAN, (1, 1, 1))
        assert statuses(tmp_path, post(body, **headers), post(b"{" + canary.encode(), **headers)) == [201, 400]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert bytes.fromhex(body["id"]) in kept
    assert canary.encode() not in kept
    ours = [one.getMessage() for one in caplog.records if not one.name.startswith(("httpx", "httpcore", "asyncio"))]
    assert not ours
