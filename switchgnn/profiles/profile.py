# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What a switch has, as far as a plan depends on it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.records import RecordError, make_record, read_toml
from switchgnn.planner.costs.seconds import Network
from switchgnn.planner.partition.leaf_spine import LeafSpine
from switchgnn.planner.plan.banks import BANKS, BANKS_OF_SWITCHES
from switchgnn.planner.presets import SLOT_BYTES


class ProfileError(SwitchGNNError):
    """A profile that cannot be read or describes no switch, or a plan that does not fit it."""


_MEGA, _GIGA = 1e6, 1e9
_BITS = 8


@dataclass(frozen=True)
class SwitchProfile:
    """A switch. None is no limit.

    Attributes:
        name: how it is called.
        banks: one of BANKS_OF_SWITCHES: to how many slots one pass can add.
        slot_bytes: of the registers that hold features: 128 bytes are a slot.
        table_bytes: the most that its tables may take together.
        passes_per_second: of its loop: passes but the first of each packet, of all pipelines.
        ports: to which something can be attached.
        port_gbits: Gbit/s of each port, in each direction.
        program_sizes: its tables and registers are as large as `p4src/sizes.p4` says.
        frame_seconds: of the processor of a software switch, for each frame that it receives.
        host_frame_seconds: of a host's processor, for each frame that it sends or receives in an
            exchange over the switch.
        host_exchange_seconds: of a host's processor for an exchange between hosts, whose frames
            are few and long.
        barrier_seconds: that a barrier takes beside frames and links.
    """

    name: str
    banks: int = BANKS
    slot_bytes: int | None = None
    table_bytes: int | None = None
    passes_per_second: float | None = None
    ports: int | None = None
    port_gbits: float | None = None
    program_sizes: bool = False
    frame_seconds: float | None = None
    host_frame_seconds: float | None = None
    host_exchange_seconds: float | None = None
    barrier_seconds: float | None = None

    @property
    def slots(self) -> int | None:
        """How many slots it has room for."""
        return None if self.slot_bytes is None else self.slot_bytes // SLOT_BYTES

    @property
    def bandwidth(self) -> float | None:
        """Mbit/s of a port in each direction."""
        return None if self.port_gbits is None else self.port_gbits * _GIGA / _MEGA

    def frames_per_second(self, frame_bytes: int) -> float | None:
        """Return how many frames of that size a port carries in each direction."""
        if self.port_gbits is None:
            return None
        return self.port_gbits * _GIGA / (_BITS * frame_bytes)

    def check_attached(self, attached: int, bandwidth: float | None = None) -> None:
        """Check that links can be attached.

        Args:
            attached: workers and other switches.
            bandwidth: Mbit/s of each link; None: that of the ports.

        Raises:
            ProfileError: it has fewer ports, or slower ones.
        """
        if self.ports is not None and attached > self.ports:
            raise ProfileError(
                f"The switch {self.name} has {self.ports} ports, and {attached} links end there: "
                "plan for fewer workers, for more leaves, or for another switch (--switch)."
            )
        if self.bandwidth is not None and bandwidth is not None and bandwidth > self.bandwidth:
            raise ProfileError(
                f"A port of the switch {self.name} has {self.bandwidth:,g} Mbit/s, and the links "
                f"have {bandwidth:,g}: give a lower --bandwidth, or another switch (--switch)."
            )


def most_attached(leaf_spine: LeafSpine | None, workers: int) -> int:
    """Return how many links end at the switch that has most of them."""
    if leaf_spine is None:
        return workers
    leaves: Sequence[int] = leaf_spine.leaf_of_worker
    fullest = max(leaves.count(leaf) for leaf in set(leaves))
    return max(fullest + leaf_spine.spines, leaf_spine.leaves)


# Whatever is asked of it, it has: in simulations what is assumed if nothing is said.
UNLIMITED = SwitchProfile("unlimited")


