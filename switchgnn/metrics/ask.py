# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Asks somebody who serves metrics, who may be anybody: an answer costs bounded memory and time."""

import socket
import time
from typing import TYPE_CHECKING

from switchgnn.metrics.server import MetricsError

if TYPE_CHECKING:
    import h11

_PATH = "/metrics"
_CHUNK = 1 << 16
_OK = 200


class NoAnswerError(MetricsError):
    """Nobody answers there, or with something else than metrics."""


def ask_metrics(host: str, port: int, *, seconds: float = 1.0, most_bytes: int = 1 << 18) -> str:
    """Return what is served to Prometheus.

    Args:
        host: a name or an address.
        port: there.
        seconds: within which all of it must come, once the name is resolved.
        most_bytes: of the answer.

    Returns:
        The text.

    Raises:
        NoAnswerError: nobody answers, or not in time, or with too much, or with anything else
            than metrics, such as another place where they would be.
    """
    # Who serves metrics needs no client of HTTP.
    import h11  # noqa: PLC0415

    end = time.monotonic() + seconds
    place = f"{host}:{port}"
    http = h11.Connection(h11.CLIENT)
    headers = [("Host", place), ("Connection", "close")]
    request = h11.Request(method="GET", target=_PATH, headers=headers)
    asked = [http.send(request), http.send(h11.EndOfMessage())]
    try:
        with socket.create_connection((host, port), seconds) as connected:
            connected.sendall(b"".join(part for part in asked if part is not None))
            body = _body(connected, http, end, most_bytes)
    except (OSError, UnicodeError, h11.RemoteProtocolError) as error:
        raise NoAnswerError(f"Nobody serves metrics on {place}: {error}.") from None
    return body.decode("utf-8", "replace")


def _body(
    connected: socket.socket, http: "h11.Connection", end: float, most_bytes: int
) -> bytearray:
    import h11  # noqa: PLC0415

    body = bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the answer takes too long")
            connected.settimeout(left)
            http.receive_data(connected.recv(_CHUNK))
        elif isinstance(event, h11.Response):
            if event.status_code != _OK:
                raise NoAnswerError(f"It answers with status {event.status_code}.")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most_bytes:
                raise NoAnswerError(f"It answers with more than {most_bytes} bytes.")
        elif isinstance(event, h11.EndOfMessage):
            return body
        elif isinstance(event, h11.ConnectionClosed):
            raise NoAnswerError("It ends before the answer does.")
