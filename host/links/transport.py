"""One interface for every way to get the sums over remote neighbours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from switchgnn.base.clock import SYSTEM_CLOCK, Clock
from switchgnn.base.network import Station
from switchgnn.base.network_file import mtu_of
from switchgnn.host.base.compression import NO_COMPRESSION, Compression
from switchgnn.host.base.errors import FeatureError, LinkError, TransportError
from switchgnn.host.base.operations import Operation
from switchgnn.host.base.pace import Pace
from switchgnn.host.base.status import ExchangeStatus
from switchgnn.host.links.faults import FaultCounts, open_worker_link
from switchgnn.host.wire.addresses import Addresses
from switchgnn.host.wire.header import BARRIER_FRAME_BYTES, BODY_AT
from switchgnn.host.wire.link import Link, Traffic
from switchgnn.planner import Direction, Manifest, WorkerPart
from switchgnn.planner.base.lanes import LANES, fragment_lanes, frame_bytes, sum_frame_bytes

NO_TRAFFIC = Traffic(0, 0, 0, 0)


@dataclass(frozen=True)
class LinkConfig:
    """One worker's end of its link: the part that the tasks of all worker processes share."""

    worker: int  # The number of the worker.
    link: str  # `eth:...` or `udp:...`, as for `open_link`.
    addresses: Addresses  # Those of the worker and of its switch.
    stations: tuple[Station, ...] = ()  # The addresses of all workers.
    plan: Path | None = None  # The plan folder, if the switch adds up.
    session: int = 0  # The number of its install.
    schedule: Path | None = None  # The worker's file, if hosts send to each other.
    faults: str = ""  # The faults on the link, as for `--faults`.
    recording: Path | None = None  # The file for the frames of the link, or None.
    metrics: str = ""  # `ADDRESS:PORT` of the worker's metrics; empty for none.
    tell_every: float = 0.0  # Seconds between two events with its metrics; 0 for none.
    lanes: int = LANES[-1]  # Of a whole fragment of an all-reduce.

    def open_link(self, *protocols: int) -> Link:
        """Open the link for some IPv4 protocols."""
        return open_worker_link(self.link, self.faults, self.worker, protocols, self.recording)

    def plan_folder(self) -> Path:
        """Return the plan folder."""
        return self._given("plan", self.plan)

    def schedule_file(self) -> Path:
        """Return the file of the worker's schedule."""
        return self._given("schedule", self.schedule)

    def _given(self, name: str, path: Path | None) -> Path:
        if path is None:
            raise TransportError(f"Worker {self.worker} needs a {name} for this transport.")
        return path


@dataclass(frozen=True, kw_only=True)
class WorkerEnd(LinkConfig):
    """The parameters of a transport, which uses those that it needs."""

    workers: int
    vertices: int  # How many vertices the worker holds.
    pace: Pace
    sampling: float = 1.0  # The share of rows that is sent.
    seed: int = 0
    mtu: str = "1500"  # Of frames between hosts, as for `Framing.parse` of host/direct.
    phases: bool = False  # Whether hosts send to each other in phases.
    clock: Clock = SYSTEM_CLOCK  # The clock of the link.
    # An open link to use instead, of which an all-reduce uses the other half.
    shared: Link | None = None
    compression: Compression = NO_COMPRESSION  # What workers leave out of the rows that they send.

    @classmethod
    def of(cls, config: LinkConfig, **more: Any) -> "WorkerEnd":  # noqa: ANN401
        """Return a configured link with the other parameters."""
        return cls(**vars(config), **more)

    def open_link(self, *protocols: int) -> Link:
        """Open the link for some IPv4 protocols, unless it is open already."""
        return super().open_link(*protocols) if self.shared is None else self.shared


