"""What wraps a link: injected faults, recordings, and halves for two threads."""

from switchgnn.host.wire.link import Link, Traffic


class WrappedLink(Link):
    """A link on top of another one."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def name(self) -> str:
        """See ``Link``."""
        return self._link.name

    @property
    def traffic(self) -> Traffic:
        """See ``Link``; that of the wrapped link."""
        return self._link.traffic

    def send(self, frame: bytes | memoryview) -> None:
        """See ``Link``."""
        self._link.send(frame)

    def close(self) -> None:
        """Close the wrapped link."""
        self._link.close()
