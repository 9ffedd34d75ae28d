"""The worker's link to the switch: Ethernet frames over an interface or over UDP.

Both count the bytes of the frames that pass, which is what the report means by
bytes on the wire where no interface counts them.
"""

import contextlib
import errno
import math
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from switchgnn.base import udp_socket
from switchgnn.host.base.errors import LinkError
from switchgnn.host.base.pace import BURST_BYTES, NUMBERS, TokenBucket
from switchgnn.host.wire import batches
from switchgnn.host.wire.addresses import DSCP_CONTROL, DSCP_EARLY, DSCP_LATE, TOS_AT
from switchgnn.host.wire.header import ETHERTYPE_IPV4, PROTOCOL
from switchgnn.host.wire.native import NativeArriving, native_frames

Arriving = batches.PlainArriving | NativeArriving
_RECEIVE_BUFFER = 16 << 20
LARGEST_FRAME = 9216
# Frames of a batch. More save next to nothing, and nothing is sent while they are received.
_AT_ONCE = 64
# Errors of kernels and routes that do not cut messages into datagrams.
_CANNOT_CUT = (errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP)
_MESSAGES_AT_ONCE = 16
_LARGEST_MESSAGE = 1 << 16
_SOL_UDP, _UDP_GRO = 17, 104
# TC_PRIO_FILLER, TC_PRIO_BULK and TC_PRIO_INTERACTIVE of <linux/pkt_sched.h>.
_PRIORITIES = {DSCP_LATE: 1, DSCP_EARLY: 2, DSCP_CONTROL: 6}
_LEVELS = {DSCP_LATE: 0, DSCP_EARLY: 1, DSCP_CONTROL: 3}
# Seconds after which a wait ends at an error of an earlier frame.
_SHORT = 0.001
# Seconds on the line of the frames that leave a limited link in one step.
_STEP_SECONDS = 0.001


class Traffic(NamedTuple):
    """Frames and bytes that passed a link."""

    frames_up: int
    bytes_up: int
    frames_down: int
    bytes_down: int


