"""A connection that sends endless or slow headers is ended; one that sends a request is not."""

import asyncio

import pytest

from ldpopt_survey.server import limits

pytest.importorskip("uvicorn")


def test_headers_have_a_limit_of_bytes_and_of_seconds(monkeypatch):
    """16 kB without an end of the headers get 431 and the end; silence and a byte now and then end in time."""
    monkeypatch.setattr(limits, "HEADER_SECONDS", 0.3)

    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def run():
        import uvicorn

        config = uvicorn.Config(answer, http=limits.limited_protocol(), lifespan="off", log_level="critical", port=0)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]

        async def talk(*pieces, wait=0.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            heard = b""
            try:
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(wait)
                heard = await asyncio.wait_for(reader.read(), 5)
            except ConnectionError:
                pass
            writer.close()
            return heard

        good = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        long = [b"GET / HTTP/1.1\r\nhost: x\r\n", *(b"x-%d: %s\r\n" % (at, b"y" * 1000) for at in range(17))]
        found = [await talk(good), await talk(*long, wait=0.002), await talk(b""), await talk(*[b"G"] * 8, wait=0.1)]
        server.should_exit = True
        await task
        return found

    good, long, silent, slow = asyncio.run(run())
    assert good.endswith(b"ok")
    assert b" 200 " not in long
    assert long == b"" or b" 431 " in long  # the system may throw away what a connection had left to say
    assert silent == b""
    assert b" 200 " not in slow