class Transport(Protocol):
    """One worker's end. All workers make the same calls in the same order.

    What a transport does not override does nothing, or is empty.
    """

    def aggregate(
        self,
        rows: NDArray[np.float32],
        direction: Direction,
        tensor_id: int = 0,
        operation: Operation = Operation.SUM,
    ) -> NDArray[np.float32]:
        """Combine the rows of the remote neighbours of each of this worker's vertices.

        Args:
            rows: float32[n, F], one row per vertex of this worker, ids ascending; any F from 1, the
                same for all workers. They are not used after the return.
            direction: along the edges, or against them.
            tensor_id: numbers the tensor: a cache compares it with the last one of the same id,
                direction and width.
            operation: how rows are combined, the same for all workers.

        Returns:
            float32[n, F]; for a vertex without remote neighbours what the operation's rule says.

        Raises:
            TransportError: this transport does not have the operation.
        """

    @property
    def copied_edges(self) -> NDArray[np.int64] | None:
        """The edges from what `copies` returns to this worker's rows, int64[2, E].

        None: this transport only adds rows up.
        """
        return None

    def copies(self, rows: NDArray[np.float32], direction: Direction) -> NDArray[np.float32]:
        """Return copies of the rows of remote neighbours, float32[R, F], of rows float32[n, F].

        Backward: return for each own row the sum of the rows float32[R, F] of its copies.
        """
        raise TransportError("This transport only adds rows up.")

    def attend(self, until: Callable[[], bool]) -> None:
        """Answer workers that may have missed our last frames, while nothing is exchanged."""
        return

    def stop(self) -> None:
        """Make an exchange in another thread raise TransportError, now and from now on."""
        return

    def next_epoch(self) -> None:
        """Begin another epoch: a transport that samples draws again."""
        return

    @property
    def status(self) -> ExchangeStatus | None:
        """The progress of an exchange over the switch; None: hosts exchange alone."""
        return None

    @property
    def report(self) -> dict[str, int]:
        """Counters of an exchange over the switch for reports."""
        return {}

    def injected(self) -> Mapping[str, FaultCounts]:
        """Return the faults on the link to the switch so far, by direction."""
        return {}

    def skip(self, tensor_id: int, vertices: NDArray[np.bool_] | None) -> None:
        """Take rows of a tensor as unchanged, in its forward exchanges from now on.

        Only with a cache. A partial sum counts as unchanged if all its vertices are skipped. When
        all rows are sent whole, none is skipped. `vertices`: bool[n], those that are skipped;
        None: none is.
        """
        return

    def forget(self, tensor_id: int) -> None:
        """Drop all that is kept of a tensor, as all workers must between the same exchanges."""
        return

    @property
    def traffic(self) -> Traffic:
        """Frames and bytes of this transport so far."""
        return NO_TRAFFIC

    def expected_traffic(self, width: int, direction: Direction) -> Traffic:
        """Return the traffic of one such exchange of this epoch without losses."""
        return NO_TRAFFIC

    def close(self) -> None:
        """Take leave of the other workers; the link stays open."""
        return


def check_packets_fit(description: str, packet_bytes: int) -> None:
    """Reject a link whose interface has too small an MTU; over UDP all packets fit."""
    kind, interface, *_ = f"{description}:".split(":")
    if kind != "eth":
        return
    try:
        mtu = mtu_of(interface)
    except OSError as error:
        raise LinkError(f"There is no interface {interface}: {error.strerror}.") from error
    if mtu < packet_bytes:
        raise LinkError(
            f"The interface {interface} has an MTU of {mtu} bytes, too small for packets of "
            f"{packet_bytes}: ip link set {interface} mtu {packet_bytes} on all interfaces of the "
            f"path, or use shorter packets: --mtu {mtu} between hosts, fewer --lanes to the switch."
        )


def check_rows(rows: NDArray[np.float32], vertices: int, worker: int) -> None:
    """Reject anything but float32[vertices, F]."""
    if rows.ndim != 2 or rows.shape[0] != vertices or rows.shape[1] < 1:
        raise FeatureError(
            f"Worker {worker} holds {vertices} vertices: rows must have the shape "
            f"({vertices}, F) with F from 1, not {rows.shape}."
        )
    if rows.dtype != np.float32:
        raise FeatureError(f"Rows must be float32, not {rows.dtype}.")


def add_traffic(one: Traffic, other: Traffic) -> Traffic:
    """Return the sum of both."""
    return Traffic(*(a + b for a, b in zip(one, other, strict=True)))


def traffic_since(start: Traffic, now: Traffic) -> Traffic:
    """Return the traffic between two readings."""
    return Traffic(*(after - before for before, after in zip(start, now, strict=True)))


def expected_traffic(
    manifest: Manifest, part: WorkerPart, blocks: Sequence[int], width: int, group_size: int
) -> Traffic:
    """Count the frames of one exchange of some blocks over the switch, from the plan alone.

    Up: features, partial sums and one DONE per barrier. Down: sums, one ACK per group of features
    and one ADVANCE per barrier. There is a barrier for the opening of each pool and one after each
    fragment of each block, at least one in each pool. Over leaves and spines there may be more
    bundles of sums, as each switch has its own.
    """
    rows, pools = manifest.rows, manifest.pools
    widths = fragment_lanes(width, manifest.lanes, rows)
    fragments = len(widths)
    up, down = (sum(size(each, rows) for each in widths) for size in (frame_bytes, sum_frame_bytes))
    inside = np.asarray(blocks, dtype=np.int64) - 1
    sent = np.diff(part.send_indptr)[inside]
    features = int(sent.sum())
    acks = fragments * int((-(-sent // group_size)).sum())
    sums = int((-(-np.diff(part.receive_indptr)[inside] // rows)).sum())
    barriers = pools + max(fragments * len(blocks), pools)
    barrier_bytes = barriers * BARRIER_FRAME_BYTES
    return Traffic(
        frames_up=fragments * features + barriers,
        bytes_up=features * up + barrier_bytes,
        frames_down=fragments * sums + acks + barriers,
        bytes_down=sums * down + acks * BODY_AT + barrier_bytes,
    )
