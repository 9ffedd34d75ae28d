"""The server of the page and of the document that it polls, on loopback."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from switchgnn.base.errors import SwitchGNNError
from switchgnn.live.board import Board


class LiveError(SwitchGNNError):
    """The page cannot be served."""


HOST = "127.0.0.1"
DOCUMENT = "/metrics.json"
# Accepted Host headers, against DNS rebinding.
_NAMES = ["localhost", HOST]
_HEADERS = (
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
MOST_CONNECTIONS = 64
_PARTING_SECONDS = 2


@contextmanager
def serve_page(board: Board, port: int) -> Iterator[str]:
    """Serve the page on loopback during the block; yield its address. Port 0: any free one.

    After the block, open pages still get the outcome.
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
        _page_app(board),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
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
            try:
                board.wait_for_pages()
            finally:
                server.should_exit = True
                thread.join()


def _page_app(board: Board) -> Starlette:
    async def document(request: Request) -> Response:
        page = request.query_params.get("page", "")
        return Response(board.read(page), media_type="application/json")

    files = StaticFiles(packages=[("switchgnn.live", "page")], html=True)
    guards = [
        Middleware(_Guard),
        Middleware(TrustedHostMiddleware, allowed_hosts=_NAMES, www_redirect=False),
    ]
    return Starlette(routes=[Route(DOCUMENT, document), Mount("/", files)], middleware=guards)


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