class Link(ABC):
    """Carries whole Ethernet frames between a worker and the switch. A context manager.

    Any thread may send. All methods that use the link raise LinkError if it is gone or down.
    """

    _gathered: batches.FrameBatch | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """What the link is attached to, for messages."""

    @property
    @abstractmethod
    def traffic(self) -> Traffic:
        """What has passed since the link was opened."""

    @abstractmethod
    def send(self, frame: bytes | memoryview) -> None:
        """Send one frame; waits while the link is full."""

    @abstractmethod
    def receive(self, seconds: float) -> memoryview | None:
        """Return the next frame, valid until the next call, or None after ``seconds``."""

    def send_rows(self, rows: batches.FrameRows, first: int, count: int) -> None:
        """Send some frames in their order; waits while the link is full.

        Args:
            rows: the frames; those that leave have one DSCP.
            first: the first of them that leaves.
            count: how many leave.
        """
        for index in range(first, first + count):
            self.send(rows.frame(index))

    def receive_batch(self, seconds: float) -> batches.FrameBatch | None:
        """Return the next frames, valid until the next call, or None after ``seconds``."""
        frame = self.receive(seconds)
        if frame is None:
            return None
        if self._gathered is None:
            self._gathered = batches.new_batch(_AT_ONCE, LARGEST_FRAME)
        batch = self._gathered
        batch.count = 0
        while frame is not None:
            batch.put(frame)
            frame = self.receive(0.0) if batch.count < _AT_ONCE else None
        return batch

    def keep_batch(self) -> bool:
        """Leave the last batch, taken whole, as it is until the next call of this method.

        Further frames go elsewhere, so a thread may receive while another one uses the batch.
        Returns False if the link cannot do it: the next call that receives changes the batch.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SocketLink(Link):
    """A link over a socket that sends and receives whole frames, if asked at a limited rate."""

    _arrive_whole = False
    _bucket: TokenBucket | None = None
    _step_bytes = BURST_BYTES

    def __init__(self, sock: socket.socket, name: str) -> None:
        self._socket = sock
        self._name = name
        self._arriving = self._new_arriving()
        self._spare: Arriving | None = None
        self._batch = self._arriving.batch
        self._taken = 0
        self._coalescer = batches.ReceiveCoalescer()
        self._frames_up = self._bytes_up = self._frames_down = self._bytes_down = 0
        self._counting = threading.Lock()
        # Room for a burst of sums while the worker packs features.
        udp_socket.enlarge_receive_buffer(sock, _RECEIVE_BUFFER)
        sock.setblocking(False)

    def limit(self, megabits: float) -> None:
        """Limit the rate of sending, in Mbit/s; the switch limits the other direction.

        Frames of higher classes go first. The bytes of a frame include its Ethernet header, but not
        the headers of a datagram around it. The kernel may limit an interface, too: where frames
        leave several at a time, it sets no timer for each.
        """
        rate = megabits * 1e6 / 8
        self._bucket = TokenBucket(rate)
        self._step_bytes = min(BURST_BYTES, int(rate * _STEP_SECONDS))

    @property
    def name(self) -> str:
        """See ``Link``."""
        return self._name

    @property
    def traffic(self) -> Traffic:
        """See ``Link``."""
        return Traffic(self._frames_up, self._bytes_up, self._frames_down, self._bytes_down)

    def send(self, frame: bytes | memoryview) -> None:
        """See ``Link``."""
        if self._bucket is not None:
            self._bucket.take(len(frame), _LEVELS.get(_dscp_of(frame), NUMBERS))
        sender = self._sender(frame)
        sent = self._once(sender, partial(sender.send, frame))
        if sent is not None:
            self._count(1, sent)

    def _count(self, frames: int, size: int) -> None:
        with self._counting:
            self._frames_up += frames
            self._bytes_up += size

    def _sender(self, _frame: bytes | memoryview) -> socket.socket:
        return self._socket

    def send_rows(self, rows: batches.FrameRows, first: int, count: int) -> None:
        """See ``Link``."""
        if self._bucket is None:
            self._send_all(rows, first, count)
            return
        at_once = max(1, self._step_bytes // max(1, rows.frame_bytes))
        level = _LEVELS.get(_dscp_of(rows.frame(first)), NUMBERS)
        for begin in range(first, first + count, at_once):
            step = min(at_once, first + count - begin)
            self._bucket.take(rows.bytes_of(begin, step), level)
            self._send_all(rows, begin, step)

    def _send_all(self, rows: batches.FrameRows, first: int, count: int) -> None:
        end = first + count
        sender = self._sender(rows.frame(first))
        while first < end:
            sent = self._once(sender, partial(self._send_rows, rows, first, end - first))
            if sent is not None:
                self._count(sent, rows.bytes_of(first, sent))
            # None: the first one is lost; retry with the others.
            first += 1 if sent is None else sent

    def _send_rows(self, rows: batches.FrameRows, first: int, count: int) -> int:
        """Send at least one of some frames, without waiting; return how many were sent."""
        frames, sender = native_frames(), self._sender(rows.frame(first))
        if frames is not None:
            return frames.send(sender.fileno(), rows, first, count)
        sender.send(rows.frame(first))
        return 1

    def _once(self, sender: socket.socket, send: Callable[[], int]) -> int | None:
        while True:
            try:
                return send()
            except (BlockingIOError, InterruptedError):
                _wait_for_room(sender)
            except ConnectionRefusedError:
                # An earlier datagram met a closed port. The caller's time-out reports it.
                return None
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    _wait_for_room(sender, 1)
                    continue
                raise LinkError(f"Cannot send on {self._name}: {error.strerror}.") from error

    def receive(self, seconds: float) -> memoryview | None:
        """See ``Link``."""
        if self._taken >= self._batch.count and not self._receive(seconds):
            return None
        self._taken += 1
        return self._batch.frame(self._taken - 1)

    def receive_batch(self, seconds: float) -> batches.FrameBatch | None:
        """See ``Link``."""
        if self._taken >= self._batch.count and not self._receive(self._coalescer.gather(seconds)):
            return None
        self._batch.first, self._taken = self._taken, self._batch.count
        return self._batch

    def keep_batch(self) -> bool:
        """See ``Link``; two rooms are used in turn."""
        self._arriving, self._spare = self._spare or self._new_arriving(), self._arriving
        self._batch = self._arriving.batch
        self._batch.first = self._batch.count = self._taken = 0
        return True

    def _new_arriving(self) -> Arriving:
        # Native code cuts messages that arrive whole (UDP_GRO).
        frames, descriptor = native_frames(), self._socket.fileno()
        if frames is None:
            return batches.PlainArriving(self._socket, _AT_ONCE, LARGEST_FRAME)
        if self._arrive_whole:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(_SOL_UDP, _UDP_GRO, 1)
                most = _MESSAGES_AT_ONCE, _LARGEST_MESSAGE
                return NativeArriving(frames, descriptor, *most, cut=True)
        return NativeArriving(frames, descriptor, _AT_ONCE, LARGEST_FRAME, cut=False)

    def _receive(self, seconds: float) -> bool:
        while True:
            try:
                size = self._arriving.receive(seconds)
            except ConnectionRefusedError:
                if seconds < _SHORT:
                    return False
                seconds /= 2  # another thread may go on sending
                continue
            except OSError as error:
                raise LinkError(f"Cannot receive on {self._name}: {error.strerror}.") from error
            if size < 0:
                return False
            self._taken = 0
            self._coalescer.took(self._batch.count)
            self._frames_down += self._batch.count
            self._bytes_down += size
            return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _dscp_of(frame: bytes | memoryview) -> int:
    return frame[TOS_AT] >> 2 if len(frame) > TOS_AT else 0


def _wait_for_room(sender: socket.socket, milliseconds: int | None = None) -> None:
    # One for each wait, as two threads must not use the same.
    writable = select.poll()
    writable.register(sender, select.POLLOUT)
    writable.poll(milliseconds)


class InterfaceLink(SocketLink):
    """A link over a network interface, for some IPv4 protocols (AF_PACKET; needs CAP_NET_RAW).

    Frames of each class have a priority that the kernel's queues know (pfifo_fast, prio).
    """

    def __init__(self, interface: str, *protocols: int) -> None:
        try:
            # Protocol 0: until it is bound the socket must not receive from all interfaces.
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError as error:
            raise LinkError(
                f"Opening {interface} needs root (CAP_NET_RAW): "
                "run as root, or use the loopback fabric."
            ) from error
        protocols = protocols or (PROTOCOL,)
        # Classic BPF: accept if byte 23 (IPv4 protocol) is one of them. Each comparison jumps over
        # the following ones and the rejection.
        jumps = range(len(protocols), 0, -1)
        checks = [(0x15, jump, 0, each) for jump, each in zip(jumps, protocols, strict=True)]
        accepted = 0x06, 0, 0, 0xFFFFFFFF
        udp_socket.attach_filter(sock, (0x30, 0, 0, 23), *checks, udp_socket.TAKE_NOTHING, accepted)
        try:
            sock.bind((interface, ETHERTYPE_IPV4))
            # They send with a priority, and receive nothing.
            self._senders = {
                dscp: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for dscp in _PRIORITIES
            }
            for dscp, sender in self._senders.items():
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, _PRIORITIES[dscp])
                sender.bind((interface, 0))
        except OSError as error:
            sock.close()
            raise LinkError(f"There is no interface {interface}: {error.strerror}.") from error
        super().__init__(sock, interface)
        self._listeners = [_silence_kernel(each) for each in protocols]

    def _sender(self, frame: bytes | memoryview) -> socket.socket:
        return self._senders.get(_dscp_of(frame), self._socket)

    def close(self) -> None:
        """Close the sockets."""
        for each in (self._socket, *self._senders.values(), *self._listeners):
            each.close()


class UdpLink(SocketLink):
    """A link over a loopback UDP socket; one datagram is one Ethernet frame."""

    _arrive_whole = True

    def __init__(self, local: tuple[str, int], switch: tuple[str, int]) -> None:
        try:
            sock = udp_socket.connected_udp(local, switch)
        except OSError as error:
            why = udp_socket.why_not_bound(error, local[0])
            raise LinkError(f"UDP port {local[1]} on {local[0]} cannot be used: {why}.") from error
        super().__init__(sock, f"udp:{switch[0]}:{switch[1]}")
        self._cuts = True

    def _send_rows(self, rows: batches.FrameRows, first: int, count: int) -> int:
        """Let the kernel cut one long message into datagrams, at a third of the cost."""
        if self._cuts and count > 1:
            try:
                return rows.send_cut(self._socket, first, count)
            except OSError as error:
                if error.errno not in _CANNOT_CUT:
                    raise
                self._cuts = False
        return super()._send_rows(rows, first, count)


def open_link(description: str, *protocols: int) -> Link:
    """Open ``eth:INTERFACE[:MBIT]`` or ``udp:HOST:PORT:SWITCH_HOST:SWITCH_PORT[:MBIT]``.

    MBIT limits the sending bandwidth, in Mbit/s. `protocols`: the IPv4 protocols to receive from an
    interface, by default that of the switch; over UDP everything arrives.

    Raises:
        LinkError: the description is malformed, or the link cannot be opened.
    """
    kind, _, rest = description.partition(":")
    fields = rest.split(":")
    ends = 1 if kind == "eth" else 4
    megabits = _megabits(fields[ends]) if len(fields) == ends + 1 else None
    whole = len(fields) == ends or megabits is not None
    link: SocketLink
    if kind == "eth" and whole and fields[0]:
        link = InterfaceLink(fields[0], *protocols)
    elif kind == "udp" and whole and fields[1].isdigit() and fields[3].isdigit():
        link = UdpLink((fields[0], int(fields[1])), (fields[2], int(fields[3])))
    else:
        raise LinkError(
            f"There is no link {description!r}: write eth:INTERFACE[:MBIT] or "
            "udp:HOST:PORT:SWITCH_HOST:SWITCH_PORT[:MBIT]."
        )
    if megabits is not None:
        link.limit(megabits)
    return link


def _megabits(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _silence_kernel(protocol: int) -> socket.socket:
    # Without a listener for the protocol the kernel answers each packet with an
    # ICMP "protocol unreachable", which doubles the traffic.
    listener = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    udp_socket.attach_filter(listener, udp_socket.TAKE_NOTHING)
    return listener
