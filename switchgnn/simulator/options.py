# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The network of a simulation, and how its hosts send."""

import math
from dataclasses import dataclass

from switchgnn.host.pace import Pace
from switchgnn.host.wire.header import FEATURE_FRAME_BYTES
from switchgnn.simulator.errors import SimulatorError

_MICRO, _MEGA = 1e-6, 1e6
PICOSECONDS = 1e12
_NO_LIMIT = math.inf
# GROUPS_PER_WORKER of p4src/accepted.p4; a switch for wider windows has more of them.
_GROUPS_APART = 32
# Of the background.
FULL_FRAME_BYTES = 1_500


@dataclass(frozen=True)
class NetworkOptions:
    """Links, switches and hosts.

    Attributes:
        bandwidth: Mbit/s of each link in each direction.
        delay: microseconds from one end of a link to the other.
        overhead: bytes that a frame takes on the link beside those that are counted.
        buffer: bytes that each queue of the switch holds, or None for no limit. What finds no
            room is lost, and sent again.
        ecn_threshold: packets of 188 bytes; what finds a longer queue is marked. None: nothing.
        window: features in flight at most, of each worker. Where hosts alone send longer frames, as
            many bytes.
        congestion_control: hosts slow down when packets come marked, and begin slowly.
        recirculation_rate: passes per second of the switch's loop, or None for no limit.
        timeout: microseconds after which what does not come is asked for, at least; None: ten
            round trips of an empty network. Only with a `buffer` is anything asked for.
        background_load: share of each link's rate that flows in the background take on average.
        background_seed: they are drawn with it.
    """

    bandwidth: float = 100_000.0
    delay: float = 2.0
    overhead: int = 0
    buffer: int | None = None
    ecn_threshold: int | None = 1_000
    window: int = 512
    congestion_control: bool = True
    recirculation_rate: float | None = None
    timeout: float | None = None
    background_load: float = 0.0
    background_seed: int = 0

    @property
    def pace(self) -> Pace:
        """Return the bounds on sending as `host/` takes them.

        Windows are open, as exchanges before this one leave them where nothing is marked.
        """
        return Pace(
            window=self.window,
            first_window=self.window,
            congestion_control=self.congestion_control,
        )

    def words(self, data_frame_bytes: int = FEATURE_FRAME_BYTES) -> dict[str, object]:
        """Return what the models are told, by name.

        Args:
            data_frame_bytes: of the longest frame that workers send.

        Raises:
            SimulatorError: a number that makes no sense.
        """
        self._check(data_frame_bytes)
        delay = round(self.delay * _MICRO * PICOSECONDS)
        group = self.pace.group_size
        loop = self.recirculation_rate
        marks = self.ecn_threshold
        return {
            "bits_per_second": self.bandwidth * _MEGA,
            "delay": delay,
            "overhead_bytes": self.overhead,
            "data_frame_bytes": data_frame_bytes,
            "buffer_bytes": _NO_LIMIT if self.buffer is None else self.buffer,
            "ecn_bytes": _NO_LIMIT if marks is None else marks * FEATURE_FRAME_BYTES,
            "window": self.window,
            "group": group,
            "groups_apart": max(_GROUPS_APART, 2 * -(-self.window // group)),
            "congestion_control": int(self.congestion_control),
            "round_trip": max(1, 2 * delay),
            "timeout": 0 if self.timeout is None else round(self.timeout * _MICRO * PICOSECONDS),
            "background_load": self.background_load,
            "background_seed": self.background_seed,
            "pass": 0 if loop is None else max(1, round(PICOSECONDS / loop)),
        }

    def _check(self, data_frame_bytes: int) -> None:
        for name, number in (
            ("bandwidth", self.bandwidth),
            ("recirculation rate", self.recirculation_rate),
            ("buffer", self.buffer),
            ("window", self.window),
            ("time-out", self.timeout),
        ):
            if number is not None and not number > 0:
                raise SimulatorError(f"The {name} must be above 0, but it is {number}.")
        flows = FULL_FRAME_BYTES if self.background_load else 0
        largest = max(data_frame_bytes, flows)
        if self.buffer is not None and self.buffer < largest:
            raise SimulatorError(
                f"The buffer must hold a frame of {largest} bytes, but it is {self.buffer}."
            )
        if not 0 <= self.background_load < 1:
            raise SimulatorError(
                "The background's load is a share of the links' rate, from 0 and below 1, but it "
                f"is {self.background_load}."
            )
        if self.delay < 0 or self.overhead < 0:
            raise SimulatorError("Delay and overhead of a link cannot be below 0.")