_FOLDER = Path(__file__).parent / "known"
_SUFFIX = ".toml"
_MOST_BYTES = 1 << 16
# A plan needs two slots; their numbers have 32 bits.
_LEAST_SLOTS, _MOST_SLOTS = 2, (1 << 32) - 1
_MOST_TABLE_BYTES = 1 << 50
# Port numbers of the program have nine bits, and the last one drops.
_MOST_PORTS = 511
_SECONDS = ("frame_seconds", "host_frame_seconds", "host_exchange_seconds", "barrier_seconds")
_MOST_SECONDS = 1.0


def known_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come along."""
    return tuple(sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}")))


def find_profile(switch: str) -> SwitchProfile:
    """Return a profile.

    Args:
        switch: a name of `known_profiles`, or a TOML file.

    Raises:
        ProfileError: there is none, or the file describes no switch; the sentence says where and
            what.
    """
    known = known_profiles()
    if switch in known:
        return _read(_FOLDER / f"{switch}{_SUFFIX}")
    path = Path(switch)
    if path.suffix != _SUFFIX and not path.exists():
        raise ProfileError(
            f"No switch {switch!r}; known: {', '.join(known)}, or a file of one's own "
            f"(NAME{_SUFFIX})."
        )
    return _read(path)


def _read(path: Path) -> SwitchProfile:
    told = read_toml(path, _MOST_BYTES, "switch", ProfileError)
    try:
        profile = make_record(SwitchProfile, {"name": path.stem, **told})
    except RecordError as error:
        raise ProfileError(f"{path} describes no switch: {error}.") from error
    for problem in _problems(profile):
        raise ProfileError(f"{path} describes no switch: {problem}.")
    return profile


def _problems(profile: SwitchProfile) -> Iterator[str]:
    if not profile.name or not profile.name.isprintable():
        yield f"name: {profile.name!r} cannot be printed"
    if profile.banks not in BANKS_OF_SWITCHES:
        known = ", ".join(map(str, BANKS_OF_SWITCHES))
        yield f"banks: {profile.banks} is none of {known}"
    for key, value, least, most in (
        ("slot_bytes", profile.slot_bytes, SLOT_BYTES * _LEAST_SLOTS, SLOT_BYTES * _MOST_SLOTS),
        ("table_bytes", profile.table_bytes, 1, _MOST_TABLE_BYTES),
        ("ports", profile.ports, 1, _MOST_PORTS),
    ):
        if value is not None and not least <= value <= most:
            yield f"{key}: {value:,} is not from {least:,} to {most:,}"
    for key, rate in (
        ("passes_per_second", profile.passes_per_second),
        ("port_gbits", profile.port_gbits),
    ):
        if rate is not None and not 0 < rate < math.inf:
            yield f"{key}: {rate} is not above 0 and finite"
    for key in _SECONDS:
        seconds = getattr(profile, key)
        if seconds is not None and not 0 <= seconds <= _MOST_SECONDS:
            yield f"{key}: {seconds} is not from 0 to {_MOST_SECONDS:g}"


_MEGABIT = 1e6
_DEFAULT = Network()


def network_of(
    profile: SwitchProfile,
    *,
    bits_per_second: float | None,
    delay: float = _DEFAULT.delay,
    loop: float | None = None,
    mtu: int = _DEFAULT.mtu,
    window: int = _DEFAULT.window,
    cores: int | None = None,
) -> Network:
    """Describe a star of workers around a switch.

    Args:
        profile: of the switch, with what was measured of it and of hosts.
        bits_per_second: of each link; None: that of the switch's ports, or 100 Gbit/s.
        delay: seconds from one end of a link to the other.
        loop: passes per second of the switch; None: no limit.
        mtu: bytes of the largest IP packet between hosts.
        window: features in flight at most.
        cores: that all hosts and the switch share; None: each has its own.

    Returns:
        Links, switch and processors.
    """
    own = _DEFAULT.bits_per_second if profile.bandwidth is None else profile.bandwidth * _MEGABIT
    return Network(
        bits_per_second=own if bits_per_second is None else bits_per_second,
        delay=delay,
        passes_per_second=loop,
        host_frame=profile.host_frame_seconds or 0.0,
        switch_frame=profile.frame_seconds or 0.0,
        barrier=profile.barrier_seconds or 0.0,
        mtu=mtu,
        window=window,
        cores=cores,
    )
