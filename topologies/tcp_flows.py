"""``python -m switchgnn.topologies.tcp_flows``: one worker's end of background TCP flows.

It listens, prints ``ready`` and answers each line of its input: ``connect HOST`` opens a flow
(``connected``), ``fill`` sends through all flows without end (``filling``), ``count`` prints the
bytes received so far. It ends with its input.
"""

import socket
import sys
import threading

PORT = 5001
_CHUNK = bytes(1 << 16)
_CONNECT_SECONDS = 20.0


class _Sink:
    """Accepts flows and counts their bytes."""

    def __init__(self) -> None:
        self._server = socket.create_server(("0.0.0.0", PORT))  # noqa: S104  a namespace
        self._lock = threading.Lock()
        self.received = 0

    def accept(self) -> None:
        while True:
            flow, _ = self._server.accept()
            threading.Thread(target=self._read, args=(flow,), daemon=True).start()

    def _read(self, flow: socket.socket) -> None:
        while data := flow.recv(1 << 16):
            with self._lock:
                self.received += len(data)


def _fill(flow: socket.socket) -> None:
    while True:
        flow.sendall(_CHUNK)


def _say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    """Serve the lines of standard input."""
    sink = _Sink()
    threading.Thread(target=sink.accept, daemon=True).start()
    _say("ready")
    flows = []
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "connect":
            flow = socket.create_connection((arguments[0], PORT), timeout=_CONNECT_SECONDS)
            flow.settimeout(None)
            flows.append(flow)
            _say("connected")
        elif command == "fill":
            for flow in flows:
                threading.Thread(target=_fill, args=(flow,), daemon=True).start()
            _say("filling")
        elif command == "count":
            _say(sink.received)


if __name__ == "__main__":
    main()
