# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The server of the page and its events, on loopback.

Each reader gets the newest event; slow readers miss the others.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from switchgnn.base.errors import SwitchGNNError
from switchgnn.live.gather import EVERY, Gathering


class LiveError(SwitchGNNError):
    """The page cannot be served."""


HOST = "127.0.0.1"
# Accepted Host headers, against DNS rebinding.
_NAMES = ["localhost", HOST]
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/network.js": ("network.js", "text/javascript; charset=utf-8"),
    "/words.js": ("words.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_HEADERS = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_MOST_CONNECTIONS = 64
MOST_READERS = 16
_PARTING_SECONDS = 2


class Feed:
    """Events that threads publish and tasks of an event loop read."""

    def __init__(self, most_readers: int = MOST_READERS) -> None:
        self._most = most_readers
        self._lock = threading.Lock()
        self._event: tuple[int, bytes] = (0, b"")
        self._over = False
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def publish(self, data: bytes, *, last: bool = False) -> None:
        """Replace the event by another line of JSON; after the last, readers end."""
        with self._lock:
            self._event = (self._event[0] + 1, data)
            self._over = last
            readers = list(self._readers.items())
        for reader, loop in readers:
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(reader.set)

    @contextmanager
    def reader(self) -> Iterator[asyncio.Event | None]:
        """Register a reader in the running event loop; yield None if there are too many."""
        woken = asyncio.Event()
        with self._lock:
            full = len(self._readers) >= self._most
            if not full:
                self._readers[woken] = asyncio.get_running_loop()
        try:
            yield None if full else woken
        finally:
            with self._lock:
                self._readers.pop(woken, None)

    async def follow(self, woken: asyncio.Event) -> AsyncIterator[tuple[int, bytes]]:
        """Yield number and line of the newest event until the last; `woken` is from `reader`."""
        seen = 0
        while True:
            woken.clear()
            with self._lock:
                (number, data), over = self._event, self._over
            if number > seen:
                seen = number
                yield number, data
            if over:
                return
            await woken.wait()


def page_app(feed: Feed) -> Starlette:
    """Return the application with the page and the events of a feed."""

    async def events(request: Request) -> Response:
        return _Events(feed)

    routes = [Route("/events", events)]
    for path, (name, kind) in _FILES.items():
        routes.append(Route(path, _file(name, kind)))
    guards = [
        Middleware(_Guard),
        Middleware(TrustedHostMiddleware, allowed_hosts=_NAMES, www_redirect=False),
    ]
    return Starlette(routes=routes, middleware=guards)


@contextmanager
def serve_page(feed: Feed, port: int) -> Iterator[str]:
    """Serve the page on loopback during the block; yield its address. Port 0: any free one.

    After the block, readers still get the last event.
    """
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise LiveError(
            f"The page cannot be served on port {port} of {HOST}: {why}; choose another "
            "port, or none for one that is free."
        ) from None
    config = uvicorn.Config(
        page_app(feed),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_PARTING_SECONDS,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}, name="live page", daemon=True
    )
    with listening:
        thread.start()
        try:
            yield f"http://{HOST}:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


class _Events(Response):
    """Server-sent events, as https://html.spec.whatwg.org/multipage/server-sent-events.html."""

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._feed.reader() as woken:
            if woken is None:
                words = "Too many pages are open: close one.\n"
                full = PlainTextResponse(words, status_code=503)
                await full(scope, receive, send)
                return
            lines = _lines(self._feed.follow(woken))
            stream = StreamingResponse(lines, media_type="text/event-stream")
            await stream(scope, receive, send)


async def _lines(events: AsyncIterator[tuple[int, bytes]]) -> AsyncIterator[bytes]:
    # Milliseconds until a page reconnects.
    yield b"retry: 2000\n\n"
    async for number, data in events:
        yield b"id: %d\nevent: snapshot\ndata: %s\n\n" % (number, data)


def _file(name: str, kind: str) -> ASGIApp:
    content = (resources.files("switchgnn.live") / "page" / name).read_bytes()
    return Response(content, headers={"content-type": kind})


class _Guard:
    """Middleware that refuses other methods than GET and adds headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        if scope["type"] == "http" and scope["method"] != "GET":
            words = "Only GET is served.\n"
            refused = PlainTextResponse(words, status_code=405, headers={"allow": "GET"})
            await refused(scope, receive, sealed)
            return
        await self._app(scope, receive, sealed)


Look = Callable[[], None]


class Show:
    """Publishes snapshots of a gathering to a feed."""

    def __init__(self, gathering: Gathering, feed: Feed) -> None:
        self.gathering = gathering
        self._feed = feed
        self._lock = threading.Lock()

    def publish(self, *, last: bool = False) -> None:
        """Publish a snapshot."""
        with self._lock:
            self._feed.publish(self.gathering.snapshot().to_json(), last=last)

    @contextmanager
    def looking(self, look: Look) -> Iterator[None]:
        """Call `look`, which must not raise, and publish, twice a second and after the block."""
        over = threading.Event()

        def run() -> None:
            while True:
                look()
                self.publish()
                if over.wait(EVERY):
                    return

        thread = threading.Thread(target=run, name="looking on", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            look()
            self.publish()


@contextmanager
def showing(title: str, *, port: int = 0, epochs: int = 0) -> Iterator[tuple[Show, str]]:
    """Serve a page of a run during the block; yield its publisher and address.

    `epochs` is 0 if it is not a training; `port` 0 takes any free one.
    """
    feed = Feed()
    show = Show(Gathering(title, epochs), feed)
    show.publish()
    with serve_page(feed, port) as address:
        try:
            yield show, address
        finally:
            show.publish(last=True)
