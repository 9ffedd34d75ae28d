"""The server of the page: who is served what."""

import http.client
import json
import socket
import threading
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from switchgnn.live.board import Board, JobOutcome
from switchgnn.live.server import DOCUMENT, MOST_CONNECTIONS, LiveError, serve_page
from tests.support.speed import seconds_here
from tests.support.waiting import wait_until


@pytest.fixture
def address():
    with serve_page(Board("a run"), 0) as address:
        yield address


@contextmanager
def asked(address, path="/", method="GET", **headers):
    where = urlsplit(address).netloc
    with closing(http.client.HTTPConnection(where, timeout=seconds_here(10))) as connection:
        connection.request(method, path, headers=headers)
        yield connection.getresponse()


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
    kinds |= {"": "text/html; charset=utf-8", "json": "application/json"}
    for path in ("/", "/style.css", "/page.js", "/icon.svg", DOCUMENT, "/nothing.txt"):
        with asked(address, path) as answer:
            kind = kinds.get(path.rpartition(".")[2].strip("/"))
            assert answer.status == (200 if kind else 404)
            assert answer.headers["content-type"].startswith(kind or "text/plain")
            policy = answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert not [each for each in answer.headers if each.startswith("access-control")]
            assert "server" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""])
@pytest.mark.parametrize("path", ["/", DOCUMENT])
def test_another_host_is_refused(address, host, path):
    with asked(address, path, Host=host) as answer:
        assert answer.status == 400
        assert b"run" not in answer.read()


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/", DOCUMENT])
def test_only_get_is_served(address, method, path):
    with asked(address, path, method, Host=f"localhost:{urlsplit(address).port}") as answer:
        assert answer.status == 405
        assert answer.headers["allow"] == "GET"


def test_connections_are_bounded(address):
    parts = urlsplit(address)
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            idle = socket.create_connection((parts.hostname, parts.port), seconds_here(10))
            stack.enter_context(idle)
        with asked(address, DOCUMENT) as answer:
            assert answer.status == 503

    def served():
        with asked(address, DOCUMENT) as answer:
            return answer.status == 200

    wait_until(served, "a server with room")


def test_an_open_page_gets_the_outcome_and_then_nobody_listens():
    board, polled, seen = Board("a run"), threading.Event(), []

    def poll(address):
        while not seen or seen[-1]["outcome"] is None:
            with asked(address, f"{DOCUMENT}?page=1") as answer:
                seen.append(json.load(answer))
            polled.set()

    with serve_page(board, 0) as address:
        page = threading.Thread(target=poll, args=(address,))
        page.start()
        assert polled.wait(seconds_here(20))
        board.end(JobOutcome.DONE, "Every sum equals the reference.")
    page.join()
    assert seen[-1]["words"] == "Every sum equals the reference."
    with pytest.raises(OSError, match="refused"), asked(address):
        pass
    assert not [each for each in threading.enumerate() if each.name == "live page"]


def test_a_port_that_is_taken_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(LiveError, match=rf"port {port}.*choose another port"),
            serve_page(Board("a run"), port),
        ):
            pass
