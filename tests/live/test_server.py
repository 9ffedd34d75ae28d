# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The server of the page: headers, events, readers."""

import http.client
import json
import socket
import threading
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from switchgnn.live import server
from switchgnn.live.server import MOST_READERS, Feed, LiveError, serve_page
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


@pytest.fixture
def feed():
    made = Feed()
    made.publish(b'{"number":1}')
    return made


@pytest.fixture
def address(feed):
    with serve_page(feed, 0) as address:
        yield address
        # A page that is still open would be waited for.
        feed.publish(b'{"number":99}', last=True)


def connect(address):
    place = urlsplit(address)
    return http.client.HTTPConnection(place.hostname, place.port, timeout=seconds_here(10))


@contextmanager
def asked(address, path="/", method="GET", **headers):
    connection = connect(address)
    try:
        connection.request(method, path, headers=headers)
        yield connection.getresponse()
    finally:
        connection.close()


def next_event(answer):
    """The fields of the next event that has data."""
    fields = {}
    while True:
        line = answer.readline().decode().removesuffix("\n")
        if not line and "data" in fields:
            return fields
        if not line:
            fields = {}
            continue
        name, _, value = line.partition(": ")
        fields[name] = value


def test_it_listens_on_loopback_alone(address):
    assert urlsplit(address).hostname == "127.0.0.1"
    # All of this network is loopback, too; only the one address is listened on.
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", urlsplit(address).port), seconds_here(5))


def test_all_files_that_the_page_names_are_served_with_the_headers(address):
    with asked(address) as answer:
        page = answer.read().decode()
    for word in ("style.css", "page.js", "icon.svg"):
        assert f'"/{word}"' in page
    # Nothing of elsewhere, and nothing that the policy would refuse.
    for word in ("http:", "https:", "style=", "onclick", "<style"):
        assert word not in page
    kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    kinds["html"] = "text/html; charset=utf-8"
    for path, (name, _) in {**server._FILES, "/nothing": ("", None)}.items():
        with asked(address, path) as answer:
            assert answer.status == (200 if name else 404)
            kind = kinds.get(name.rpartition(".")[2], "")
            assert answer.headers["content-type"].startswith(kind)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert not [each for each in answer.headers if each.startswith("access-control")]
            assert "server" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""])
@pytest.mark.parametrize("path", ["/", "/events"])
def test_another_host_is_refused(address, host, path):
    with asked(address, path, Host=host) as answer:
        assert answer.status == 400
        assert b"number" not in answer.read()


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/", "/events"])
def test_only_get_is_served(address, method, path):
    with asked(address, path, method, Host=f"localhost:{urlsplit(address).port}") as answer:
        assert answer.status == 405
        assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize("path", ["/../server.py", "/page/index.html", "//etc/passwd", "/%2e%2e/x"])
def test_only_named_files_are_served(address, path):
    with asked(address, path, Host=f"localhost:{urlsplit(address).port}") as answer:
        assert answer.status == 404


def test_events_are_those_of_the_feed(address, feed):
    with asked(address, "/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next_event(answer) == {"id": "1", "event": "snapshot", "data": '{"number":1}'}
        feed.publish(b'{"number":2}')
        assert next_event(answer)["data"] == '{"number":2}'
        feed.publish(b'{"number":3}', last=True)
        assert next_event(answer)["data"] == '{"number":3}'
        # The last one ends the answer.
        assert answer.read().strip() == b""


def test_who_comes_late_gets_the_newest(address, feed):
    for number in range(2, 50):
        feed.publish(json.dumps({"number": number}).encode())
    with asked(address, "/events") as answer:
        assert json.loads(next_event(answer)["data"]) == {"number": 49}


def test_a_slow_reader_gets_the_newest_and_nothing_piles_up(address, feed):
    long = b'"%s"' % (b"x" * 100_000)
    with asked(address, "/events") as answer:
        next_event(answer)
        for number in range(2, 400):
            feed.publish(b"[%d,%s]" % (number, long))
        feed.publish(b'{"number":400}', last=True)
        rest = answer.read()
    # What sockets hold, and not the 40 MB that were published.
    assert len(rest) < 20_000_000
    assert b'{"number":400}' in rest


def test_readers_are_bounded_and_leave(address, feed):
    with ExitStack() as stack:
        for _ in range(MOST_READERS):
            answer = stack.enter_context(asked(address, "/events"))
            assert next_event(answer)["id"] == "1"
        with asked(address, "/events") as answer:
            assert answer.status == 503
            assert b"close one" in answer.read()
        # The page itself is still there.
        with asked(address) as answer:
            assert answer.status == 200
    assert wait_until(lambda: not feed._readers, "readers that have left") is True
    with asked(address, "/events") as answer:
        assert next_event(answer)["id"] == "1"


def test_the_end_is_told_and_then_nobody_listens():
    feed = Feed()
    feed.publish(b"1")
    with serve_page(feed, 0) as address, asked(address, "/events") as answer:
        next_event(answer)
        feed.publish(b"2", last=True)
        assert next_event(answer)["data"] == "2"
    with pytest.raises(OSError, match="refused"), asked(address):
        pass
    assert not [each for each in threading.enumerate() if each.name == "live page"]


def test_a_port_that_is_taken_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(LiveError, match=rf"port {port}.*choose another port"),
            serve_page(Feed(), port),
        ):
            pass
