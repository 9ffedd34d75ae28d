"""The server of the page and of the document that it polls, on loopback."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from switchgnn.base.errors import SwitchGNNError
from switchgnn.live.board import Board

HOST = "127.0.0.1"
DOCUMENT = "/metrics.json"
# Accepted Host headers, against DNS rebinding.
_NAMES = ["localhost", HOST]
_HEADERS = [
    ("content-security-policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
]
MOST_CONNECTIONS = 64
_PARTING_SECONDS = 2


class LiveError(SwitchGNNError):
    """The page cannot be served."""


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
        headers=_HEADERS,
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
        Middleware(BaseHTTPMiddleware, dispatch=_only_get),
        Middleware(TrustedHostMiddleware, allowed_hosts=_NAMES, www_redirect=False),
    ]
    return Starlette(routes=[Route(DOCUMENT, document), Mount("/", files)], middleware=guards)


async def _only_get(request: Request, proceed: RequestResponseEndpoint) -> Response:
    if request.method != "GET":
        words = "Only GET is served.\n"
        return PlainTextResponse(words, status_code=405, headers={"allow": "GET"})
    return await proceed(request)
